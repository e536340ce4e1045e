/* verbs: see verbs.h. One function a verb; the table at the end. */
#include "config.h"

#include "worker/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "src/job.h"
#include "src/log.h"
#include "worker/active.h"
#include "worker/report.h"
#include "worker/space.h"

#define STATUS_PAGE 200
#define STATUS_IDS_MAX 1000
/* A row can have 120 kB of decimals, and a reply must fit a message. */
#define STATUS_BYTES_MAX (MQ_MESSAGE_MAX - (64u << 10))

struct call {
	struct mq_verbs *v;
	const json_t *args;
	int64_t owner, now_ms;
	struct mq_answer *answer;
};

/* Reading arguments: a wrong type is the client's fault and says which argument. */

static enum mq_status arg_int(const struct call *c, const char *name, json_int_t min, json_int_t max,
                              json_int_t *out, struct mq_error *err)
{
	const json_t *j = json_object_get(c->args, name);

	if (!json_is_integer(j) || json_integer_value(j) < min || json_integer_value(j) > max)
		return mq_fail(err, MQ_EINVAL,
		               "%s must be an integer from %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT,
		               name, min, max);
	*out = json_integer_value(j);
	return MQ_OK;
}

static enum mq_status arg_int_or(const struct call *c, const char *name, json_int_t min,
                                 json_int_t max, json_int_t standard, json_int_t *out,
                                 struct mq_error *err)
{
	const json_t *j = json_object_get(c->args, name);

	*out = standard;
	return !j || json_is_null(j) ? MQ_OK : arg_int(c, name, min, max, out, err);
}

/* A label or "" when it is absent. */
static enum mq_status arg_label(const struct call *c, const char *name, size_t max, const char *what,
                                const char **out, struct mq_error *err)
{
	const json_t *j = json_object_get(c->args, name);

	*out = "";
	if (!j || json_is_null(j))
		return MQ_OK;
	if (!json_is_string(j))
		return mq_fail(err, MQ_EINVAL, "%s must be text", what);
	*out = json_string_value(j);
	return json_string_length(j)
	               ? mq_job_check_label(*out, json_string_length(j), max, what, err)
	               : MQ_OK;
}

static enum mq_status memory_out(struct mq_error *err)
{
	return mq_fail(err, MQ_ENOMEM_HOST, "the worker is out of host memory for a reply");
}

static enum mq_status reply(struct call *c, json_t *result, struct mq_error *err)
{
	if (!result)
		return memory_out(err);
	c->answer->result = result;
	return MQ_OK;
}

static enum mq_status verb_hello(struct call *c, struct mq_error *err)
{
	json_t *devices = json_array();
	struct mq_device_report report;

	for (unsigned i = 0; devices && i < mq_schedule_devices(c->v->schedule); i++) {
		mq_schedule_device(c->v->schedule, i, &report);
		if (json_array_append_new(devices, mq_report_device(&report)))
			goto out;
	}
	return reply(c,
	             json_pack("{s:s, s:i, s:I, s:s, s:f, s:I, s:s, s:s?, s:o}", "version", PACKAGE_VERSION,
	                       "protocol", MQ_PROTOCOL, "pid", (json_int_t)getpid(), "state_dir",
	                       c->v->dir->path, "uptime_seconds",
	                       (double)(c->now_ms - c->v->started_ms) / 1e3, "watchdog_ends",
	                       (json_int_t)c->v->watchdog_ends, "note", c->v->note, "events", c->v->events,
	                       "devices", devices),
	             err);
out:
	json_decref(devices);
	return memory_out(err);
}

static json_t *warnings_array(const struct mq_job_warnings *w)
{
	json_t *a = json_array();

	for (unsigned i = 0; a && i < w->count; i++)
		if (json_array_append_new(a, json_string(w->text[i]))) {
			json_decref(a);
			return NULL;
		}
	return a;
}

static enum mq_status store_job(struct call *c, const struct mq_job *job, const char *name,
                                const char *request_id, json_int_t priority, json_t *canonical,
                                int64_t *id, bool *existing, struct mq_error *err)
{
	char *spec = json_dumps(canonical, JSON_SORT_KEYS | JSON_COMPACT);
	struct mq_new_job n = {.spec = spec, .name = name, .request_id = *request_id ? request_id : NULL,
	                       .priority = priority, .owner = c->owner, .now_ms = c->now_ms,
	                       .width = job->width, .height = job->height,
	                       .iterations = job->iterations};
	bool known = false;
	enum mq_status s;

	if (!spec)
		return memory_out(err);
	mq_active_layout(job, &n.layout);
	/* A request that was accepted once is not refused when it is repeated. */
	s = n.request_id ? mq_store_request_known(c->v->store, n.request_id, &known, err) : MQ_OK;
	if (!s && !known)
		s = mq_space_fits(c->v->dir, &n.layout, job->keep_counts, err);
	if (!s)
		s = mq_store_job_add(c->v->store, &n, id, existing, err);
	free(spec);
	return s;
}

static enum mq_status verb_submit(struct call *c, struct mq_error *err)
{
	struct mq_job_warnings warnings = {0};
	struct mq_job *job = NULL;
	const char *name, *request_id;
	json_t *canonical = NULL;
	json_int_t priority;
	int64_t id = 0;
	bool existing = false;
	enum mq_status s;

	s = arg_label(c, "name", MQ_JOB_NAME_MAX, "--name", &name, err);
	if (!s)
		s = arg_label(c, "request_id", MQ_JOB_REQUEST_ID_MAX, "--request-id", &request_id, err);
	if (!s)
		s = arg_int_or(c, "priority", -1000000, 1000000, 0, &priority, err);
	if (!s)
		s = mq_job_from_json(json_object_get(c->args, "job"), &job, &warnings, err);
	if (s)
		return s;
	canonical = mq_job_to_json(job);
	s = canonical ? store_job(c, job, name, request_id, priority, canonical, &id, &existing, err)
	              : memory_out(err);
	mq_job_free(job);
	if (s) {
		json_decref(canonical);
		return s;
	}
	if (!existing) {
		mq_log(MQ_LOG_INFO, "job %lld is queued", (long long)id);
		mq_schedule_look(c->v->schedule);
	}
	return reply(c,
	             json_pack("{s:I, s:b, s:o, s:o}", "id", (json_int_t)id, "existing", existing, "warnings",
	                       warnings_array(&warnings), "job", canonical),
	             err);
}

struct listing {
	struct call *c;
	json_t *jobs;
	size_t left;  /* rows that the page may still take */
	size_t bytes; /* of those that it has */
	bool more;
	const char *note;
};

/* The first row always fits. */
static enum mq_status list_row(void *arg, const struct mq_job_row *row)
{
	struct listing *l = arg;
	json_t *json;
	size_t bytes;

	if (l->more || !l->left) {
		l->more = true;
		return MQ_OK;
	}
	json = mq_report_job(row, l->c->v->schedule, l->c->v->dir, l->c->now_ms);
	bytes = json ? json_dumpb(json, NULL, 0, JSON_COMPACT) + 1 : 0;
	if (bytes > STATUS_BYTES_MAX - l->bytes) {
		l->more = true;
		json_decref(json);
		return MQ_OK;
	}
	l->left--;
	l->bytes += bytes;
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

static enum mq_status verb_status(struct call *c, struct mq_error *err)
{
	const json_t *ids = json_object_get(c->args, "ids");
	struct listing l = {.c = c, .jobs = json_array(), .note = c->v->note};
	char note[1200];
	json_int_t after = 0, limit = STATUS_PAGE;
	enum mq_status s;

	if (!l.jobs)
		return memory_out(err);
	if (ids) {
		s = list_ids(&l, ids, err);
	} else {
		s = arg_int_or(c, "after", 0, INT64_MAX, 0, &after, err);
		if (!s)
			s = arg_int_or(c, "limit", 1, STATUS_PAGE, STATUS_PAGE, &limit, err);
		l.left = (size_t)limit;
		if (!s)
			s = mq_store_job_each(c->v->store, after, limit + 1, list_row, &l, err);
		if (s == MQ_ECORRUPT) { /* one job must not hide the others */
			mq_log(MQ_LOG_ERROR, "status: %s", err->text);
			snprintf(note, sizeof note, "%s; %s", c->v->note, err->text);
			l.note = note;
			s = MQ_OK;
		}
	}
	if (s) {
		json_decref(l.jobs);
		return s;
	}
	return reply(c,
	             json_pack("{s:o, s:b, s:s}", "jobs", l.jobs, "more", l.more, "note", l.note), err);
}

static enum mq_status verb_cancel(struct call *c, struct mq_error *err)
{
	struct mq_job_row row;
	enum mq_job_state state;
	json_int_t id;
	enum mq_status s = arg_int(c, "id", 1, INT64_MAX, &id, err);

	if (!s)
		s = mq_store_job_get(c->v->store, id, &row, err);
	if (s)
		return s;
	state = row.state;
	mq_job_row_clear(&row);
	if (state == MQ_JOB_DONE || state == MQ_JOB_FAILED)
		return mq_fail(err, MQ_ESTATE, "job %lld is %s already", (long long)id,
		               mq_job_state_name(state));
	if (state != MQ_JOB_CANCELLED) {
		s = mq_store_job_move(c->v->store, id, MQ_JOB_CANCELLED, NULL, NULL, c->now_ms, err);
		if (s)
			return s;
		mq_log(MQ_LOG_INFO, "job %lld is cancelled", (long long)id);
		mq_schedule_drop(c->v->schedule, id, c->now_ms);
	}
	return reply(c, json_pack("{s:I, s:s}", "id", id, "state", mq_job_state_name(MQ_JOB_CANCELLED)),
	             err);
}

static enum mq_status answer_export(struct call *c, const struct mq_export_state *x,
                                    struct mq_error *err)
{
	return reply(c,
	             json_pack("{s:I, s:b, s:f, s:o, s:o}", "handle", (json_int_t)x->handle, "ready",
	                       x->ready, "progress", x->progress, "bytes",
	                       x->ready ? json_integer((json_int_t)x->bytes) : json_null(), "sha256",
	                       x->sha256[0] ? json_string(x->sha256) : json_null()),
	             err);
}

static enum mq_status arg_what(const struct call *c, enum mq_export_what *out, struct mq_error *err)
{
	static const char *const names[] = {"picture", "preview", "counts", "smooth"};
	const char *what = json_string_value(json_object_get(c->args, "what"));

	for (size_t i = 0; what && i < sizeof names / sizeof names[0]; i++)
		if (!strcmp(what, names[i])) {
			*out = (enum mq_export_what)i;
			return MQ_OK;
		}
	return mq_fail(err, MQ_EINVAL, "what must be picture, preview, counts or smooth");
}

static enum mq_status arg_region(const struct call *c, const struct mq_job_row *row,
                                 struct mq_region *out, bool *given, struct mq_error *err)
{
	const json_t *j = json_object_get(c->args, "region");
	json_int_t n[4];

	*given = j && !json_is_null(j);
	if (!*given)
		return MQ_OK;
	if (!json_is_array(j) || json_array_size(j) != 4)
		return mq_fail(err, MQ_EINVAL, "--region takes X,Y,W,H");
	for (size_t i = 0; i < 4; i++) {
		if (!json_is_integer(json_array_get(j, i)))
			return mq_fail(err, MQ_EINVAL, "--region takes four integers X,Y,W,H");
		n[i] = json_integer_value(json_array_get(j, i));
	}
	/* Each bound alone first, so that no sum can overflow. */
	if (n[0] < 0 || n[1] < 0 || n[2] < 1 || n[3] < 1 || n[0] >= row->width || n[1] >= row->height ||
	    n[2] > row->width - n[0] || n[3] > row->height - n[1])
		return mq_fail(err, MQ_EINVAL, "--region lies outside the picture of %u x %u pixels", row->width,
		               row->height);
	*out = (struct mq_region){(uint32_t)n[0], (uint32_t)n[1], (uint32_t)n[2], (uint32_t)n[3]};
	return MQ_OK;
}

static enum mq_status check_ready(const struct mq_job_row *row, enum mq_export_what what,
                                  struct mq_error *err)
{
	long long id = (long long)row->id;

	if (row->state == MQ_JOB_FAILED || row->state == MQ_JOB_CANCELLED)
		return mq_fail(err, MQ_ESTATE, "job %lld is %s: it has no picture", id,
		               mq_job_state_name(row->state));
	if (row->state != MQ_JOB_DONE)
		return mq_fail(err, MQ_ESTATE, "job %lld is %s (%d %%): its picture is not ready", id,
		               mq_job_state_name(row->state), (int)(100 * mq_report_progress(row)));
	if ((what == MQ_EXPORT_COUNTS || what == MQ_EXPORT_SMOOTH) && !row->counts_bytes)
		return mq_fail(err, MQ_ESTATE, "job %lld did not keep its counts: submit it with --keep-counts",
		               id);
	return MQ_OK;
}

static enum mq_status verb_open(struct call *c, struct mq_error *err)
{
	struct mq_export_request q = {0};
	struct mq_export_state x;
	struct mq_region region;
	struct mq_job_row row;
	bool given = false;
	json_int_t id;
	enum mq_status s = arg_int(c, "id", 1, INT64_MAX, &id, err);

	if (!s)
		s = arg_what(c, &q.what, err);
	if (!s)
		s = mq_store_job_get(c->v->store, id, &row, err);
	if (s)
		return s;
	s = check_ready(&row, q.what, err);
	if (!s)
		s = arg_region(c, &row, &region, &given, err);
	if (!s && given && q.what == MQ_EXPORT_PREVIEW)
		s = mq_fail(err, MQ_EINVAL, "--region and --preview cannot go together");
	q.job = id;
	q.spec = row.spec;
	q.region = given ? &region : NULL;
	q.sha256 = q.what == MQ_EXPORT_PICTURE ? row.output_sha256 : NULL;
	if (!s)
		s = mq_export_begin(c->v->exports, &q, c->now_ms, &x, err);
	mq_job_row_clear(&row);
	return s ? s : answer_export(c, &x, err);
}

static enum mq_status verb_poll(struct call *c, struct mq_error *err)
{
	struct mq_export_state x;
	json_int_t handle;
	enum mq_status s = arg_int(c, "handle", 1, INT64_MAX, &handle, err);

	if (!s)
		s = mq_export_poll(c->v->exports, (uint64_t)handle, c->now_ms, &x, err);
	return s ? s : answer_export(c, &x, err);
}

static enum mq_status verb_read(struct call *c, struct mq_error *err)
{
	json_int_t handle, offset, length;
	void *buffer;
	size_t got;
	enum mq_status s = arg_int(c, "handle", 1, INT64_MAX, &handle, err);

	if (!s)
		s = arg_int(c, "offset", 0, INT64_MAX, &offset, err);
	if (!s)
		s = arg_int(c, "length", 1, MQ_READ_MAX, &length, err);
	if (s)
		return s;
	buffer = malloc((size_t)length);
	if (!buffer)
		return memory_out(err);
	s = mq_export_read(c->v->exports, (uint64_t)handle, (uint64_t)offset, buffer, (size_t)length,
	                   c->now_ms, &got, err);
	if (s) {
		free(buffer);
		return s;
	}
	c->answer->data = buffer;
	c->answer->data_len = got;
	return reply(c,
	             json_pack("{s:I, s:I}", "bytes", (json_int_t)got, "crc32",
	                       (json_int_t)crc32(crc32(0, NULL, 0), buffer, (uInt)got)),
	             err);
}

static enum mq_status verb_close(struct call *c, struct mq_error *err)
{
	json_int_t handle;
	enum mq_status s = arg_int(c, "handle", 1, INT64_MAX, &handle, err);

	if (s)
		return s;
	mq_export_end(c->v->exports, (uint64_t)handle);
	return reply(c, json_object(), err);
}

static const struct {
	const char *name;
	enum mq_status (*call)(struct call *c, struct mq_error *err);
} verbs[] = {
	{"hello", verb_hello}, {"submit", verb_submit}, {"status", verb_status}, {"cancel", verb_cancel},
	{"open", verb_open},   {"poll", verb_poll},     {"read", verb_read},     {"close", verb_close},
};

void mq_answer_clear(struct mq_answer *a)
{
	json_decref(a->result);
	free(a->data);
	memset(a, 0, sizeof *a);
}

void mq_verbs_call(struct mq_verbs *v, const struct mq_request *request, int64_t owner,
                   int64_t now_ms, struct mq_answer *answer)
{
	struct call c = {v, request->args, owner, now_ms, answer};

	memset(answer, 0, sizeof *answer);
	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
		if (strcmp(request->verb, verbs[i].name))
			continue;
		answer->status = verbs[i].call(&c, &answer->error);
		if (answer->status && (answer->result || answer->data)) {
			enum mq_status s = answer->status;
			struct mq_error e = answer->error;

			mq_answer_clear(answer);
			answer->status = s;
			answer->error = e;
		}
		if (answer->status == MQ_EINTERNAL || answer->status == MQ_EIO)
			mq_log(MQ_LOG_ERROR, "%s: %s", request->verb, answer->error.text);
		return;
	}
	answer->status = mq_fail(&answer->error, MQ_EPROTO, "there is no verb '%s' in protocol %d",
	                         request->verb, MQ_PROTOCOL);
}
