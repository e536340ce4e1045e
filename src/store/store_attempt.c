/* store_attempt: the attempts made at tiles, from begin to done or retry. The contracts stand in
 * store.h.
 *
 * tiles.attempt names the one attempt that may still change a tile; every other finds MQ_ESTALE. */
#include <math.h>

#include "src/store/store_private.h"

/* ---- beginning ---- */

static enum mq_status add_attempt(struct mq_store *store, const struct mq_tile_row *tile,
                                  const char *device, bool alone, int64_t now_ms, int64_t *attempt,
                                  struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_ATTEMPT_ADD);
	enum mq_status status;

	mq_put_int(&q, tile->job);
	mq_put_int(&q, tile->id);
	mq_put_text(&q, device);
	mq_put_int(&q, alone);
	mq_put_int(&q, now_ms);
	status = mq_query_run(&q, err);
	if (status != MQ_OK)
		return status;
	*attempt = sqlite3_last_insert_rowid(store->db);
	q = mq_query_start(store, MQ_SQL_TILE_RUN);
	mq_put_int(&q, tile->id);
	mq_put_int(&q, *attempt);
	return mq_query_run(&q, err);
}

static enum mq_status begin(struct mq_store *store, int64_t id, const char *device, bool alone,
                            int64_t now_ms, int64_t *attempt, struct mq_error *err)
{
	enum mq_status status;
	struct mq_tile tile;

	status = mq_tile_get(store, id, &tile, err);
	if (status != MQ_OK)
		return status;
	if (tile.state != MQ_TILE_PENDING)
		return mq_tile_wrong_state(&tile, mq_tile_state_name(MQ_TILE_PENDING), err);
	if (tile.job_state != MQ_JOB_QUEUED && tile.job_state != MQ_JOB_RUNNING)
		return mq_fail(err, MQ_ESTATE, "job %lld is %s: none of its tiles may begin",
		               (long long)tile.row.job, mq_job_state_name(tile.job_state));
	status = add_attempt(store, &tile.row, device, alone, now_ms, attempt, err);
	if (status == MQ_OK && tile.job_state == MQ_JOB_QUEUED)
		status = mq_job_set_state(store, tile.row.job, MQ_JOB_RUNNING, NULL, NULL, now_ms, err);
	return status;
}

enum mq_status mq_store_attempt_begin(struct mq_store *store, int64_t tile, const char *device,
                                      bool alone, int64_t now_ms, int64_t *attempt,
                                      struct mq_error *err)
{
	enum mq_status status;
	int64_t token = 0;

	status = mq_change_begin(store, err);
	if (status != MQ_OK)
		return status;
	status = begin(store, tile, device, alone, now_ms, &token, err);
	status = mq_change_end(store, status, err);
	if (status == MQ_OK)
		*attempt = token;
	return status;
}

enum mq_status mq_attempt_end(struct mq_store *store, int64_t attempt, const char *outcome,
                              int64_t now_ms, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_ATTEMPT_END);

	mq_put_int(&q, attempt);
	mq_put_int(&q, now_ms);
	mq_put_text(&q, outcome);
	return mq_query_run(&q, err);
}

/* ---- ending ---- */

/* The tile that attempt may still change; MQ_ESTALE if there is none. */
static enum mq_status tile_of_attempt(struct mq_store *store, int64_t attempt,
                                      struct mq_tile_row *out, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_TILE_OF_ATTEMPT);
	enum mq_status status;
	bool row;

	mq_put_int(&q, attempt);
	status = mq_query_step(&q, &row, err);
	if (status != MQ_OK)
		return status;
	if (!row)
		return mq_fail(err, MQ_ESTALE, "attempt %lld has been superseded", (long long)attempt);
	mq_tile_read(&q, out);
	mq_query_end(&q);
	return q.bad ? mq_tile_damaged(out->id, err) : MQ_OK;
}

static enum mq_status write_done(struct mq_store *store, const struct mq_tile_row *tile,
                                 int64_t attempt, const struct mq_tile_file *file, double seconds,
                                 struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_TILE_DONE);
	enum mq_status status;

	mq_put_int(&q, tile->id);
	mq_put_int(&q, attempt);
	mq_put_int(&q, (int64_t)file->bytes);
	mq_put_blob(&q, file->sha256, sizeof file->sha256);
	mq_put_real(&q, seconds);
	mq_put_int(&q, (int64_t)file->inside);
	status = mq_query_run(&q, err);
	if (status != MQ_OK)
		return status;
	q = mq_query_start(store, MQ_SQL_JOB_TILE_DONE);
	mq_put_int(&q, tile->job);
	mq_put_int(&q, tile->span.count);
	mq_put_real(&q, seconds);
	mq_put_int(&q, (int64_t)file->inside);
	status = mq_query_run(&q, err);
	if (status != MQ_OK)
		return status;
	q = mq_query_start(store, MQ_SQL_DEATHS_FORGET);
	return mq_query_run(&q, err);
}

/* A paused or waiting job stays so; mq_store_job_move sends it to assembling when it goes on. */
static enum mq_status complete_job(struct mq_store *store, int64_t id, int64_t now_ms,
                                   bool *complete, struct mq_error *err)
{
	struct mq_job_brief job;
	enum mq_status status;

	*complete = false;
	status = mq_job_brief(store, id, &job, err);
	if (status != MQ_OK || job.strips_done != job.strips_total ||
	    (job.state != MQ_JOB_RUNNING && job.state != MQ_JOB_QUEUED))
		return status;
	*complete = true;
	return mq_job_set_state(store, id, MQ_JOB_ASSEMBLING, NULL, NULL, now_ms, err);
}

static enum mq_status finish(struct mq_store *store, int64_t attempt,
                             const struct mq_tile_file *file, double seconds, int64_t now_ms,
                             bool *complete, struct mq_error *err)
{
	struct mq_tile_row tile;
	enum mq_status status;

	status = tile_of_attempt(store, attempt, &tile, err);
	if (status == MQ_OK)
		status = write_done(store, &tile, attempt, file, seconds, err);
	if (status == MQ_OK)
		status = mq_attempt_end(store, attempt, "done", now_ms, err);
	if (status == MQ_OK)
		status = complete_job(store, tile.job, now_ms, complete, err);
	return status;
}

enum mq_status mq_store_tile_done(struct mq_store *store, int64_t attempt,
                                  const struct mq_tile_file *file, double compute_seconds,
                                  int64_t now_ms, bool *job_complete, struct mq_error *err)
{
	double seconds = isfinite(compute_seconds) && compute_seconds > 0 ? compute_seconds : 0;
	enum mq_status status;
	bool complete = false;

	if (file->bytes > INT64_MAX || file->inside > INT64_MAX / 2)
		return mq_fail(err, MQ_EINVAL, "a tile file of %llu bytes with %llu samples inside",
		               (unsigned long long)file->bytes, (unsigned long long)file->inside);
	status = mq_change_begin(store, err);
	if (status != MQ_OK)
		return status;
	status = finish(store, attempt, file, seconds, now_ms, &complete, err);
	status = mq_change_end(store, status, err);
	if (status == MQ_OK)
		*job_complete = complete;
	return status;
}

static enum mq_status retry(struct mq_store *store, int64_t attempt, const char *outcome,
                            int64_t now_ms, struct mq_error *err)
{
	struct mq_tile_row tile;
	enum mq_status status;
	struct mq_query q;

	status = tile_of_attempt(store, attempt, &tile, err);
	if (status == MQ_OK)
		status = mq_attempt_end(store, attempt, outcome, now_ms, err);
	if (status != MQ_OK)
		return status;
	q = mq_query_start(store, MQ_SQL_TILE_PENDING);
	mq_put_int(&q, tile.id);
	return mq_query_run(&q, err);
}

enum mq_status mq_store_tile_retry(struct mq_store *store, int64_t attempt, const char *outcome,
                                   int64_t now_ms, struct mq_error *err)
{
	enum mq_status status = mq_change_begin(store, err);

	if (status != MQ_OK)
		return status;
	return mq_change_end(store, retry(store, attempt, outcome, now_ms, err), err);
}
