/* store_job: jobs, from submit to their end. The contracts stand in store.h. */
#include <stdlib.h>
#include <string.h>

#include "src/store/store_private.h"

/* ---- adding ---- */

/* *id is 0 if the request id is new. */
static enum mq_status find_request(struct mq_store *store, const struct mq_new_job *job, int64_t *id,
                                   struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_JOB_BY_REQUEST);
	enum mq_status status;
	bool row, same;

	mq_put_text(&q, job->request_id);
	mq_put_int(&q, job->owner);
	mq_put_text(&q, job->spec);
	mq_put_text(&q, job->name);
	mq_put_int(&q, job->priority);
	mq_put_int(&q, job->after);
	status = mq_query_step(&q, &row, err);
	if (status != MQ_OK || !row)
		return status;
	*id = mq_col_int(&q, 0, 1, INT64_MAX);
	same = mq_col_int(&q, 1, 0, 1) == 1;
	mq_query_end(&q);
	if (q.bad)
		return mq_fail(err, MQ_ECORRUPT, "job %lld: its row in the database is damaged",
		               (long long)*id);
	if (!same)
		return mq_fail(err, MQ_ECONFLICT, "request id \"%s\" belongs to a different job, %lld",
		               job->request_id, (long long)*id);
	return MQ_OK;
}

static enum mq_status add_tiles(struct mq_store *store, int64_t id, const struct mq_layout *layout,
                                struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_TILES_ADD);
	enum mq_status status;

	mq_put_int(&q, id);
	mq_put_int(&q, layout->strips);
	mq_put_int(&q, layout->tile_strips);
	status = mq_query_run(&q, err);
	if (status == MQ_OK && sqlite3_changes64(store->db) != (int64_t)layout->tiles)
		status = mq_fail(err, MQ_EINTERNAL, "%u tiles in the layout, %lld added", layout->tiles,
		                 (long long)sqlite3_changes64(store->db));
	return status;
}

/* *wait: the job that it is to come after has not ended yet. */
static enum mq_status look_after(struct mq_store *store, int64_t after, bool *wait,
                                 struct mq_error *err)
{
	struct mq_job_brief other;
	enum mq_status status;

	*wait = false;
	if (!after)
		return MQ_OK;
	status = mq_job_brief(store, after, &other, err);
	if (status != MQ_OK)
		return status;
	if (other.state == MQ_JOB_FAILED || other.state == MQ_JOB_CANCELLED)
		return mq_fail(err, MQ_ESTATE, "--after: job %lld is %s: nothing can come after it",
		               (long long)after, mq_job_state_name(other.state));
	*wait = other.state != MQ_JOB_DONE;
	return MQ_OK;
}

static enum mq_status add_job(struct mq_store *store, const struct mq_new_job *job, int64_t *id,
                              struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_JOB_ADD);
	enum mq_status status;
	bool wait;

	if (job->layout.strips == 0 || job->layout.tile_strips == 0)
		return mq_fail(err, MQ_EINTERNAL, "a job without strips");
	status = look_after(store, job->after, &wait, err);
	if (status != MQ_OK)
		return status;
	mq_put_text(&q, job->name);
	mq_put_text(&q, job->spec);
	mq_put_text(&q, job->request_id);
	mq_put_int(&q, job->priority);
	mq_put_int(&q, job->owner);
	mq_put_int(&q, job->now_ms);
	mq_put_int(&q, job->width);
	mq_put_int(&q, job->height);
	mq_put_int(&q, job->iterations);
	mq_put_int(&q, job->layout.strips);
	mq_put_int(&q, job->layout.tiles);
	mq_put_int(&q, job->after);
	mq_put_int(&q, wait);
	status = mq_query_run(&q, err);
	if (status != MQ_OK)
		return status;
	*id = sqlite3_last_insert_rowid(store->db);
	return add_tiles(store, *id, &job->layout, err);
}

enum mq_status mq_store_job_add(struct mq_store *store, const struct mq_new_job *job, int64_t *id,
                                bool *existing, struct mq_error *err)
{
	enum mq_status status;
	int64_t found = 0, added = 0;

	status = mq_change_begin(store, err);
	if (status != MQ_OK)
		return status;
	if (job->request_id)
		status = find_request(store, job, &found, err);
	if (status == MQ_OK && found == 0)
		status = add_job(store, job, &added, err);
	status = mq_change_end(store, status, err);
	if (status == MQ_OK) {
		*id = found ? found : added;
		*existing = found != 0;
	}
	return status;
}

/* ---- reading ---- */

enum mq_status mq_store_request_known(struct mq_store *store, int64_t owner, const char *request_id,
                                      bool *known, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_JOB_BY_REQUEST);
	enum mq_status status;

	mq_put_text(&q, request_id);
	mq_put_int(&q, owner);
	status = mq_query_step(&q, known, err);
	if (status == MQ_OK && *known)
		mq_query_end(&q);
	return status;
}

void mq_job_row_clear(struct mq_job_row *row)
{
	free(row->name);
	free(row->spec);
	free(row->request_id);
	free(row->reason);
	free(row->error);
	memset(row, 0, sizeof *row);
}

static void copy_sha256(struct mq_query *q, int col, char out[65])
{
	const unsigned char *text = sqlite3_column_text(q->stmt, col);
	size_t len = text ? strlen((const char *)text) : 1;

	if (len == 0 || len == 64)
		memcpy(out, text, len + 1);
	else
		q->bad = true;
}

static void read_progress(struct mq_query *q, struct mq_job_row *row)
{
	row->strips_total = (uint64_t)mq_col_int(q, 11, 1, UINT32_MAX);
	row->strips_done = (uint64_t)mq_col_int(q, 12, 0, (int64_t)row->strips_total);
	row->tiles_total = (uint64_t)mq_col_int(q, 13, 1, (int64_t)row->strips_total);
	row->tiles_done = (uint64_t)mq_col_int(q, 14, 0, (int64_t)row->tiles_total);
	row->tiles_split = (uint64_t)mq_col_int(q, 15, 0, INT64_MAX);
	row->compute_seconds = mq_col_real(q, 16);
}

/* The columns stand in sql.c. */
static void read_row(struct mq_query *q, struct mq_job_row *row)
{
	row->id = mq_col_int(q, 0, 1, INT64_MAX);
	row->name = mq_col_text(q, 1, false);
	row->request_id = mq_col_text(q, 2, true);
	row->reason = mq_col_text(q, 3, true);
	row->error = mq_col_text(q, 4, true);
	row->priority = mq_col_int(q, 5, INT64_MIN, INT64_MAX);
	row->owner = mq_col_int(q, 6, INT64_MIN, INT64_MAX);
	row->state = mq_col_job_state(q, 7);
	row->width = (uint32_t)mq_col_int(q, 8, 1, 1 << 24);
	row->height = (uint32_t)mq_col_int(q, 9, 1, 1 << 24);
	row->iterations = (uint32_t)mq_col_int(q, 10, 1, UINT32_MAX - 1);
	read_progress(q, row);
	row->created_ms = mq_col_int(q, 17, 0, INT64_MAX);
	row->started_ms = mq_col_int(q, 18, 0, INT64_MAX);
	row->finished_ms = mq_col_int(q, 19, 0, INT64_MAX);
	row->output_bytes = mq_col_int(q, 20, 0, INT64_MAX);
	copy_sha256(q, 21, row->output_sha256);
	row->preview_bytes = mq_col_int(q, 22, 0, INT64_MAX);
	row->counts_bytes = mq_col_int(q, 23, 0, INT64_MAX);
	row->spec = mq_col_text(q, 24, false);
	/* Their tables keep them in range: they were not there before checks of rows were needed. */
	row->after = sqlite3_column_int64(q->stmt, 25);
	row->fetched_ms = sqlite3_column_int64(q->stmt, 26);
	row->inside = sqlite3_column_int64(q->stmt, 27);
	row->flat = sqlite3_column_int(q->stmt, 28);
}

enum mq_status mq_store_job_get(struct mq_store *store, int64_t id, struct mq_job_row *out,
                                struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_JOB_GET);
	struct mq_job_row row = {0};
	enum mq_status status;
	bool found;

	mq_put_int(&q, id);
	status = mq_query_step(&q, &found, err);
	if (status != MQ_OK)
		return status;
	if (!found)
		return mq_fail(err, MQ_ENOENT, "no job %lld", (long long)id);
	read_row(&q, &row);
	mq_query_end(&q);
	if (q.rc != SQLITE_OK)
		status = mq_fail(err, MQ_ENOMEM_HOST, "no host memory for the row of job %lld", (long long)id);
	else if (q.bad)
		status = mq_fail(err, MQ_ECORRUPT, "job %lld: its row in the database is damaged",
		                 (long long)id);
	if (status == MQ_OK)
		*out = row;
	else
		mq_job_row_clear(&row);
	return status;
}

/* *id is set to the next job's, or left alone with *found = false. */
static enum mq_status next_job(struct mq_store *store, enum mq_sql sql, int64_t *id, bool *found,
                               struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, sql);
	enum mq_status status;

	mq_put_int(&q, *id);
	status = mq_query_step(&q, found, err);
	if (status != MQ_OK || !*found)
		return status;
	*id = sqlite3_column_int64(q.stmt, 0);
	mq_query_end(&q);
	return MQ_OK;
}

/* A look-up a job rather than one open statement: each may use the store as it likes. */
static enum mq_status walk(struct mq_store *store, enum mq_sql sql, int64_t from, int64_t limit,
                           enum mq_status (*each)(void *arg, const struct mq_job_row *row), void *arg,
                           struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	struct mq_error why, damage;
	bool damaged = false;
	int64_t id = from;

	for (int64_t n = 0; status == MQ_OK && n < limit;) {
		struct mq_job_row row = {0};
		bool found;

		status = next_job(store, sql, &id, &found, err);
		if (status != MQ_OK || !found)
			break;
		status = mq_store_job_get(store, id, &row, &why);
		if (status == MQ_OK) {
			status = each(arg, &row);
			mq_job_row_clear(&row);
			n++; /* a page with a damaged row is as long as others */
		} else if (status == MQ_ECORRUPT) {
			if (!damaged)
				damage = why;
			damaged = true;
			status = MQ_OK;
		} else {
			return mq_fail(err, status, "%s", why.text);
		}
	}
	if (status == MQ_OK && damaged)
		return mq_fail(err, MQ_ECORRUPT, "%s", damage.text);
	return status;
}

enum mq_status mq_store_job_each(struct mq_store *store, int64_t after, int64_t limit,
                                 enum mq_status (*each)(void *arg, const struct mq_job_row *row),
                                 void *arg, struct mq_error *err)
{
	return walk(store, MQ_SQL_JOB_AFTER, after, limit, each, arg, err);
}

enum mq_status mq_store_job_each_down(struct mq_store *store, int64_t before, int64_t limit,
                                      enum mq_status (*each)(void *arg, const struct mq_job_row *row),
                                      void *arg, struct mq_error *err)
{
	return walk(store, MQ_SQL_JOB_BEFORE, before, limit, each, arg, err);
}

/* The ids that a query of a text and a limit gives. */
static enum mq_status list_ids(struct mq_store *store, enum mq_sql sql, const char *text, int64_t *ids,
                               size_t max, size_t *count, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, sql);
	enum mq_status status = MQ_OK;
	bool row = true;
	size_t n = 0;

	mq_put_text(&q, text);
	mq_put_int(&q, max > INT32_MAX ? INT32_MAX : (int64_t)max);
	while (status == MQ_OK && row) {
		status = mq_query_step(&q, &row, err);
		if (status == MQ_OK && row)
			ids[n++] = sqlite3_column_int64(q.stmt, 0);
	}
	if (status == MQ_OK)
		*count = n;
	return status;
}

enum mq_status mq_store_jobs_in(struct mq_store *store, enum mq_job_state state, int64_t *ids,
                                size_t max, size_t *count, struct mq_error *err)
{
	return list_ids(store, MQ_SQL_JOBS_IN, mq_job_state_name(state), ids, max, count, err);
}

enum mq_status mq_store_jobs_paused(struct mq_store *store, const char *reason, int64_t *ids,
                                    size_t max, size_t *count, struct mq_error *err)
{
	return list_ids(store, MQ_SQL_JOBS_PAUSED, reason, ids, max, count, err);
}

/* ---- moving ---- */

enum mq_status mq_job_brief(struct mq_store *store, int64_t id, struct mq_job_brief *out,
                            struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_JOB_STATE);
	enum mq_status status;
	bool row;

	mq_put_int(&q, id);
	status = mq_query_step(&q, &row, err);
	if (status != MQ_OK)
		return status;
	if (!row)
		return mq_fail(err, MQ_ENOENT, "no job %lld", (long long)id);
	out->state = mq_col_job_state(&q, 0);
	out->strips_total = (uint64_t)mq_col_int(&q, 1, 1, UINT32_MAX);
	out->strips_done = (uint64_t)mq_col_int(&q, 2, 0, (int64_t)out->strips_total);
	mq_query_end(&q);
	if (q.bad)
		return mq_fail(err, MQ_ECORRUPT, "job %lld: its row in the database is damaged",
		               (long long)id);
	return MQ_OK;
}

/* Every tile that is pending or running fails; open attempts end as "dropped". */
static enum mq_status end_tiles(struct mq_store *store, int64_t job, int64_t now_ms,
                                struct mq_error *err)
{
	static const enum mq_sql steps[] = {MQ_SQL_JOB_END_RUNNING, MQ_SQL_JOB_END_READY,
	                                    MQ_SQL_JOB_END_SUSPECT};
	struct mq_query q = mq_query_start(store, MQ_SQL_JOB_DROP_ATTEMPTS);
	enum mq_status status;

	mq_put_int(&q, job);
	mq_put_int(&q, now_ms);
	status = mq_query_run(&q, err);
	for (size_t i = 0; status == MQ_OK && i < sizeof steps / sizeof steps[0]; i++) {
		q = mq_query_start(store, steps[i]);
		mq_put_int(&q, job);
		status = mq_query_run(&q, err);
	}
	return status;
}

enum mq_status mq_job_set_state(struct mq_store *store, int64_t id, enum mq_job_state to,
                                const char *reason, const char *error, int64_t now_ms,
                                struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_JOB_MOVE);
	enum mq_status status;

	mq_put_int(&q, id);
	mq_put_text(&q, mq_job_state_name(to));
	mq_put_text(&q, reason);
	mq_put_text(&q, error);
	mq_put_int(&q, now_ms);
	status = mq_query_run(&q, err);
	if (status != MQ_OK || (to != MQ_JOB_FAILED && to != MQ_JOB_CANCELLED))
		return status;
	status = end_tiles(store, id, now_ms, err);
	return status == MQ_OK ? mq_waiting_end(store, id, to, now_ms, err) : status;
}

/* A job that was paused when its last tile was done has nothing left to run: it goes on to be
 * assembled, whatever it is told to go back to. */
static enum mq_job_state target(const struct mq_job_brief *job, enum mq_job_state to)
{
	bool complete = job->strips_done == job->strips_total;

	if (complete && (job->state == MQ_JOB_PAUSED || job->state == MQ_JOB_WAITING) &&
	    (to == MQ_JOB_QUEUED || to == MQ_JOB_RUNNING))
		return MQ_JOB_ASSEMBLING;
	return to;
}

static enum mq_status move(struct mq_store *store, int64_t id, enum mq_job_state to,
                           const char *reason, const char *error, int64_t now_ms,
                           struct mq_error *err)
{
	struct mq_job_brief job;
	enum mq_status status;

	status = mq_job_brief(store, id, &job, err);
	if (status != MQ_OK || job.state == to)
		return status;
	if (!mq_job_may(job.state, to))
		return mq_fail(err, MQ_ESTATE, "job %lld is %s and cannot become %s", (long long)id,
		               mq_job_state_name(job.state), mq_job_state_name(to));
	if (to == MQ_JOB_DONE)
		return mq_fail(err, MQ_EINTERNAL, "job %lld cannot be done without a picture",
		               (long long)id);
	if (to == MQ_JOB_ASSEMBLING && job.strips_done != job.strips_total)
		return mq_fail(err, MQ_ESTATE, "job %lld is %s and has tiles left: it cannot become %s",
		               (long long)id, mq_job_state_name(job.state), mq_job_state_name(to));
	return mq_job_set_state(store, id, target(&job, to), reason, error, now_ms, err);
}

enum mq_status mq_store_job_move(struct mq_store *store, int64_t id, enum mq_job_state to,
                                 const char *reason, const char *error, int64_t now_ms,
                                 struct mq_error *err)
{
	enum mq_status status = mq_change_begin(store, err);

	if (status != MQ_OK)
		return status;
	return mq_change_end(store, move(store, id, to, reason, error, now_ms, err), err);
}

static enum mq_status finish(struct mq_store *store, int64_t id, const struct mq_output *output,
                             int64_t now_ms, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_JOB_DONE);
	struct mq_job_brief job;
	enum mq_status status;

	status = mq_job_brief(store, id, &job, err);
	if (status != MQ_OK)
		return status;
	if (!mq_job_may(job.state, MQ_JOB_DONE) || job.strips_done != job.strips_total)
		return mq_fail(err, MQ_ESTATE, "job %lld is %s and cannot become %s", (long long)id,
		               mq_job_state_name(job.state), mq_job_state_name(MQ_JOB_DONE));
	mq_put_int(&q, id);
	mq_put_int(&q, now_ms);
	mq_put_int(&q, output->picture_bytes);
	mq_put_text(&q, output->picture_sha256);
	mq_put_int(&q, output->preview_bytes);
	mq_put_int(&q, output->counts_bytes);
	mq_put_int(&q, output->flat);
	status = mq_query_run(&q, err);
	return status == MQ_OK ? mq_waiting_go(store, id, err) : status;
}

enum mq_status mq_store_job_done(struct mq_store *store, int64_t id, const struct mq_output *output,
                                 int64_t now_ms, struct mq_error *err)
{
	enum mq_status status = mq_change_begin(store, err);

	if (status != MQ_OK)
		return status;
	return mq_change_end(store, finish(store, id, output, now_ms, err), err);
}
