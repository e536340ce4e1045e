/* verbs: see verbs.h. One function a verb; the table at the end. */
#include "config.h"

#include "worker/verbs_private.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/clock.h"
#include "src/job.h"
#include "src/log.h"
#include "worker/active.h"
#include "worker/metrics.h"
#include "worker/report.h"
#include "worker/space.h"

/* Reading arguments: a wrong type is the client's fault and says which argument. */

enum mq_status mq_arg_int(const struct mq_call *c, const char *name, json_int_t min, json_int_t max,
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

enum mq_status mq_arg_int_or(const struct mq_call *c, const char *name, json_int_t min, json_int_t max,
                             json_int_t standard, json_int_t *out, struct mq_error *err)
{
	const json_t *j = json_object_get(c->args, name);

	*out = standard;
	return !j || json_is_null(j) ? MQ_OK : mq_arg_int(c, name, min, max, out, err);
}

enum mq_status mq_arg_bool(const struct mq_call *c, const char *name, bool *out, struct mq_error *err)
{
	const json_t *j = json_object_get(c->args, name);

	*out = json_is_true(j);
	if (j && !json_is_boolean(j) && !json_is_null(j))
		return mq_fail(err, MQ_EINVAL, "%s must be true or false", name);
	return MQ_OK;
}

/* A label or "" when it is absent. */
static enum mq_status arg_label(const struct mq_call *c, const char *name, size_t max, const char *what,
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

enum mq_status mq_verb_memory(struct mq_error *err)
{
	return mq_fail(err, MQ_ENOMEM_HOST, "the worker is out of host memory for a reply");
}

enum mq_status mq_verb_reply(struct mq_call *c, json_t *result, struct mq_error *err)
{
	if (!result)
		return mq_verb_memory(err);
	c->answer->result = result;
	return MQ_OK;
}

static enum mq_status verb_hello(struct mq_call *c, struct mq_error *err)
{
	json_t *devices = json_array();
	struct mq_device_report report;

	for (unsigned i = 0; devices && i < mq_schedule_devices(c->v->schedule); i++) {
		mq_schedule_device(c->v->schedule, i, &report);
		if (json_array_append_new(devices, mq_report_device(&report)))
			goto out;
	}
	return mq_verb_reply(c,
	             json_pack("{s:s, s:i, s:I, s:o, s:f, s:I, s:s, s:o, s:o}", "version", PACKAGE_VERSION,
	                       "protocol", MQ_PROTOCOL, "pid", (json_int_t)getpid(), "state_dir",
	                       mq_message_text(c->v->dir->path), "uptime_seconds",
	                       (double)(c->now_ms - c->v->started_ms) / 1e3, "watchdog_ends",
	                       (json_int_t)c->v->watchdog_ends, "note", c->v->note, "events",
	                       c->v->events ? mq_message_text(c->v->events) : json_null(),
	                       "devices", devices),
	             err);
out:
	json_decref(devices);
	return mq_verb_memory(err);
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

enum mq_status mq_verb_limits(const struct mq_call *c, int64_t owner, struct mq_error *err)
{
	const struct mq_user_limits *limit = &c->v->limits;
	bool own = owner == c->owner;
	uint64_t jobs = 0, bytes = 0;
	enum mq_status s = MQ_OK;

	if (limit->jobs)
		s = mq_store_jobs_open(c->v->store, owner, &jobs, err);
	if (!s && limit->bytes)
		s = mq_store_jobs_bytes(c->v->store, false, owner, &bytes, err);
	if (!s && limit->jobs && jobs >= limit->jobs)
		return mq_fail(err, MQ_EBUSY,
		               "%s %llu unfinished job%s, and --max-jobs of the worker allows %llu",
		               own ? "you have" : "its owner has", (unsigned long long)jobs,
		               jobs == 1 ? "" : "s", (unsigned long long)limit->jobs);
	if (!s && limit->bytes && bytes >= limit->bytes)
		return mq_fail(err, MQ_ENOSPC,
		               "%s pictures hold %llu bytes, and --max-bytes of the worker allows %llu: remove "
		               "some (mandelq remove, mandelq clean)",
		               own ? "your" : "its owner's", (unsigned long long)bytes,
		               (unsigned long long)limit->bytes);
	return s;
}

static enum mq_status store_job(struct mq_call *c, const struct mq_job *job, const char *name,
                                const char *request_id, json_int_t priority, json_int_t after,
                                json_t *canonical, int64_t *id, bool *existing, struct mq_error *err)
{
	char *spec = json_dumps(canonical, JSON_SORT_KEYS | JSON_COMPACT);
	struct mq_new_job n = {.spec = spec, .name = name, .request_id = *request_id ? request_id : NULL,
	                       .priority = priority, .owner = c->owner, .now_ms = mq_clock_wall_ms(),
	                       .width = job->width, .height = job->height,
	                       .iterations = job->iterations, .after = after};
	bool known = false;
	enum mq_status s;

	if (!spec)
		return mq_verb_memory(err);
	mq_active_layout(job, &n.layout);
	/* A request that was accepted once is not refused when it is repeated. */
	s = n.request_id ? mq_store_request_known(c->v->store, c->owner, n.request_id, &known, err) : MQ_OK;
	if (!s && !known)
		s = mq_verb_limits(c, c->owner, err);
	if (!s && !known)
		s = mq_space_fits(c->v->dir, &n.layout, job->keep_counts, err);
	if (!s)
		s = mq_store_job_add(c->v->store, &n, id, existing, err);
	free(spec);
	return s;
}

static enum mq_status verb_submit(struct mq_call *c, struct mq_error *err)
{
	struct mq_job_warnings warnings = {0};
	struct mq_job *job = NULL;
	const char *name, *request_id;
	json_t *canonical = NULL;
	json_int_t priority, after = 0;
	int64_t id = 0;
	bool existing = false;
	enum mq_status s;

	s = arg_label(c, "name", MQ_JOB_NAME_MAX, "--name", &name, err);
	if (!s)
		s = arg_label(c, "request_id", MQ_JOB_REQUEST_ID_MAX, "--request-id", &request_id, err);
	if (!s)
		s = mq_arg_int_or(c, "priority", -MQ_JOB_PRIORITY_MAX, MQ_JOB_PRIORITY_MAX, 0, &priority,
		                  err);
	if (!s)
		s = mq_arg_int_or(c, "after", 1, INT64_MAX, 0, &after, err);
	if (!s)
		s = mq_job_from_json(json_object_get(c->args, "job"), &job, &warnings, err);
	if (s)
		return s;
	canonical = mq_job_to_json(job);
	s = canonical ? store_job(c, job, name, request_id, priority, after, canonical, &id, &existing, err)
	              : mq_verb_memory(err);
	mq_job_free(job);
	if (s) {
		json_decref(canonical);
		return s;
	}
	if (!existing) {
		mq_log_job(MQ_LOG_INFO, id, "job %lld is queued", (long long)id);
		mq_schedule_look(c->v->schedule);
	}
	return mq_verb_reply(c,
	             json_pack("{s:I, s:b, s:o, s:o}", "id", (json_int_t)id, "existing", existing, "warnings",
	                       warnings_array(&warnings), "job", canonical),
	             err);
}

static const struct {
	const char *name;
	mq_verb *call;
} verbs[] = {
	{"hello", verb_hello},       {"submit", verb_submit},     {"status", mq_verb_status},
	{"tiles", mq_verb_tiles},    {"attempts", mq_verb_attempts}, {"metrics", mq_verb_metrics},
	{"cancel", mq_verb_cancel},  {"pause", mq_verb_pause},    {"resume", mq_verb_resume},
	{"retry", mq_verb_retry},    {"priority", mq_verb_priority}, {"remove", mq_verb_remove},
	{"clean", mq_verb_clean},    {"open", mq_verb_open},      {"poll", mq_verb_poll},
	{"read", mq_verb_read},      {"close", mq_verb_close},    {"backup", mq_verb_backup},
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
	struct mq_call c = {v, request->args, owner, now_ms, answer};

	mq_metrics_request();
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
		if (answer->status == MQ_EINTERNAL || answer->status == MQ_EIO ||
		    answer->status == MQ_ESYNC)
			mq_log(MQ_LOG_ERROR, "%s: %s", request->verb, answer->error.text);
		return;
	}
	answer->status = mq_fail(&answer->error, MQ_EPROTO, "there is no verb '%s' in protocol %d",
	                         request->verb, MQ_PROTOCOL);
}
