/* verbs_list: verbs that only look: jobs, one job's tiles and attempts, and numbers for a monitor. */
#include "worker/verbs_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/log.h"
#include "worker/metrics.h"
#include "worker/report.h"

#define STATUS_PAGE 200
#define STATUS_IDS_MAX 1000
#define STATUS_SCAN 5000 /* rows that a request looks at, at most: others want to be served */
#define INFO_PAGE 1000
/* A row can have 120 kB of decimals, and a reply must fit a message. */
#define REPLY_BYTES_MAX (MQ_MESSAGE_MAX - (64u << 10))

/* ---- jobs ---- */

struct listing {
	struct mq_call *c;
	json_t *jobs;
	size_t left;  /* rows that the page may still take */
	size_t bytes; /* of those that it has */
	int64_t next; /* the id to go on from */
	bool more;
	/* only those */
	unsigned states; /* a bit each; 0: all */
	const char *name;
	bool mine;
};

static bool wanted(const struct listing *l, const struct mq_job_row *row)
{
	return (!l->states || (l->states & (1u << row->state))) &&
	       (!l->name || (row->name && strstr(row->name, l->name))) &&
	       (!l->mine || row->owner == l->c->owner);
}

/* The first row always fits. */
static enum mq_status list_row(void *arg, const struct mq_job_row *row)
{
	struct listing *l = arg;
	json_t *json;
	size_t bytes;

	if (l->more)
		return MQ_OK;
	if (!wanted(l, row)) {
		l->next = row->id;
		return MQ_OK;
	}
	if (!l->left) {
		l->more = true;
		return MQ_OK;
	}
	json = mq_report_job(row, l->c->v->schedule, l->c->v->dir, l->c->now_ms);
	bytes = json ? json_dumpb(json, NULL, 0, JSON_COMPACT) + 1 : 0;
	if (l->bytes && bytes > REPLY_BYTES_MAX - l->bytes) {
		l->more = true;
		json_decref(json);
		return MQ_OK;
	}
	l->left--;
	l->bytes += bytes;
	l->next = row->id;
	return json_array_append_new(l->jobs, json) ? MQ_ENOMEM_HOST : MQ_OK;
}

static enum mq_status list_ids(struct listing *l, const json_t *ids, struct mq_error *err)
{
	struct mq_job_row row;
	enum mq_status s = MQ_OK;

	if (!json_is_array(ids) || json_array_size(ids) > STATUS_IDS_MAX)
		return mq_fail(err, MQ_EINVAL, "ids must be an array of at most %d job ids", STATUS_IDS_MAX);
	l->left = json_array_size(ids);
	for (size_t i = 0; !s && !l->more && i < json_array_size(ids); i++) {
		const json_t *id = json_array_get(ids, i);

		if (!json_is_integer(id))
			return mq_fail(err, MQ_EINVAL, "ids must be integers");
		s = mq_store_job_get(l->c->v->store, json_integer_value(id), &row, err);
		if (!s) {
			s = list_row(l, &row);
			mq_job_row_clear(&row);
		}
	}
	return s;
}

static enum mq_status read_states(struct listing *l, struct mq_error *err)
{
	const json_t *states = json_object_get(l->c->args, "states");
	enum mq_job_state state;

	if (!states || json_is_null(states))
		return MQ_OK;
	if (!json_is_array(states))
		return mq_fail(err, MQ_EINVAL, "states must be an array of names");
	for (size_t i = 0; i < json_array_size(states); i++) {
		const char *name = json_string_value(json_array_get(states, i));

		if (!name || !mq_job_state_parse(name, &state))
			return mq_fail(err, MQ_EINVAL, "--state: '%.40s' is no state", name ? name : "");
		l->states |= 1u << state;
	}
	return MQ_OK;
}

/* *scan: a walk that is longer than this is gone on with by the next request. */
struct scan {
	struct listing *l;
	unsigned left;
};

static enum mq_status scan_row(void *arg, const struct mq_job_row *row)
{
	struct scan *scan = arg;

	if (!scan->left) {
		scan->l->more = true;
		return MQ_OK;
	}
	scan->left--;
	return list_row(scan->l, row);
}

static enum mq_status list_page(struct listing *l, struct mq_error *err)
{
	struct scan scan = {l, STATUS_SCAN};
	json_int_t after = 0, before = 0, limit = STATUS_PAGE;
	bool filtered;
	enum mq_status s = mq_arg_int_or(l->c, "after", 0, INT64_MAX, 0, &after, err);

	if (!s)
		s = mq_arg_int_or(l->c, "before", 0, INT64_MAX, 0, &before, err);
	if (!s)
		s = mq_arg_int_or(l->c, "limit", 1, STATUS_PAGE, STATUS_PAGE, &limit, err);
	if (!s)
		s = mq_arg_bool(l->c, "mine", &l->mine, err);
	if (!s)
		s = read_states(l, err);
	if (s)
		return s;
	l->name = json_string_value(json_object_get(l->c->args, "name"));
	l->left = (size_t)limit;
	filtered = l->states || l->name || l->mine;
	limit = filtered ? STATUS_SCAN + 1 : limit + 1;
	return before ? mq_store_job_each_down(l->c->v->store, before, limit, scan_row, &scan, err)
	              : mq_store_job_each(l->c->v->store, after, limit, scan_row, &scan, err);
}

enum mq_status mq_verb_status(struct mq_call *c, struct mq_error *err)
{
	const json_t *ids = json_object_get(c->args, "ids");
	struct listing l = {.c = c, .jobs = json_array()};
	const char *note = c->v->note;
	char longer[1200];
	enum mq_status s;

	if (!l.jobs)
		return mq_verb_memory(err);
	s = ids ? list_ids(&l, ids, err) : list_page(&l, err);
	if (s == MQ_ECORRUPT && !ids) { /* one job must not hide the others */
		mq_log(MQ_LOG_ERROR, "status: %s", err->text);
		snprintf(longer, sizeof longer, "%s; %s", note, err->text);
		note = longer;
		s = MQ_OK;
	}
	if (s) {
		json_decref(l.jobs);
		return s;
	}
	return mq_verb_reply(c,
	                     json_pack("{s:o, s:b, s:I, s:b, s:s}", "jobs", l.jobs, "more", l.more, "next",
	                               (json_int_t)l.next, "paused", mq_schedule_paused(c->v->schedule),
	                               "note", note),
	                     err);
}

/* ---- one job's tiles and attempts ---- */

struct details {
	json_t *list;
	size_t left;
	bool more;
};

static enum mq_status details_add(struct details *d, json_t *json)
{
	if (!d->left) {
		d->more = true;
		json_decref(json);
		return MQ_OK;
	}
	d->left--;
	return json_array_append_new(d->list, json) ? MQ_ENOMEM_HOST : MQ_OK;
}

static enum mq_status each_tile(void *arg, const struct mq_tile_info *t)
{
	return details_add(arg, mq_report_tile(t));
}

static enum mq_status each_attempt(void *arg, const struct mq_attempt_info *a)
{
	return details_add(arg, mq_report_attempt(a));
}

static enum mq_status reply_details(struct mq_call *c, bool tiles, struct mq_error *err)
{
	struct details d = {.list = json_array()};
	json_int_t id, after = 0, limit = 0;
	struct mq_job_row row;
	enum mq_status s = d.list ? mq_arg_int(c, "id", 1, INT64_MAX, &id, err) : mq_verb_memory(err);

	if (!s)
		s = mq_arg_int_or(c, "after", 0, INT64_MAX, 0, &after, err);
	if (!s)
		s = mq_arg_int_or(c, "limit", 1, INFO_PAGE, INFO_PAGE, &limit, err);
	if (!s)
		s = mq_store_job_get(c->v->store, id, &row, err);
	if (!s) {
		mq_job_row_clear(&row);
		d.left = (size_t)limit;
		s = tiles ? mq_store_tiles_each(c->v->store, id, after, limit + 1, each_tile, &d, err)
		          : mq_store_attempts_each(c->v->store, id, after, limit + 1, each_attempt, &d, err);
	}
	if (s) {
		json_decref(d.list);
		return s;
	}
	return mq_verb_reply(c, json_pack("{s:o, s:b}", tiles ? "tiles" : "attempts", d.list, "more", d.more),
	                     err);
}

enum mq_status mq_verb_tiles(struct mq_call *c, struct mq_error *err)
{
	return reply_details(c, true, err);
}

enum mq_status mq_verb_attempts(struct mq_call *c, struct mq_error *err)
{
	return reply_details(c, false, err);
}

/* ---- numbers ---- */

enum mq_status mq_verb_metrics(struct mq_call *c, struct mq_error *err)
{
	const struct mq_metrics_source source = {c->v->store, c->v->schedule, c->v->dir,
	                                         c->v->watchdog_ends, c->now_ms};
	char *text;
	enum mq_status s = mq_metrics_text(&source, &text, err);

	if (s)
		return s;
	s = mq_verb_reply(c, json_pack("{s:s}", "text", text), err);
	free(text);
	return s;
}
