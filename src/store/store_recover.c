/* store_recover: what an unclean end leaves in flight, by the rule that blames nothing healthy. Called
 * once by the worker before anything runs.
 *
 * Whatever was in flight is a suspect, and runs alone from now on. A death counts only against a
 * tile, or an assembly, that began alone and was still the only one: then nothing else can have caused
 * it. */
#include "src/store/store_private.h"

struct lost {
	struct mq_tile_row tile;
	int64_t attempt; /* 0: the row names one that is not there */
	bool alone;
};

static enum mq_status read_count(struct mq_store *store, enum mq_sql sql, uint64_t *out,
                                 struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, sql);
	enum mq_status status;
	bool row;

	status = mq_query_step(&q, &row, err);
	if (status != MQ_OK || !row)
		return status;
	*out = (uint64_t)sqlite3_column_int64(q.stmt, 0);
	mq_query_end(&q);
	return MQ_OK;
}

static enum mq_status first_lost(struct mq_store *store, struct lost *out, bool *found,
                                 struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_TILE_FIRST_RUNNING);
	enum mq_status status;

	status = mq_query_step(&q, found, err);
	if (status != MQ_OK || !*found)
		return status;
	mq_tile_read(&q, &out->tile);
	out->tile.suspect = true;
	out->attempt = sqlite3_column_int64(q.stmt, 7);
	out->alone = sqlite3_column_int64(q.stmt, 8) == 1;
	mq_query_end(&q);
	return q.bad ? mq_tile_damaged(out->tile.id, err) : MQ_OK;
}

static enum mq_status to_suspect(struct mq_store *store, const struct lost *lost, bool died_alone,
                                 int64_t now_ms, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_TILE_LOST);
	enum mq_status status;

	mq_put_int(&q, lost->tile.id);
	mq_put_int(&q, died_alone);
	status = mq_query_run(&q, err);
	if (status == MQ_OK)
		status = mq_attempt_end(store, lost->attempt, "lost", now_ms, err);
	return status;
}

static enum mq_status fail_poison(struct mq_store *store, const struct mq_tile_row *tile,
                                  int64_t now_ms, struct mq_error *err)
{
	char text[128];
	struct mq_query q = mq_query_start(store, MQ_SQL_TILE_FAIL);
	enum mq_status status;

	mq_put_int(&q, tile->id);
	status = mq_query_run(&q, err);
	if (status != MQ_OK)
		return status;
	sqlite3_snprintf((int)sizeof text, text,
	                 "rendering strip %u ended the worker %u times in a row", tile->span.first,
	                 tile->deaths);
	return mq_job_set_state(store, tile->job, MQ_JOB_FAILED, NULL, text, now_ms, err);
}

static enum mq_status recover_one(struct mq_store *store, struct lost *lost, bool sole,
                                  int64_t now_ms, struct mq_recovery *sum, struct mq_error *err)
{
	bool died_alone = sole && lost->alone;
	enum mq_status status;

	status = to_suspect(store, lost, died_alone, now_ms, err);
	if (status != MQ_OK)
		return status;
	sum->suspects++;
	if (!died_alone)
		return MQ_OK;
	lost->tile.deaths++;
	if (lost->tile.span.count > 1) {
		sum->halved++;
		return mq_tile_halve(store, &lost->tile, "suspect", err);
	}
	if (lost->tile.deaths < MQ_DEATHS_MAX)
		return MQ_OK;
	sum->jobs_failed++;
	return fail_poison(store, &lost->tile, now_ms, err);
}

static enum mq_status fail_assembly(struct mq_store *store, int64_t job, int64_t now_ms,
                                    struct mq_error *err)
{
	char text[128];
	enum mq_status status = mq_assembly_end(store, job, err);

	if (status != MQ_OK)
		return status;
	sqlite3_snprintf((int)sizeof text, text, "assembling the picture ended the worker %d times in a row",
	                 MQ_DEATHS_MAX);
	return mq_job_set_state(store, job, MQ_JOB_FAILED, NULL, text, now_ms, err);
}

static enum mq_status recover_assemblies(struct mq_store *store, bool sole, int64_t now_ms,
                                         struct mq_recovery *sum, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_ASSEMBLIES_LOST);
	enum mq_status status;
	bool found = true;
	int64_t job;

	mq_put_int(&q, sole);
	status = mq_query_run(&q, err);
	if (status == MQ_OK) {
		q = mq_query_start(store, MQ_SQL_ASSEMBLIES_STALE);
		status = mq_query_run(&q, err);
	}
	while (status == MQ_OK && found) {
		q = mq_query_start(store, MQ_SQL_ASSEMBLY_POISON);
		mq_put_int(&q, MQ_DEATHS_MAX);
		status = mq_query_step(&q, &found, err);
		if (status != MQ_OK || !found)
			break;
		job = sqlite3_column_int64(q.stmt, 0);
		mq_query_end(&q);
		sum->jobs_failed++;
		status = fail_assembly(store, job, now_ms, err);
	}
	return status;
}

static enum mq_status recover(struct mq_store *store, int64_t now_ms, struct mq_recovery *sum,
                              struct mq_error *err)
{
	enum mq_status status;
	uint64_t running = 0, assemblies = 0;
	struct lost lost;
	bool found;

	status = read_count(store, MQ_SQL_TILES_RUNNING, &running, err);
	if (status == MQ_OK)
		status = read_count(store, MQ_SQL_ASSEMBLIES_RUNNING, &assemblies, err);
	if (status == MQ_OK)
		status = recover_assemblies(store, assemblies == 1 && running == 0, now_ms, sum, err);
	for (uint64_t left = running; status == MQ_OK && left > 0; left--) {
		status = first_lost(store, &lost, &found, err);
		if (status == MQ_OK && !found)
			return mq_fail(err, MQ_EINTERNAL, "%llu running tiles cannot be found",
			               (unsigned long long)left);
		if (status == MQ_OK)
			status = recover_one(store, &lost, running == 1 && assemblies == 0, now_ms, sum,
			                     err);
	}
	if (status == MQ_OK)
		status = mq_waiting_settle(store, now_ms, err);
	if (status == MQ_OK)
		status = read_count(store, MQ_SQL_JOBS_ASSEMBLING, &sum->assembling, err);
	return status;
}

enum mq_status mq_store_recover(struct mq_store *store, int64_t now_ms, struct mq_recovery *out,
                                struct mq_error *err)
{
	struct mq_recovery sum = {0};
	enum mq_status status;

	status = mq_change_begin(store, err);
	if (status != MQ_OK)
		return status;
	status = mq_change_end(store, recover(store, now_ms, &sum, err), err);
	if (status == MQ_OK)
		*out = sum;
	return status;
}
