/* store_assembly: which assemblies are under way, so that recovery knows what may have ended the worker.
 * The contracts stand in store.h.
 *
 * A row is an assembly that runs, or one that ran at an unclean end and is a suspect. Whatever ends
 * otherwise leaves no row. */
#include "src/store/store_private.h"

static enum mq_status begin(struct mq_store *store, int64_t job, bool alone, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_ASSEMBLY_BEGIN);

	mq_put_int(&q, job);
	mq_put_int(&q, alone);
	return mq_query_run(&q, err);
}

enum mq_status mq_store_assembly_begin(struct mq_store *store, int64_t job, bool alone,
                                       struct mq_error *err)
{
	enum mq_status status = mq_change_begin(store, err);

	if (status != MQ_OK)
		return status;
	return mq_change_end(store, begin(store, job, alone, err), err);
}

enum mq_status mq_assembly_end(struct mq_store *store, int64_t job, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_ASSEMBLY_END);

	mq_put_int(&q, job);
	return mq_query_run(&q, err);
}

enum mq_status mq_store_assembly_end(struct mq_store *store, int64_t job, struct mq_error *err)
{
	enum mq_status status = mq_change_begin(store, err);

	if (status != MQ_OK)
		return status;
	return mq_change_end(store, mq_assembly_end(store, job, err), err);
}

enum mq_status mq_store_assemblies_end(struct mq_store *store, struct mq_error *err)
{
	enum mq_status status = mq_change_begin(store, err);
	struct mq_query q;

	if (status != MQ_OK)
		return status;
	q = mq_query_start(store, MQ_SQL_ASSEMBLIES_END);
	return mq_change_end(store, mq_query_run(&q, err), err);
}

enum mq_status mq_store_assembly_suspect(struct mq_store *store, int64_t *job, bool *found,
                                         struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, MQ_SQL_ASSEMBLY_SUSPECT);
	enum mq_status status = mq_query_step(&q, found, err);

	if (status != MQ_OK || !*found)
		return status;
	*job = sqlite3_column_int64(q.stmt, 0);
	mq_query_end(&q);
	return MQ_OK;
}
