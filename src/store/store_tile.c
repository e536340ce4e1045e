/* store_tile: which tiles come next, and what becomes of those that are not in flight: split, done
 * again, failed, assembled. The contracts stand in store.h.
 *
 * What always holds: a job's counters agree with its tiles; the tiles of a job that are not split
 * cover each of its strips once. */
#include <string.h>

#include "src/store/store_private.h"

enum mq_status mq_tile_damaged(int64_t tile, struct mq_error *err)
{
	return mq_fail(err, MQ_ECORRUPT, "tile %lld: its row in the database is damaged",
	               (long long)tile);
}

void mq_tile_read(struct mq_query *q, struct mq_tile_row *tile)
{
	tile->id = mq_col_int(q, 0, 1, INT64_MAX);
	tile->job = mq_col_int(q, 1, 1, INT64_MAX);
	tile->span.first = (uint32_t)mq_col_int(q, 2, 0, (1 << 24) - 1);
	tile->span.count = (uint32_t)mq_col_int(q, 3, 1, 1 << 24);
	tile->suspect = mq_col_int(q, 4, 0, 1) == 1;
	tile->deaths = (uint32_t)mq_col_int(q, 5, 0, UINT32_MAX);
	tile->attempts = (uint32_t)mq_col_int(q, 6, 0, UINT32_MAX);
}

static enum mq_tile_state col_tile_state(struct mq_query *q, int col)
{
	const char *name = (const char *)sqlite3_column_text(q->stmt, col);

	for (int i = 0; name && i < MQ_TILE_STATE_COUNT; i++) {
		if (strcmp(name, mq_tile_state_name((enum mq_tile_state)i)) == 0)
			return (enum mq_tile_state)i;
	}
	q->bad = true;
	return MQ_TILE_FAILED;
}

enum mq_status mq_tile_get(struct mq_store *store, int64_t id, struct mq_tile *out,
                           struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_TILE_GET);
	enum mq_status status;
	bool row;

	mq_put_int(&q, id);
	status = mq_query_step(&q, &row, err);
	if (status != MQ_OK)
		return status;
	if (!row)
		return mq_fail(err, MQ_ENOENT, "no tile %lld", (long long)id);
	mq_tile_read(&q, &out->row);
	out->state = col_tile_state(&q, 7);
	out->attempt = mq_col_int(&q, 8, 0, INT64_MAX);
	out->file_attempt = mq_col_int(&q, 9, 0, INT64_MAX);
	out->job_state = mq_col_job_state(&q, 10);
	mq_query_end(&q);
	return q.bad ? mq_tile_damaged(id, err) : MQ_OK;
}

enum mq_status mq_tile_wrong_state(const struct mq_tile *tile, const char *must,
                                   struct mq_error *err)
{
	return mq_fail(err, MQ_ESTATE, "tile %lld of job %lld is %s, not %s", (long long)tile->row.id,
	               (long long)tile->row.job, mq_tile_state_name(tile->state), must);
}

/* ---- what is next ---- */

/* Appends to out[*count .. max-1]. */
static enum mq_status list_tiles(struct mq_store *store, enum mq_sql sql, struct mq_tile_row *out,
                                 size_t max, size_t *count, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, sql);
	enum mq_status status = MQ_OK;
	bool row = max > *count;

	mq_put_int(&q, max - *count > INT32_MAX ? INT32_MAX : (int64_t)(max - *count));
	while (status == MQ_OK && row) {
		status = mq_query_step(&q, &row, err);
		if (status != MQ_OK || !row)
			break;
		mq_tile_read(&q, &out[*count]);
		if (q.bad) {
			mq_query_end(&q);
			return mq_tile_damaged(out[*count].id, err);
		}
		++*count;
	}
	return status;
}

enum mq_status mq_store_tiles_next(struct mq_store *store, bool suspects_only,
                                   struct mq_tile_row *out, size_t max, size_t *count,
                                   struct mq_error *err)
{
	enum mq_status status;
	size_t n = 0;

	status = list_tiles(store, MQ_SQL_TILES_SUSPECT, out, max, &n, err);
	if (status == MQ_OK && !suspects_only)
		status = list_tiles(store, MQ_SQL_TILES_READY, out, max, &n, err);
	if (status == MQ_OK)
		*count = n;
	return status;
}

enum mq_status mq_store_tile_at(struct mq_store *store, int64_t job, struct mq_span span,
                                struct mq_tile_row *out, bool *found, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_TILE_AT);
	enum mq_status status;

	mq_put_int(&q, job);
	mq_put_int(&q, span.first);
	mq_put_int(&q, span.count);
	status = mq_query_step(&q, found, err);
	if (status != MQ_OK || !*found)
		return status;
	mq_tile_read(&q, out);
	mq_query_end(&q);
	return q.bad ? mq_tile_damaged(out->id, err) : MQ_OK;
}

/* ---- split, again, failed ---- */

static enum mq_status add_half(struct mq_store *store, const struct mq_tile_row *whole,
                               struct mq_span half, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_TILE_ADD);

	mq_put_int(&q, whole->job);
	mq_put_int(&q, half.first);
	mq_put_int(&q, half.count);
	mq_put_int(&q, whole->suspect);
	mq_put_int(&q, whole->deaths);
	return mq_query_run(&q, err);
}

enum mq_status mq_tile_halve(struct mq_store *store, const struct mq_tile_row *tile,
                             const char *reason, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_TILE_SPLIT);
	struct mq_span upper, lower;
	enum mq_status status;

	mq_span_halve(tile->span, &upper, &lower);
	mq_put_int(&q, tile->id);
	mq_put_text(&q, reason);
	status = mq_query_run(&q, err);
	if (status == MQ_OK)
		status = add_half(store, tile, upper, err);
	if (status == MQ_OK)
		status = add_half(store, tile, lower, err);
	if (status != MQ_OK)
		return status;
	q = mq_query_start(store, MQ_SQL_JOB_TILE_SPLIT);
	mq_put_int(&q, tile->job);
	return mq_query_run(&q, err);
}

static enum mq_status split(struct mq_store *store, int64_t id, const char *reason,
                            struct mq_error *err)
{
	enum mq_status status;
	struct mq_tile tile;

	status = mq_tile_get(store, id, &tile, err);
	if (status != MQ_OK)
		return status;
	if (tile.state != MQ_TILE_PENDING)
		return mq_tile_wrong_state(&tile, mq_tile_state_name(MQ_TILE_PENDING), err);
	if (tile.row.span.count < 2)
		return mq_fail(err, MQ_EINVAL, "tile %lld is one strip: it cannot be halved",
		               (long long)id);
	return mq_tile_halve(store, &tile.row, reason, err);
}

enum mq_status mq_store_tile_split(struct mq_store *store, int64_t tile, const char *reason,
                                   struct mq_error *err)
{
	enum mq_status status = mq_change_begin(store, err);

	if (status != MQ_OK)
		return status;
	return mq_change_end(store, split(store, tile, reason, err), err);
}

/* The reason replaces "done" as its attempt's outcome, so that one attempt a done tile says so. */
static enum mq_status write_redo(struct mq_store *store, const struct mq_tile *tile,
                                 const char *reason, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_ATTEMPT_OUTCOME);
	enum mq_status status;

	mq_put_int(&q, tile->file_attempt);
	mq_put_text(&q, reason);
	status = mq_query_run(&q, err);
	if (status != MQ_OK)
		return status;
	q = mq_query_start(store, MQ_SQL_TILE_REDO);
	mq_put_int(&q, tile->row.id);
	status = mq_query_run(&q, err);
	if (status != MQ_OK)
		return status;
	q = mq_query_start(store, MQ_SQL_JOB_TILE_UNDONE);
	mq_put_int(&q, tile->row.job);
	mq_put_int(&q, tile->row.span.count);
	mq_put_int(&q, tile->row.id);
	return mq_query_run(&q, err);
}

static enum mq_status redo(struct mq_store *store, int64_t id, const char *reason, int64_t now_ms,
                           struct mq_error *err)
{
	enum mq_status status;
	struct mq_tile tile;

	status = mq_tile_get(store, id, &tile, err);
	if (status != MQ_OK)
		return status;
	if (tile.state != MQ_TILE_DONE)
		return mq_tile_wrong_state(&tile, mq_tile_state_name(MQ_TILE_DONE), err);
	if (mq_job_is_terminal(tile.job_state))
		return mq_fail(err, MQ_ESTATE, "job %lld is %s: its tiles are not rendered again",
		               (long long)tile.row.job, mq_job_state_name(tile.job_state));
	status = write_redo(store, &tile, reason, err);
	if (status == MQ_OK && tile.job_state == MQ_JOB_ASSEMBLING)
		status = mq_job_set_state(store, tile.row.job, MQ_JOB_RUNNING, NULL, NULL, now_ms, err);
	return status;
}

enum mq_status mq_store_tile_redo(struct mq_store *store, int64_t tile, const char *reason,
                                  int64_t now_ms, struct mq_error *err)
{
	enum mq_status status = mq_change_begin(store, err);

	if (status != MQ_OK)
		return status;
	return mq_change_end(store, redo(store, tile, reason, now_ms, err), err);
}

static enum mq_status fail(struct mq_store *store, int64_t id, const char *error, int64_t now_ms,
                           struct mq_error *err)
{
	enum mq_status status;
	struct mq_query q;
	struct mq_tile tile;

	status = mq_tile_get(store, id, &tile, err);
	if (status != MQ_OK)
		return status;
	if (tile.state != MQ_TILE_PENDING && tile.state != MQ_TILE_RUNNING)
		return mq_tile_wrong_state(&tile, "pending or running", err);
	if (tile.attempt != 0)
		status = mq_attempt_end(store, tile.attempt, "failed", now_ms, err);
	if (status != MQ_OK)
		return status;
	q = mq_query_start(store, MQ_SQL_TILE_FAIL);
	mq_put_int(&q, id);
	status = mq_query_run(&q, err);
	if (status != MQ_OK)
		return status;
	return mq_job_set_state(store, tile.row.job, MQ_JOB_FAILED, NULL, error, now_ms, err);
}

enum mq_status mq_store_tile_fail(struct mq_store *store, int64_t tile, const char *error,
                                  int64_t now_ms, struct mq_error *err)
{
	enum mq_status status = mq_change_begin(store, err);

	if (status != MQ_OK)
		return status;
	return mq_change_end(store, fail(store, tile, error, now_ms, err), err);
}

/* ---- assembly ---- */

static enum mq_status done_from(struct mq_store *store, int64_t job, int64_t strip,
                                struct mq_done_tile *out, bool *found, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_TILE_DONE_FROM);
	enum mq_status status;
	const void *sha256;

	mq_put_int(&q, job);
	mq_put_int(&q, strip);
	status = mq_query_step(&q, found, err);
	if (status != MQ_OK || !*found)
		return status;
	out->tile = mq_col_int(&q, 0, 1, INT64_MAX);
	out->attempt = mq_col_int(&q, 1, 1, INT64_MAX);
	out->span.first = (uint32_t)mq_col_int(&q, 2, 0, (1 << 24) - 1);
	out->span.count = (uint32_t)mq_col_int(&q, 3, 1, 1 << 24);
	out->file.bytes = (uint64_t)mq_col_int(&q, 4, 0, INT64_MAX);
	sha256 = sqlite3_column_blob(q.stmt, 5);
	if (sha256 && sqlite3_column_bytes(q.stmt, 5) == (int)sizeof out->file.sha256)
		memcpy(out->file.sha256, sha256, sizeof out->file.sha256);
	else
		q.bad = true;
	mq_query_end(&q);
	return q.bad ? mq_tile_damaged(out->tile, err) : MQ_OK;
}

/* A look-up a tile rather than one open statement: each may use the store as it likes. */
enum mq_status mq_store_tiles_done(struct mq_store *store, int64_t job,
                                   enum mq_status (*each)(void *arg, const struct mq_done_tile *t),
                                   void *arg, struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	struct mq_done_tile tile;
	int64_t strip = 0;
	bool found;

	for (;;) {
		status = done_from(store, job, strip, &tile, &found, err);
		if (status != MQ_OK || !found)
			return status;
		strip = (int64_t)tile.span.first + 1;
		status = each(arg, &tile);
		if (status != MQ_OK)
			return status;
	}
}
