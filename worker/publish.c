/* publish: see publish.h. */
#include "worker/publish.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <zmq.h>

#include "src/log.h"
#include "worker/report.h"

#define SUFFIX ".events"
#define TOPIC "job/"
#define REMOVED "removed/"
#define QUEUE "queue"
#define INTERVAL_MS 200
#define SUBSCRIPTIONS_MAX 64 /* taken a turn */
#define JOBS_MAX 512
#define PEER_EVENTS_MAX 64   /* that may wait for one peer */

/* A job that has changed, or has been told about lately. */
struct entry {
	int64_t job;
	int64_t sent_ms;  /* 0: never */
	enum mq_job_state state; /* as sent */
	bool changed;
	bool removed;     /* with changed; unless that was undone */
	bool asked;       /* for a new subscriber, changed or not */
};

struct mq_publish {
	struct mq_publish_config c;
	struct mq_listener listener;
	char *endpoint;
	struct entry entry[JOBS_MAX];
	size_t count;
	bool paused;      /* the queue, as told */
	bool queue_asked; /* by a new subscriber */
};

/* The job's entry, made if there is room: one that waits for nothing gives way. */
static struct entry *entry_of(struct mq_publish *p, int64_t job)
{
	struct entry *e = NULL;

	for (size_t i = 0; i < p->count; i++) {
		if (p->entry[i].job == job)
			return &p->entry[i];
		if (!p->entry[i].changed && !p->entry[i].asked)
			e = &p->entry[i];
	}
	if (p->count < JOBS_MAX)
		e = &p->entry[p->count++];
	if (e)
		*e = (struct entry){.job = job};
	return e;
}

static void job_changed(void *arg, int64_t job, bool removed)
{
	struct mq_publish *p = arg;
	struct entry *e = p->listener.peers ? entry_of(p, job) : NULL;

	if (!e)
		return;
	e->changed = true;
	e->removed = removed;
}

/* *out is NULL where the path would be too long. */
static enum mq_status endpoint_of(const char *service, char **out, struct mq_error *err)
{
	char *endpoint = NULL;

	*out = NULL;
	if (asprintf(&endpoint, "%s" SUFFIX, service) < 0)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	if (strlen(endpoint) - strlen("ipc://") < sizeof ((struct sockaddr_un *)NULL)->sun_path)
		*out = endpoint;
	else
		free(endpoint);
	return MQ_OK;
}

enum mq_status mq_publish_probe(const char *service, struct mq_error *err)
{
	char *endpoint;
	enum mq_status s = endpoint_of(service, &endpoint, err);

	if (!s && endpoint)
		s = mq_listener_probe(endpoint, err);
	free(endpoint);
	return s;
}

enum mq_status mq_publish_open(const struct mq_publish_config *config, const char *service,
                               struct mq_publish **out, struct mq_error *err)
{
	/* Of every subscription one hears, also of what others have subscribed to. */
	static const struct mq_listener_option options[] = {{ZMQ_SNDHWM, PEER_EVENTS_MAX},
	                                                    {ZMQ_XPUB_VERBOSE, 1},
	                                                    {ZMQ_XPUB_NODROP, 0}};
	struct mq_publish *p = NULL;
	char *endpoint;
	enum mq_status s = endpoint_of(service, &endpoint, err);

	*out = NULL;
	if (s)
		return s;
	if (!endpoint) {
		mq_log(MQ_LOG_WARN, "no events are published: the path of %s" SUFFIX " is too long", service);
		return MQ_OK;
	}
	p = calloc(1, sizeof *p);
	s = p ? mq_listener_open(&p->listener, endpoint, ZMQ_XPUB, options,
	                         sizeof options / sizeof options[0], err)
	      : mq_fail(err, MQ_ENOMEM_HOST, "no memory for the event socket");
	if (s)
		goto out;
	p->c = *config;
	p->endpoint = endpoint;
	p->paused = mq_schedule_paused(p->c.schedule);
	mq_store_watch(p->c.store, job_changed, p);
	*out = p;
	return MQ_OK;
out:
	free(p);
	free(endpoint);
	return s;
}

void mq_publish_close(struct mq_publish *p)
{
	if (!p)
		return;
	mq_store_watch(p->c.store, NULL, NULL);
	mq_listener_close(&p->listener);
	free(p->endpoint);
	free(p);
}

struct mq_listener *mq_publish_listener(struct mq_publish *p)
{
	return p ? &p->listener : NULL;
}

const char *mq_publish_endpoint(const struct mq_publish *p)
{
	return p ? p->endpoint : NULL;
}

/* The job of "\1job/ID", or 0: what subscribes to all jobs, or to none, asks for no row. */
static int64_t subscribed_job(const char *bytes, size_t len)
{
	char text[32];
	const char *digits = text + strlen(TOPIC);

	if (len < 2 || bytes[0] != 1 || len - 1 >= sizeof text)
		return 0;
	memcpy(text, bytes + 1, len - 1);
	text[len - 1] = '\0';
	if (strncmp(text, TOPIC, strlen(TOPIC)) || !*digits || *digits == '0' ||
	    strspn(digits, "0123456789") != strlen(digits) || strlen(digits) > 16)
		return 0;
	return strtoll(digits, NULL, 10);
}

static bool is_queue(const char *bytes, size_t len)
{
	return len == strlen("\1" QUEUE) && !memcmp(bytes, "\1" QUEUE, len);
}

void mq_publish_receive(struct mq_publish *p)
{
	/* Who subscribes has connected before: its connection must be known when its row is sent. */
	if (p)
		(void)mq_listener_peers(&p->listener);
	for (unsigned i = 0; p && i < SUBSCRIPTIONS_MAX; i++) {
		struct entry *e;
		zmq_msg_t msg;
		int64_t job;

		zmq_msg_init(&msg);
		if (zmq_msg_recv(&msg, p->listener.socket, ZMQ_DONTWAIT) < 0) {
			zmq_msg_close(&msg);
			return;
		}
		job = subscribed_job(zmq_msg_data(&msg), zmq_msg_size(&msg));
		p->queue_asked |= is_queue(zmq_msg_data(&msg), zmq_msg_size(&msg));
		zmq_msg_close(&msg);
		e = job ? entry_of(p, job) : NULL;
		if (e)
			e->asked = true;
	}
}

/* Takes json over (NULL: memory was out). */
static void send_event(struct mq_publish *p, const char *topic, json_t *json)
{
	char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

	json_decref(json);
	if (!text) {
		mq_log(MQ_LOG_ERROR, "no memory to publish an event");
		return;
	}
	/* An XPUB takes every message, and drops what a peer has no room for. */
	if (zmq_send(p->listener.socket, topic, strlen(topic), ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0)
		(void)zmq_send(p->listener.socket, text, strlen(text), ZMQ_DONTWAIT);
	free(text);
}

static void send_row(struct mq_publish *p, const struct mq_job_row *row, int64_t now_ms)
{
	char topic[32];

	snprintf(topic, sizeof topic, TOPIC "%" PRId64, row->id);
	send_event(p, topic, mq_report_job(row, p->c.schedule, p->c.dir, now_ms));
}

static void send_removed(struct mq_publish *p, int64_t job)
{
	char topic[32];

	snprintf(topic, sizeof topic, REMOVED "%" PRId64, job);
	send_event(p, topic, json_pack("{s:I, s:b}", "id", (json_int_t)job, "removed", true));
}

static void send_queue(struct mq_publish *p)
{
	bool paused = mq_schedule_paused(p->c.schedule);

	if (p->listener.peers && (p->queue_asked || paused != p->paused))
		send_event(p, QUEUE, json_pack("{s:b}", "paused", paused));
	p->paused = paused;
	p->queue_asked = false;
}

/* False: the entry is of no use any more. */
static bool send_entry(struct mq_publish *p, struct entry *e, int64_t now_ms)
{
	struct mq_job_row row;
	bool moved, due = now_ms - e->sent_ms >= INTERVAL_MS;
	enum mq_status s = mq_store_job_get(p->c.store, e->job, &row, NULL);

	if (s == MQ_ENOENT && e->changed && e->removed)
		send_removed(p, e->job);
	if (s)
		return false;
	moved = !e->sent_ms || e->state != row.state;
	if (e->asked || (e->changed && (moved || due))) {
		send_row(p, &row, now_ms);
		e->sent_ms = now_ms;
		e->state = row.state;
		e->asked = e->changed = false;
	}
	mq_job_row_clear(&row);
	return true;
}

void mq_publish_send(struct mq_publish *p, int64_t now_ms)
{
	if (!p)
		return;
	send_queue(p);
	if (!p->listener.peers)
		p->count = 0;
	for (size_t i = 0; i < p->count;) {
		struct entry *e = &p->entry[i];

		if ((!e->changed && !e->asked) || send_entry(p, e, now_ms))
			i++;
		else
			*e = p->entry[--p->count];
	}
}

int64_t mq_publish_due(const struct mq_publish *p, int64_t now_ms)
{
	int64_t due = -1;

	for (size_t i = 0; p && i < p->count; i++) {
		const struct entry *e = &p->entry[i];
		int64_t left = e->sent_ms + INTERVAL_MS - now_ms;

		if (!e->changed && !e->asked)
			continue;
		left = left < 0 ? 0 : left > INTERVAL_MS ? INTERVAL_MS : left;
		if (due < 0 || left < due)
			due = left;
	}
	return due;
}
