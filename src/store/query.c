/* query: the use of the prepared statements, and what SQLite's results mean to us.
 *
 * What always holds: a statement is reset after every use, so that none is open when a turn ends. */
#include <errno.h>
#include <string.h>

#include "src/store/store_private.h"

/* ---- results ---- */

static enum mq_status io_status(int rc, int system)
{
	/* A sync that failed for want of space has lost what it was to keep, as any other. */
	if (rc == SQLITE_IOERR_FSYNC || rc == SQLITE_IOERR_DIR_FSYNC)
		return MQ_EIO;
	if (rc == SQLITE_IOERR_NOMEM)
		return MQ_ENOMEM_HOST;
	return system == ENOSPC || system == EDQUOT ? MQ_ENOSPC : MQ_EIO;
}

static enum mq_status sqlite_status(int rc, int system)
{
	switch (rc & 0xff) {
	case SQLITE_FULL:
		return MQ_ENOSPC;
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return io_status(rc, system);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return MQ_ECORRUPT;
	case SQLITE_NOMEM:
		return MQ_ENOMEM_HOST;
	case SQLITE_BUSY:
		return MQ_EBUSY;
	default:
		return MQ_EINTERNAL;
	}
}

/* SQLite forgets the errno of a COMMIT that failed, and tells EDQUOT from EIO by nothing else; its
 * files remember. */
static int last_errno(sqlite3 *db, int rc)
{
	static const int which[] = {SQLITE_FCNTL_JOURNAL_POINTER, SQLITE_FCNTL_FILE_POINTER};
	int system = db ? sqlite3_system_errno(db) : 0;

	if (!db || system != 0 || (rc & 0xff) != SQLITE_IOERR)
		return system;
	for (size_t i = 0; system == 0 && i < sizeof which / sizeof which[0]; i++) {
		sqlite3_file *file = NULL;

		if (sqlite3_file_control(db, NULL, which[i], &file) == SQLITE_OK && file && file->pMethods)
			(void)file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &system);
	}
	return system;
}

enum mq_status mq_fail_sqlite(sqlite3 *db, int rc, struct mq_error *err, const char *what)
{
	int system = last_errno(db, rc);
	enum mq_status status = sqlite_status(rc, system);

	if (status == MQ_ENOMEM_HOST)
		return mq_fail(err, status, "%s: host memory is out (the database uses %lld bytes)", what,
		               (long long)sqlite3_memory_used());
	if (status == MQ_EBUSY)
		return mq_fail(err, status, "%s: another program has the database open", what);
	if ((status == MQ_EIO || status == MQ_ENOSPC) && system != 0)
		return mq_fail(err, status, "%s: %s (%s)", what, sqlite3_errstr(rc), strerror(system));
	return mq_fail(err, status, "%s: %s", what, db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
}

/* ---- statements ---- */

struct mq_query mq_query_start(struct mq_store *store, enum mq_sql sql)
{
	struct mq_query q = {.store = store, .sql = sql, .stmt = store->stmt[sql]};

	return q;
}

static void put(struct mq_query *q, int rc)
{
	if (q->rc == SQLITE_OK)
		q->rc = rc;
}

void mq_put_int(struct mq_query *q, int64_t value)
{
	put(q, sqlite3_bind_int64(q->stmt, ++q->parameter, value));
}

void mq_put_real(struct mq_query *q, double value)
{
	put(q, sqlite3_bind_double(q->stmt, ++q->parameter, value));
}

void mq_put_text(struct mq_query *q, const char *text)
{
	put(q, sqlite3_bind_text(q->stmt, ++q->parameter, text, -1, SQLITE_STATIC));
}

void mq_put_blob(struct mq_query *q, const void *data, size_t len)
{
	put(q, sqlite3_bind_blob64(q->stmt, ++q->parameter, data, len, SQLITE_STATIC));
}

void mq_query_end(struct mq_query *q)
{
	/* Both repeat a failure that the step has reported. */
	(void)sqlite3_reset(q->stmt);
	(void)sqlite3_clear_bindings(q->stmt);
}

enum mq_status mq_query_step(struct mq_query *q, bool *row, struct mq_error *err)
{
	struct mq_store *store = q->store;
	enum mq_status status = MQ_OK;
	int rc = q->rc;

	*row = false;
	if (rc == SQLITE_OK)
		rc = sqlite3_step(q->stmt);
	if (rc == SQLITE_ROW) {
		*row = true;
		return MQ_OK;
	}
	if (rc != SQLITE_DONE)
		status = mq_fail_sqlite(store->db, rc, err, mq_sql_table[q->sql].name);
	mq_query_end(q);
	/* Some failures make SQLite undo the whole transaction by itself. */
	if (status != MQ_OK && store->in_turn && sqlite3_get_autocommit(store->db))
		store->broken = status;
	return status;
}

enum mq_status mq_query_run(struct mq_query *q, struct mq_error *err)
{
	enum mq_status status;
	bool row;

	status = mq_query_step(q, &row, err);
	if (status == MQ_OK && row) {
		mq_query_end(q);
		status = mq_fail(err, MQ_EINTERNAL, "%s gave a row", mq_sql_table[q->sql].name);
	}
	return status;
}

int64_t mq_col_int(struct mq_query *q, int col, int64_t min, int64_t max)
{
	int64_t value = sqlite3_column_int64(q->stmt, col);

	if (sqlite3_column_type(q->stmt, col) == SQLITE_INTEGER && value >= min && value <= max)
		return value;
	q->bad = true;
	return min;
}

double mq_col_real(struct mq_query *q, int col)
{
	if (sqlite3_column_type(q->stmt, col) == SQLITE_FLOAT)
		return sqlite3_column_double(q->stmt, col);
	q->bad = true;
	return 0;
}

char *mq_col_text(struct mq_query *q, int col, bool may_null)
{
	int type = sqlite3_column_type(q->stmt, col);
	const unsigned char *text;
	char *copy;

	if (type == SQLITE_NULL && may_null)
		return NULL;
	if (type != SQLITE_TEXT) {
		q->bad = true;
		return NULL;
	}
	text = sqlite3_column_text(q->stmt, col);
	copy = text ? strdup((const char *)text) : NULL;
	if (!copy)
		put(q, SQLITE_NOMEM);
	return copy;
}

enum mq_job_state mq_col_job_state(struct mq_query *q, int col)
{
	enum mq_job_state state = MQ_JOB_FAILED;
	const unsigned char *name = sqlite3_column_text(q->stmt, col);

	if (!name || !mq_job_state_parse((const char *)name, &state))
		q->bad = true;
	return state;
}
