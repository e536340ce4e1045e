/* events: see events.h. A SUB socket with a context of its own that does not connect again by itself: who
 * uses it must know that the worker was away. Its monitor tells the end. */
#include "config.h"

#include "client/events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "client/interrupt.h"
#include "client/remote.h"
#include "client/rows.h"
#include "src/clock.h"
#include "src/message.h"

#define SCHEME "ipc://"
#define TOPIC "job/"
#define REMOVED "removed/"
#define QUEUE "queue"
#define TOPICS_MAX 16   /* more jobs than these: all jobs' events cost less */
#define CONNECT_MS 1000
#define MONITOR "inproc://connection"
/* Longer than anybody goes on with a connection that has ended. Not -1: libzmq 4.3.4 then takes the pipe
 * away, be it between two frames of one message, and aborts when the second is asked for. */
#define NEVER_MS 86400000

struct mq_subscription {
	void *context, *socket, *monitor;
	bool connected, ended;
};

/* *out is NULL when the worker names no socket. */
static enum mq_status ask_endpoint(struct mq_client *client, char **out, struct mq_error *err)
{
	json_t *result = NULL;
	enum mq_status status;
	const char *uri;

	*out = NULL;
	if (mq_remote_is(mq_client_uri(client)))
		return MQ_OK;
	status = mq_client_call(client, "hello", json_object(), &result, err);
	if (status != MQ_OK)
		return status;
	uri = mq_row_text(result, "events", NULL);
	if (uri && strncmp(uri, SCHEME, strlen(SCHEME)) == 0) {
		*out = strdup(uri);
		if (!*out)
			status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for an endpoint");
	}
	json_decref(result);
	return status;
}

static int set_options(void *socket)
{
	static const struct {
		int option, value;
	} settings[] = {
		{ ZMQ_LINGER, 0 },
		{ ZMQ_RCVHWM, 1000 },
		{ ZMQ_HANDSHAKE_IVL, CONNECT_MS },
		{ ZMQ_RECONNECT_IVL, NEVER_MS },
	};
	int64_t max = MQ_MESSAGE_MAX;
	int rc = zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &max, sizeof(max));

	for (size_t i = 0; rc == 0 && i < sizeof(settings) / sizeof(settings[0]); i++)
		rc = zmq_setsockopt(socket, settings[i].option, &settings[i].value, sizeof(int));
	return rc;
}

static int set_topic(void *socket, const char *kind, const int64_t *id)
{
	char topic[40];

	if (id)
		snprintf(topic, sizeof(topic), "%s%" PRId64, kind, *id);
	else
		snprintf(topic, sizeof(topic), "%s", kind);
	return zmq_setsockopt(socket, ZMQ_SUBSCRIBE, topic, strlen(topic));
}

static int set_topics(void *socket, const int64_t *ids, size_t count)
{
	int rc = set_topic(socket, QUEUE, NULL);

	if (count == 0 || count > TOPICS_MAX)
		return rc || set_topic(socket, TOPIC, NULL) || set_topic(socket, REMOVED, NULL);
	for (size_t i = 0; rc == 0 && i < count; i++)
		rc = set_topic(socket, TOPIC, &ids[i]) || set_topic(socket, REMOVED, &ids[i]);
	return rc;
}

static bool open_sockets(struct mq_subscription *s)
{
	int none = 0;

	s->context = zmq_ctx_new();
	s->socket = s->context ? zmq_socket(s->context, ZMQ_SUB) : NULL;
	s->monitor = s->socket ? zmq_socket(s->context, ZMQ_PAIR) : NULL;
	return s->monitor && zmq_setsockopt(s->monitor, ZMQ_LINGER, &none, sizeof(none)) == 0 &&
	       zmq_socket_monitor(s->socket, MONITOR,
				  ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED |
					  ZMQ_EVENT_CLOSED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
					  ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL) == 0 &&
	       zmq_connect(s->monitor, MONITOR) == 0;
}

/* Takes what the monitor has: an event's number and a value, then a frame with an address. */
static void look(struct mq_subscription *s)
{
	char data[6], address[1];
	uint16_t event;

	while (zmq_recv(s->monitor, data, sizeof(data), ZMQ_DONTWAIT) >= (int)sizeof(data)) {
		memcpy(&event, data, sizeof(event));
		(void)zmq_recv(s->monitor, address, sizeof(address), ZMQ_DONTWAIT);
		if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
			s->connected = true;
		else
			s->ended = true;
	}
}

static bool connect_to(struct mq_subscription *s, const struct mq_client *client, const char *uri)
{
	int64_t until = mq_client_sooner(client, mq_clock_ms() + CONNECT_MS);

	if (zmq_connect(s->socket, uri) != 0)
		return false;
	for (look(s); !s->connected && !s->ended; look(s)) {
		if (mq_clock_ms() >= until || mq_interrupted())
			return false;
		mq_subscription_sleep(s, until, -1);
	}
	return s->connected && !s->ended;
}

enum mq_status mq_subscribe(struct mq_client *client, const int64_t *ids, size_t count,
			    struct mq_subscription **out, struct mq_error *err)
{
	struct mq_subscription *s = NULL;
	char *uri = NULL;
	enum mq_status status = ask_endpoint(client, &uri, err);

	*out = NULL;
	if (status != MQ_OK || !uri)
		return status;
	s = calloc(1, sizeof(*s));
	/* Who cannot hear can ask: none of this is worth a failure. */
	if (s && open_sockets(s) && set_options(s->socket) == 0 &&
	    set_topics(s->socket, ids, count) == 0 && connect_to(s, client, uri))
		*out = s;
	else
		mq_unsubscribe(s);
	free(uri);
	return MQ_OK;
}

void mq_unsubscribe(struct mq_subscription *s)
{
	if (!s)
		return;
	if (s->socket) {
		(void)zmq_socket_monitor(s->socket, NULL, 0);
		zmq_close(s->socket);
	}
	if (s->monitor)
		zmq_close(s->monitor);
	if (s->context)
		zmq_ctx_term(s->context);
	free(s);
}

void mq_subscription_sleep(struct mq_subscription *s, int64_t until_ms, int fd)
{
	zmq_pollitem_t items[4];
	int64_t left = until_ms - mq_clock_ms();
	int count = 0;

	if (mq_interrupt_fd() >= 0)
		items[count++] = (zmq_pollitem_t){ .fd = mq_interrupt_fd(), .events = ZMQ_POLLIN };
	if (fd >= 0)
		items[count++] = (zmq_pollitem_t){ .fd = fd, .events = ZMQ_POLLIN };
	if (s) {
		items[count++] = (zmq_pollitem_t){ .socket = s->socket, .events = ZMQ_POLLIN };
		items[count++] = (zmq_pollitem_t){ .socket = s->monitor, .events = ZMQ_POLLIN };
	}
	/* A failure can only cut the sleep short, and every caller looks at the clock again. */
	(void)zmq_poll(items, count, left > 0 ? (long)left : 0);
}

static bool is_kind(const char *topic, const char *kind)
{
	return strncmp(topic, kind, strlen(kind)) == 0;
}

/* Takes body over. */
static bool take_news(const char *topic, json_t *body, struct mq_news *out)
{
	const json_t *paused = json_object_get(body, "paused");
	bool known = false;

	*out = (struct mq_news){ .id = 0 };
	if (is_kind(topic, TOPIC)) {
		out->kind = MQ_NEWS_JOB;
		known = mq_row_integer(body, "id", 1, &out->id) &&
			mq_row_state(body) != MQ_JOB_STATE_COUNT;
		out->row = known ? json_incref(body) : NULL;
	} else if (is_kind(topic, REMOVED)) {
		out->kind = MQ_NEWS_REMOVED;
		known = mq_row_integer(body, "id", 1, &out->id);
	} else if (strcmp(topic, QUEUE) == 0 && json_is_boolean(paused)) {
		out->kind = MQ_NEWS_QUEUE;
		out->paused = json_is_true(paused);
		known = true;
	}
	json_decref(body);
	return known;
}

/* The frames behind the first; what the second says, NULL if it says nothing. */
static json_t *take_body(struct mq_subscription *s, zmq_msg_t *first)
{
	json_t *json = NULL;
	zmq_msg_t body;

	while (zmq_msg_more(first)) {
		zmq_msg_init(&body);
		if (zmq_msg_recv(&body, s->socket, ZMQ_DONTWAIT) < 0) {
			zmq_msg_close(&body);
			break;
		}
		if (!json)
			json = json_loadb(zmq_msg_data(&body), zmq_msg_size(&body), 0, NULL);
		zmq_msg_move(first, &body);
	}
	return json;
}

bool mq_subscription_take(struct mq_subscription *s, struct mq_news *out)
{
	bool got = true, known = false;

	while (s && got && !known) {
		char topic[40];
		zmq_msg_t first;

		zmq_msg_init(&first);
		got = zmq_msg_recv(&first, s->socket, ZMQ_DONTWAIT) >= 0;
		if (got) {
			snprintf(topic, sizeof(topic), "%.*s", (int)zmq_msg_size(&first),
				 (const char *)zmq_msg_data(&first));
			known = take_news(topic, take_body(s, &first), out);
		}
		zmq_msg_close(&first);
	}
	return known;
}

bool mq_subscription_ended(struct mq_subscription *s)
{
	look(s);
	return s->ended;
}
