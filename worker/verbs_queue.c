/* verbs_queue: verbs that steer jobs and the queue. Only who owns a job may, and the operator. */
#include "worker/verbs_private.h"

#include "src/clock.h"
#include "src/job.h"
#include "src/log.h"
#include "worker/retain.h"

#define PAUSE_REASON "by hand"
#define CLEAN_BATCH 200 /* jobs a request removes at most: others want to be served */

bool mq_verb_is_operator(const struct mq_call *c)
{
	return c->owner == 0 || (c->owner >= 0 && c->owner == c->v->uid);
}

enum mq_status mq_verb_own_job(const struct mq_call *c, struct mq_job_row *row, struct mq_error *err)
{
	json_int_t id;
	enum mq_status s = mq_arg_int(c, "id", 1, INT64_MAX, &id, err);

	if (!s)
		s = mq_store_job_get(c->v->store, id, row, err);
	if (s)
		return s;
	if (mq_verb_is_operator(c) || (c->owner >= 0 && c->owner == row->owner))
		return MQ_OK;
	mq_job_row_clear(row);
	return mq_fail(err, MQ_EPERM, "job %lld belongs to somebody else", (long long)id);
}

static enum mq_status fail_operator(const char *what, struct mq_error *err)
{
	return mq_fail(err, MQ_EPERM, "only root and the worker's own user may %s", what);
}

/* {"id", "state"}, as it is now. */
static enum mq_status reply_state(struct mq_call *c, int64_t id, struct mq_error *err)
{
	struct mq_job_row row;
	enum mq_status s = mq_store_job_get(c->v->store, id, &row, err);

	if (s)
		return s;
	s = mq_verb_reply(c,
	                  json_pack("{s:I, s:s, s:I}", "id", (json_int_t)id, "state",
	                            mq_job_state_name(row.state), "priority", (json_int_t)row.priority),
	                  err);
	mq_job_row_clear(&row);
	return s;
}

enum mq_status mq_verb_cancel(struct mq_call *c, struct mq_error *err)
{
	struct mq_job_row row;
	enum mq_job_state state;
	int64_t id;
	enum mq_status s = mq_verb_own_job(c, &row, err);

	if (s)
		return s;
	id = row.id;
	state = row.state;
	mq_job_row_clear(&row);
	if (state == MQ_JOB_DONE || state == MQ_JOB_FAILED)
		return mq_fail(err, MQ_ESTATE, "job %lld is %s already", (long long)id,
		               mq_job_state_name(state));
	if (state != MQ_JOB_CANCELLED) {
		s = mq_store_job_move(c->v->store, id, MQ_JOB_CANCELLED, NULL, NULL, mq_clock_wall_ms(), err);
		if (s)
			return s;
		mq_log(MQ_LOG_INFO, "job %lld is cancelled", (long long)id);
		mq_schedule_drop(c->v->schedule, id, c->now_ms);
	}
	return reply_state(c, id, err);
}

/* All of the queue: kept in the database, so that it outlives the process. */
static enum mq_status hold_queue(struct mq_call *c, bool hold, struct mq_error *err)
{
	enum mq_status s;

	if (!mq_verb_is_operator(c))
		return fail_operator(hold ? "pause the queue" : "resume the queue", err);
	s = mq_store_meta_set(c->v->store, MQ_META_HELD, hold, err);
	if (s)
		return s;
	mq_log(MQ_LOG_INFO, "the queue %s", hold ? "is paused" : "goes on");
	mq_schedule_hold(c->v->schedule, hold);
	return mq_verb_reply(c, json_pack("{s:b}", "paused", hold), err);
}

static enum mq_status hold_job(struct mq_call *c, bool hold, struct mq_error *err)
{
	struct mq_job_row row;
	int64_t id;
	enum mq_status s = mq_verb_own_job(c, &row, err);

	if (s)
		return s;
	id = row.id;
	mq_job_row_clear(&row);
	s = hold ? mq_store_job_pause(c->v->store, id, PAUSE_REASON, mq_clock_wall_ms(), err)
	         : mq_store_job_resume(c->v->store, id, mq_clock_wall_ms(), err);
	if (s)
		return s;
	mq_log(MQ_LOG_INFO, "job %lld %s", (long long)id, hold ? "is paused" : "goes on");
	mq_schedule_look(c->v->schedule);
	return reply_state(c, id, err);
}

static enum mq_status hold(struct mq_call *c, bool on, struct mq_error *err)
{
	bool all;
	enum mq_status s = mq_arg_bool(c, "all", &all, err);

	if (s)
		return s;
	return all ? hold_queue(c, on, err) : hold_job(c, on, err);
}

enum mq_status mq_verb_pause(struct mq_call *c, struct mq_error *err)
{
	return hold(c, true, err);
}

enum mq_status mq_verb_resume(struct mq_call *c, struct mq_error *err)
{
	return hold(c, false, err);
}

/* One that is on its way again stays so: the request may be a repeated one. */
enum mq_status mq_verb_retry(struct mq_call *c, struct mq_error *err)
{
	struct mq_job_row row;
	enum mq_job_state state;
	int64_t id, owner;
	enum mq_status s = mq_verb_own_job(c, &row, err);

	if (s)
		return s;
	id = row.id;
	owner = row.owner;
	state = row.state;
	mq_job_row_clear(&row);
	if (mq_job_is_terminal(state)) {
		if (state == MQ_JOB_FAILED) /* the others are refused for what they are */
			s = mq_verb_limits(c, owner, err);
		if (!s)
			s = mq_store_job_retry(c->v->store, id, err);
		if (s)
			return s;
		mq_log(MQ_LOG_INFO, "job %lld is tried again", (long long)id);
		mq_schedule_revive(c->v->schedule, id);
	}
	return reply_state(c, id, err);
}

enum mq_status mq_verb_priority(struct mq_call *c, struct mq_error *err)
{
	struct mq_job_row row;
	json_int_t priority;
	int64_t id;
	enum mq_status s = mq_arg_int(c, "priority", -MQ_JOB_PRIORITY_MAX, MQ_JOB_PRIORITY_MAX, &priority,
	                              err);

	if (!s)
		s = mq_verb_own_job(c, &row, err);
	if (s)
		return s;
	id = row.id;
	mq_job_row_clear(&row);
	s = mq_store_job_priority(c->v->store, id, priority, err);
	if (s)
		return s;
	mq_schedule_look(c->v->schedule);
	return reply_state(c, id, err);
}

enum mq_status mq_verb_remove(struct mq_call *c, struct mq_error *err)
{
	struct mq_job_row row;
	bool force, unfetched;
	int64_t id;
	enum mq_status s = mq_arg_bool(c, "force", &force, err);

	if (!s)
		s = mq_verb_own_job(c, &row, err);
	if (s)
		return s;
	id = row.id;
	unfetched = row.state == MQ_JOB_DONE && !row.fetched_ms;
	mq_job_row_clear(&row);
	if (unfetched && !force)
		return mq_fail(err, MQ_ESTATE,
		               "job %lld: nobody has fetched its picture yet; --force removes it all the same",
		               (long long)id);
	s = mq_retain_remove(c->v->store, c->v->schedule, id, err);
	return s ? s : mq_verb_reply(c, json_pack("{s:I, s:b}", "id", (json_int_t)id, "removed", true), err);
}

/* {"removed":[ids], "more":bool}: a client asks again while there are more. */
enum mq_status mq_verb_clean(struct mq_call *c, struct mq_error *err)
{
	const json_t *age = json_object_get(c->args, "older_than_seconds");
	struct mq_old which = {.everybody = mq_verb_is_operator(c), .owner = c->owner};
	int64_t ids[CLEAN_BATCH];
	json_t *removed = json_array();
	size_t count = 0;
	enum mq_status s;

	if (!removed)
		return mq_verb_memory(err);
	s = mq_arg_bool(c, "force", &which.unfetched, err);
	if (!s && (!json_is_number(age) || !(json_number_value(age) >= 0 && json_number_value(age) <= 1e10)))
		s = mq_fail(err, MQ_EINVAL, "older_than_seconds must be a number from 0 to 1e10");
	if (!s) {
		which.before_ms = mq_clock_wall_ms() - (int64_t)(json_number_value(age) * 1e3);
		s = mq_store_jobs_old(c->v->store, &which, ids, CLEAN_BATCH, &count, err);
	}
	for (size_t i = 0; !s && i < count; i++) {
		s = mq_retain_remove(c->v->store, c->v->schedule, ids[i], err);
		if (!s && json_array_append_new(removed, json_integer((json_int_t)ids[i])))
			s = mq_verb_memory(err);
	}
	if (s) {
		json_decref(removed);
		return s;
	}
	return mq_verb_reply(c,
	                     json_pack("{s:o, s:b}", "removed", removed, "more", (int)(count == CLEAN_BATCH)),
	                     err);
}
