/* inspect: looks for damaged jobs in a database without mending them. Called by mandelqd --check, on a
 * copy: SQLite writes beside whatever it opens. */
#include "src/store/store_private.h"

static enum mq_status list(sqlite3 *db, void (*each)(void *arg, int64_t job), void *arg,
                           struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	sqlite3_stmt *stmt = NULL;
	int rc;

	rc = sqlite3_prepare_v2(db, mq_check_damaged, -1, &stmt, NULL);
	while (rc == SQLITE_OK || rc == SQLITE_ROW) {
		rc = sqlite3_step(stmt);
		if (rc == SQLITE_ROW)
			each(arg, sqlite3_column_int64(stmt, 0));
	}
	if (rc != SQLITE_DONE)
		status = mq_fail_sqlite(db, rc, err, "cannot look through the jobs");
	(void)sqlite3_finalize(stmt); /* repeats the failure of the step */
	return status;
}

static enum mq_status inspect(sqlite3 *db, const char *path, void (*each)(void *arg, int64_t job),
                              void *arg, struct mq_error *err)
{
	enum mq_status status;
	int version = 0, rc;

	rc = sqlite3_exec(db, "PRAGMA ignore_check_constraints = ON; PRAGMA cell_size_check = ON", NULL,
	                  NULL, NULL);
	if (rc != SQLITE_OK)
		return mq_fail_sqlite(db, rc, err, path);
	status = mq_check_identity(db, path, &version, err);
	if (status == MQ_OK)
		status = mq_check_structure(db, err);
	if (status == MQ_OK && version == MQ_STORE_SCHEMA)
		status = list(db, each, arg, err);
	return status;
}

enum mq_status mq_store_damaged_jobs(const char *path, void (*each)(void *arg, int64_t job), void *arg,
                                     struct mq_error *err)
{
	sqlite3 *db = NULL;
	enum mq_status status = mq_check_file(path, err);
	int rc;

	if (status != MQ_OK)
		return status;
	rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_extended_result_codes(db, 1);
	status = rc == SQLITE_OK ? inspect(db, path, each, arg, err) : mq_fail_sqlite(db, rc, err, path);
	if (sqlite3_close(db) != SQLITE_OK && status == MQ_OK)
		status = mq_fail(err, MQ_EINTERNAL, "the database does not close");
	return status;
}
