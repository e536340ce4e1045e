/* store_list: walks and sums that only people look at, and the numbers of the whole queue. The contracts
 * stand in store.h. */
#include <string.h>

#include "src/store/store_private.h"

const char *mq_store_engine(void)
{
	return sqlite3_libversion();
}

enum mq_status mq_store_jobs_old(struct mq_store *store, const struct mq_old *which, int64_t *ids,
                                 size_t max, size_t *count, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_JOBS_OLD);
	enum mq_status status = MQ_OK;
	bool row = true;
	size_t n = 0;

	mq_put_int(&q, which->before_ms);
	mq_put_int(&q, which->after_ms);
	mq_put_int(&q, which->after_id);
	mq_put_int(&q, which->unfetched);
	mq_put_int(&q, which->everybody);
	mq_put_int(&q, which->owner);
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

enum mq_status mq_store_jobs_count(struct mq_store *store, uint64_t count[MQ_JOB_STATE_COUNT],
                                   struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_JOBS_COUNT);
	enum mq_status status = MQ_OK;
	bool row = true;

	memset(count, 0, MQ_JOB_STATE_COUNT * sizeof count[0]);
	while (status == MQ_OK && row) {
		status = mq_query_step(&q, &row, err);
		if (status == MQ_OK && row)
			count[mq_col_job_state(&q, 0)] += (uint64_t)sqlite3_column_int64(q.stmt, 1);
	}
	return status;
}

/* The one number that a statement gives; it always gives one. */
static enum mq_status number(struct mq_query *q, int64_t *out, struct mq_error *err)
{
	bool row;
	enum mq_status status = mq_query_step(q, &row, err);

	if (status != MQ_OK || !row)
		return status;
	*out = sqlite3_column_int64(q->stmt, 0);
	mq_query_end(q);
	return MQ_OK;
}

enum mq_status mq_store_jobs_bytes(struct mq_store *store, bool everybody, int64_t owner,
                                   uint64_t *bytes, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_JOBS_BYTES);
	int64_t sum = 0;
	enum mq_status status;

	mq_put_int(&q, everybody);
	mq_put_int(&q, owner);
	status = number(&q, &sum, err);
	if (status == MQ_OK)
		*bytes = (uint64_t)sum;
	return status;
}

enum mq_status mq_store_jobs_open(struct mq_store *store, int64_t owner, uint64_t *count,
                                  struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_JOBS_OPEN_OF);
	int64_t n = 0;
	enum mq_status status;

	mq_put_int(&q, owner);
	status = number(&q, &n, err);
	if (status == MQ_OK)
		*count = (uint64_t)n;
	return status;
}

enum mq_status mq_store_meta_get(struct mq_store *store, const char *name, int64_t *value,
                                 struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_META_GET);

	*value = 0;
	mq_put_text(&q, name);
	return number(&q, value, err);
}

enum mq_status mq_store_meta_set(struct mq_store *store, const char *name, int64_t value,
                                 struct mq_error *err)
{
	enum mq_status status = mq_change_begin(store, err);
	struct mq_query q;

	if (status != MQ_OK)
		return status;
	q = mq_query_start(store, MQ_SQL_META_SET);
	mq_put_text(&q, name);
	mq_put_int(&q, value);
	return mq_change_end(store, mq_query_run(&q, err), err);
}

/* ---- ids ---- */

enum mq_status mq_store_ids_last(struct mq_store *store, int64_t *id, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_JOBS_LAST);

	return number(&q, id, err);
}

static enum mq_status skip(struct mq_store *store, enum mq_sql sql, int64_t id, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, sql);

	mq_put_int(&q, id);
	return mq_query_run(&q, err);
}

enum mq_status mq_store_ids_skip(struct mq_store *store, int64_t id, struct mq_error *err)
{
	enum mq_status status = mq_change_begin(store, err);

	if (status != MQ_OK)
		return status;
	status = skip(store, MQ_SQL_JOBS_SKIP, id, err);
	if (status == MQ_OK)
		status = skip(store, MQ_SQL_JOBS_SKIP_FIRST, id, err);
	return mq_change_end(store, status, err);
}

/* ---- the tiles and attempts of one job ---- */

static struct mq_query start_walk(struct mq_store *store, enum mq_sql sql, int64_t job, int64_t after,
                                  int64_t limit)
{
	struct mq_query q = mq_query_start(store, sql);

	mq_put_int(&q, job);
	mq_put_int(&q, after);
	mq_put_int(&q, limit);
	return q;
}

static const char *text(struct mq_query *q, int col)
{
	const char *t = (const char *)sqlite3_column_text(q->stmt, col);

	return t ? t : "";
}

static void read_tile(struct mq_query *q, struct mq_tile_info *t)
{
	const char *state = text(q, 7);

	mq_tile_read(q, &t->row);
	t->state = MQ_TILE_FAILED;
	for (int i = 0; i < MQ_TILE_STATE_COUNT; i++)
		if (!strcmp(state, mq_tile_state_name((enum mq_tile_state)i)))
			t->state = (enum mq_tile_state)i;
	t->split_reason = text(q, 8);
	t->file_bytes = (uint64_t)sqlite3_column_int64(q->stmt, 9);
	t->compute_seconds = sqlite3_column_double(q->stmt, 10);
	t->inside = (uint64_t)sqlite3_column_int64(q->stmt, 11);
}

enum mq_status mq_store_tiles_each(struct mq_store *store, int64_t job, int64_t after, int64_t limit,
                                   enum mq_status (*each)(void *arg, const struct mq_tile_info *t),
                                   void *arg, struct mq_error *err)
{
	struct mq_query q = start_walk(store, MQ_SQL_TILES_OF, job, after, limit);
	enum mq_status status = MQ_OK;
	struct mq_tile_info t;
	bool row = true;

	while (status == MQ_OK) {
		status = mq_query_step(&q, &row, err);
		if (status != MQ_OK || !row)
			return status;
		read_tile(&q, &t);
		status = each(arg, &t);
	}
	mq_query_end(&q);
	return status;
}

enum mq_status mq_store_attempts_each(struct mq_store *store, int64_t job, int64_t after, int64_t limit,
                                      enum mq_status (*each)(void *arg, const struct mq_attempt_info *a),
                                      void *arg, struct mq_error *err)
{
	struct mq_query q = start_walk(store, MQ_SQL_ATTEMPTS_OF, job, after, limit);
	enum mq_status status = MQ_OK;
	struct mq_attempt_info a;
	bool row = true;

	while (status == MQ_OK) {
		status = mq_query_step(&q, &row, err);
		if (status != MQ_OK || !row)
			return status;
		a = (struct mq_attempt_info){.id = sqlite3_column_int64(q.stmt, 0),
		                             .tile = sqlite3_column_int64(q.stmt, 1),
		                             .span = {(uint32_t)sqlite3_column_int64(q.stmt, 2),
		                                      (uint32_t)sqlite3_column_int64(q.stmt, 3)},
		                             .device = text(&q, 4),
		                             .alone = sqlite3_column_int(q.stmt, 5),
		                             .started_ms = sqlite3_column_int64(q.stmt, 6),
		                             .ended_ms = sqlite3_column_int64(q.stmt, 7),
		                             .outcome = text(&q, 8)};
		status = each(arg, &a);
	}
	mq_query_end(&q);
	return status;
}
