/* store_queue: what people do to jobs: pause, resume, retry, another priority, remove; and what becomes
 * of jobs that wait for another. The contracts stand in store.h. */
#include <string.h>

#include "src/store/store_private.h"

/* ---- small statements ---- */

static enum mq_status run_id(struct mq_store *store, enum mq_sql sql, int64_t id,
                             struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, sql);

	mq_put_int(&q, id);
	return mq_query_run(&q, err);
}

static enum mq_status run_number(struct mq_store *store, enum mq_sql sql, int64_t id, int64_t value,
                                 struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, sql);

	mq_put_int(&q, id);
	mq_put_int(&q, value);
	return mq_query_run(&q, err);
}

static enum mq_status fail_ended(int64_t id, enum mq_job_state state, struct mq_error *err)
{
	return mq_fail(err, MQ_ESTATE, "job %lld is %s already", (long long)id, mq_job_state_name(state));
}

/* ---- jobs that wait ---- */

enum mq_status mq_waiting_go(struct mq_store *store, int64_t id, struct mq_error *err)
{
	return run_id(store, MQ_SQL_WAITING_GO, id, err);
}

static enum mq_status end_waiting(struct mq_store *store, int64_t id, const char *how, int64_t now_ms,
                                  struct mq_error *err)
{
	enum mq_status status = run_id(store, MQ_SQL_WAITING_END_TILES, id, err);
	struct mq_query q;

	if (status != MQ_OK)
		return status;
	q = mq_query_start(store, MQ_SQL_WAITING_END);
	mq_put_int(&q, id);
	mq_put_int(&q, now_ms);
	mq_put_text(&q, how);
	return mq_query_run(&q, err);
}

enum mq_status mq_waiting_end(struct mq_store *store, int64_t id, enum mq_job_state ended,
                              int64_t now_ms, struct mq_error *err)
{
	return end_waiting(store, id, ended == MQ_JOB_CANCELLED ? "was cancelled" : "failed", now_ms, err);
}

enum mq_status mq_waiting_settle(struct mq_store *store, int64_t now_ms, struct mq_error *err)
{
	for (;;) {
		struct mq_query q = mq_query_start(store, MQ_SQL_WAITING_LOST);
		enum mq_status status;
		const char *how, *state;
		int64_t id;
		bool found;

		status = mq_query_step(&q, &found, err);
		if (status != MQ_OK || !found)
			return status;
		id = sqlite3_column_int64(q.stmt, 0);
		state = (const char *)sqlite3_column_text(q.stmt, 1);
		how = !state || !*state ? "is gone" : *state == 'c' ? "was cancelled" : "failed";
		mq_query_end(&q);
		status = end_waiting(store, id, how, now_ms, err);
		if (status != MQ_OK)
			return status;
	}
}

/* The one before it is gone: was it done? If not, this one has failed with it, and says so. */
static enum mq_status look_at_gone(const struct mq_job_row *row, struct mq_error *err)
{
	char text[64];

	sqlite3_snprintf((int)sizeof text, text, "job %lld" MQ_WAITED_FOR, (long long)row->after);
	if (row->state != MQ_JOB_FAILED || !row->error || strncmp(row->error, text, strlen(text)) != 0)
		return MQ_OK;
	return mq_fail(err, MQ_ESTATE,
	               "%.200s, and has been removed: submit job %lld again without --after (mandelq submit "
	               "--like=%lld)",
	               row->error, (long long)row->id, (long long)row->id);
}

/* Must a job wait (yet) for the one that it comes after? Not if it has begun: then that one was done. */
static enum mq_status must_wait(struct mq_store *store, const struct mq_job_row *row, bool *wait,
                                struct mq_error *err)
{
	struct mq_job_brief other;
	enum mq_status status;

	*wait = false;
	if (!row->after || row->started_ms)
		return MQ_OK;
	status = mq_job_brief(store, row->after, &other, err);
	if (status == MQ_ENOENT)
		return look_at_gone(row, err);
	if (status != MQ_OK)
		return status;
	if (other.state == MQ_JOB_FAILED)
		return mq_fail(err, MQ_ESTATE, "job %lld comes after job %lld, which is failed: retry that first",
		               (long long)row->id, (long long)row->after);
	if (other.state == MQ_JOB_CANCELLED)
		return mq_fail(err, MQ_ESTATE,
		               "job %lld comes after job %lld, which is cancelled: submit it again without "
		               "--after (mandelq submit --like=%lld)",
		               (long long)row->id, (long long)row->after, (long long)row->id);
	*wait = other.state != MQ_JOB_DONE;
	return MQ_OK;
}

/* The state of a job that nothing but its after holds back. */
static enum mq_status entry(struct mq_store *store, const struct mq_job_row *row,
                            enum mq_job_state *to, char reason[48], struct mq_error *err)
{
	bool wait;
	enum mq_status status = must_wait(store, row, &wait, err);

	reason[0] = '\0';
	if (status != MQ_OK)
		return status;
	if (row->strips_done == row->strips_total) {
		*to = MQ_JOB_ASSEMBLING;
	} else if (wait) {
		*to = MQ_JOB_WAITING;
		sqlite3_snprintf(48, reason, "for job %lld", (long long)row->after);
	} else {
		*to = row->started_ms && row->state == MQ_JOB_PAUSED ? MQ_JOB_RUNNING : MQ_JOB_QUEUED;
	}
	return MQ_OK;
}

/* ---- pause and resume ---- */

static enum mq_status pause_job(struct mq_store *store, int64_t id, const char *reason,
                                int64_t now_ms, struct mq_error *err)
{
	struct mq_job_brief job;
	struct mq_query q;
	enum mq_status status = mq_job_brief(store, id, &job, err);

	if (status != MQ_OK)
		return status;
	if (mq_job_is_terminal(job.state))
		return fail_ended(id, job.state, err);
	if (job.state != MQ_JOB_PAUSED)
		return mq_job_set_state(store, id, MQ_JOB_PAUSED, reason, NULL, now_ms, err);
	q = mq_query_start(store, MQ_SQL_JOB_REASON);
	mq_put_int(&q, id);
	mq_put_text(&q, reason);
	return mq_query_run(&q, err);
}

enum mq_status mq_store_job_pause(struct mq_store *store, int64_t id, const char *reason,
                                  int64_t now_ms, struct mq_error *err)
{
	enum mq_status status = mq_change_begin(store, err);

	if (status != MQ_OK)
		return status;
	return mq_change_end(store, pause_job(store, id, reason, now_ms, err), err);
}

static enum mq_status resume_job(struct mq_store *store, const struct mq_job_row *row,
                                 int64_t now_ms, struct mq_error *err)
{
	enum mq_job_state to;
	char reason[48];
	enum mq_status status;

	if (mq_job_is_terminal(row->state))
		return fail_ended(row->id, row->state, err);
	if (row->state != MQ_JOB_PAUSED)
		return MQ_OK;
	status = entry(store, row, &to, reason, err);
	if (status != MQ_OK)
		return status;
	return mq_job_set_state(store, row->id, to, reason[0] ? reason : NULL, NULL, now_ms, err);
}

enum mq_status mq_store_job_resume(struct mq_store *store, int64_t id, int64_t now_ms,
                                   struct mq_error *err)
{
	struct mq_job_row row;
	enum mq_status status = mq_store_job_get(store, id, &row, err);

	if (status != MQ_OK)
		return status;
	status = mq_change_begin(store, err);
	if (status == MQ_OK)
		status = mq_change_end(store, resume_job(store, &row, now_ms, err), err);
	mq_job_row_clear(&row);
	return status;
}

/* ---- retry ---- */

/* A job that was set aside has lost the numbers of its strips: it cannot go on. */
static enum mq_status check_covered(struct mq_store *store, const struct mq_job_row *row,
                                    struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_JOB_COVERED);
	enum mq_status status;
	int64_t strips, done;
	bool found;

	mq_put_int(&q, row->id);
	status = mq_query_step(&q, &found, err);
	if (status != MQ_OK || !found)
		return status;
	strips = sqlite3_column_int64(q.stmt, 0);
	done = sqlite3_column_int64(q.stmt, 1);
	mq_query_end(&q);
	if (strips != (int64_t)row->strips_total || done != (int64_t)row->strips_done)
		return mq_fail(err, MQ_ECORRUPT, "job %lld: its rows are damaged; submit it again",
		               (long long)row->id);
	return MQ_OK;
}

static enum mq_status retry(struct mq_store *store, const struct mq_job_row *row,
                            struct mq_error *err)
{
	enum mq_job_state to;
	struct mq_query q;
	char reason[48];
	enum mq_status status;

	if (row->state != MQ_JOB_FAILED)
		return mq_fail(err, MQ_ESTATE, "job %lld is %s: only a failed job can be tried again",
		               (long long)row->id, mq_job_state_name(row->state));
	status = check_covered(store, row, err);
	if (status == MQ_OK)
		status = entry(store, row, &to, reason, err);
	if (status == MQ_OK)
		status = run_id(store, MQ_SQL_JOB_RETRY_TILES, row->id, err);
	if (status != MQ_OK)
		return status;
	q = mq_query_start(store, MQ_SQL_JOB_RETRY);
	mq_put_int(&q, row->id);
	mq_put_text(&q, mq_job_state_name(to));
	mq_put_text(&q, reason[0] ? reason : NULL);
	return mq_query_run(&q, err);
}

enum mq_status mq_store_job_retry(struct mq_store *store, int64_t id, struct mq_error *err)
{
	struct mq_job_row row;
	enum mq_status status = mq_store_job_get(store, id, &row, err);

	if (status != MQ_OK)
		return status;
	status = mq_change_begin(store, err);
	if (status == MQ_OK)
		status = mq_change_end(store, retry(store, &row, err), err);
	mq_job_row_clear(&row);
	return status;
}

/* ---- priority, fetched, remove ---- */

static enum mq_status set_priority(struct mq_store *store, int64_t id, int64_t priority,
                                   struct mq_error *err)
{
	struct mq_job_brief job;
	enum mq_status status = mq_job_brief(store, id, &job, err);

	if (status != MQ_OK)
		return status;
	if (mq_job_is_terminal(job.state))
		return fail_ended(id, job.state, err);
	return run_number(store, MQ_SQL_JOB_PRIORITY, id, priority, err);
}

enum mq_status mq_store_job_priority(struct mq_store *store, int64_t id, int64_t priority,
                                     struct mq_error *err)
{
	enum mq_status status = mq_change_begin(store, err);

	if (status != MQ_OK)
		return status;
	return mq_change_end(store, set_priority(store, id, priority, err), err);
}

enum mq_status mq_store_job_fetched(struct mq_store *store, int64_t id, int64_t now_ms,
                                    struct mq_error *err)
{
	enum mq_status status = mq_change_begin(store, err);

	if (status != MQ_OK)
		return status;
	return mq_change_end(store, run_number(store, MQ_SQL_JOB_FETCHED, id, now_ms, err), err);
}

static enum mq_status remove_job(struct mq_store *store, int64_t id, struct mq_error *err)
{
	struct mq_job_brief job;
	enum mq_status status = mq_job_brief(store, id, &job, err);

	if (status != MQ_OK)
		return status;
	if (!mq_job_is_terminal(job.state))
		return mq_fail(err, MQ_ESTATE, "job %lld is %s: cancel it first", (long long)id,
		               mq_job_state_name(job.state));
	status = run_id(store, MQ_SQL_JOB_REMOVE_ATTEMPTS, id, err);
	if (status == MQ_OK)
		status = run_id(store, MQ_SQL_JOB_REMOVE_TILES, id, err);
	return status == MQ_OK ? run_id(store, MQ_SQL_JOB_REMOVE, id, err) : status;
}

enum mq_status mq_store_job_remove(struct mq_store *store, int64_t id, struct mq_error *err)
{
	enum mq_status status = mq_change_begin(store, err);

	if (status != MQ_OK)
		return status;
	return mq_change_end(store, remove_job(store, id, err), err);
}
