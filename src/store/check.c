/* check: is this database ours, of a version that we know, and sound? Called by mq_store_open.
 *
 * What is refused must stay as it was, to the byte. SQLite alone cannot promise that (opening a
 * database in WAL mode creates files beside it), so the header is read first without it; the log, if
 * there is one, may hold a newer header, so SQLite is asked again before it is let write. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/clock.h"
#include "src/log.h"
#include "src/store/store_private.h"

/* Of the SQLite file format: header of 100 bytes, then the root page of the table of tables. */
#define HEAD_BYTES 108
#define HEAD_USER_VERSION 60
#define HEAD_APPLICATION_ID 68
#define HEAD_ROOT_TYPE 100
#define HEAD_ROOT_CELLS 103
#define ROOT_IS_LEAF 13

#define SMALL_BYTES (32 << 20) /* looked through in some tenths of a second */

struct head {
	uint8_t byte[HEAD_BYTES];
	size_t len;
};

static uint32_t head_u32(const struct head *head, size_t at)
{
	const uint8_t *p = head->byte + at;

	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* An absent file has length 0. */
static enum mq_status head_read(const char *path, struct head *head, struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	struct stat st;
	ssize_t got;
	int fd;

	memset(head, 0, sizeof *head);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && errno == ENOENT)
		return MQ_OK;
	if (fd < 0)
		return mq_fail_errno(err, errno, "cannot open %s", path);
	if (fstat(fd, &st) != 0) {
		status = mq_fail_errno(err, errno, "cannot look at %s", path);
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		status = mq_fail(err, MQ_ECORRUPT, "%s is not a plain file", path);
		goto out;
	}
	while (head->len < HEAD_BYTES) {
		got = pread(fd, head->byte + head->len, HEAD_BYTES - head->len, (off_t)head->len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			status = mq_fail_errno(err, errno, "cannot read %s", path);
		if (got <= 0)
			break;
		head->len += (size_t)got;
	}
out:
	(void)close(fd); /* read only: nothing can be lost */
	return status;
}

/* -1: there is no file of that name. */
static int64_t size_beside(const char *path, const char *suffix)
{
	struct stat st;
	char *name = sqlite3_mprintf("%s%s", path, suffix);
	int64_t size = name && stat(name, &st) == 0 ? (int64_t)st.st_size : -1;

	sqlite3_free(name);
	return size;
}

bool mq_check_has_log(const char *path)
{
	return size_beside(path, "-wal") >= 0;
}

bool mq_check_is_small(const char *path)
{
	return size_beside(path, "") <= SMALL_BYTES;
}

void mq_check_drop_empty_log(const char *path)
{
	char *name = sqlite3_mprintf("%s-wal", path);

	if (name && size_beside(path, "-wal") == 0)
		(void)unlink(name); /* an empty log that stays does no harm */
	sqlite3_free(name);
}

static enum mq_status judge(const char *path, uint32_t application, uint32_t version, bool empty,
                            struct mq_error *err)
{
	if (application == MQ_STORE_APPLICATION_ID && version > MQ_STORE_SCHEMA)
		return mq_fail(err, MQ_EVERSION,
		               "%s has schema %lu, written by a newer mandelq; this one knows up to %d", path,
		               (unsigned long)version, MQ_STORE_SCHEMA);
	if (application == MQ_STORE_APPLICATION_ID && version > 0)
		return MQ_OK;
	if (application == 0 && version == 0 && empty)
		return MQ_OK;
	return mq_fail(err, MQ_ECORRUPT, "%s is a database of another program; move it away", path);
}

enum mq_status mq_check_file(const char *path, struct mq_error *err)
{
	static const uint8_t zeros[HEAD_BYTES];
	enum mq_status status;
	uint32_t application;
	struct head head;
	bool empty;

	status = head_read(path, &head, err);
	if (status != MQ_OK || head.len == 0)
		return status;
	/* Power was lost while the first page was made: the journal takes it back. */
	if (memcmp(head.byte, zeros, sizeof zeros) == 0 && size_beside(path, "-journal") > 0)
		return MQ_OK;
	if (head.len < HEAD_BYTES || memcmp(head.byte, "SQLite format 3", 16) != 0)
		return mq_fail(err, MQ_ECORRUPT, "%s is not a database; move it away", path);
	application = head_u32(&head, HEAD_APPLICATION_ID);
	/* All that an unclean end of the first start leaves here is an empty first page. */
	if (application == 0 && size_beside(path, "-wal") > 0)
		return MQ_OK;
	empty = head.byte[HEAD_ROOT_TYPE] == ROOT_IS_LEAF && head.byte[HEAD_ROOT_CELLS] == 0 &&
	        head.byte[HEAD_ROOT_CELLS + 1] == 0;
	return judge(path, application, head_u32(&head, HEAD_USER_VERSION), empty, err);
}

static int read_int(sqlite3 *db, const char *sql, int64_t *out)
{
	sqlite3_stmt *stmt = NULL;
	int rc, end;

	rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
	if (rc != SQLITE_OK)
		return rc;
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		*out = sqlite3_column_int64(stmt, 0);
	end = sqlite3_finalize(stmt);
	return rc == SQLITE_ROW ? SQLITE_OK : end;
}

enum mq_status mq_check_identity(sqlite3 *db, const char *path, int *version, struct mq_error *err)
{
	int64_t application = 0, user = 0, tables = 0;
	enum mq_status status;
	int rc;

	rc = read_int(db, "PRAGMA application_id", &application);
	if (rc == SQLITE_OK)
		rc = read_int(db, "PRAGMA user_version", &user);
	if (rc == SQLITE_OK)
		rc = read_int(db, "SELECT count(*) FROM sqlite_schema", &tables);
	if (rc != SQLITE_OK)
		return mq_fail_sqlite(db, rc, err, path);
	status = judge(path, (uint32_t)application, (uint32_t)user, tables == 0, err);
	if (status == MQ_OK)
		*version = (int)user;
	return status;
}

/* quick_check also reports values that their column does not allow; mq_check_rows deals with them. */
static bool only_a_value(const char *finding)
{
	return strncmp(finding, "NULL value in ", 14) == 0 || strncmp(finding, "non-", 4) == 0;
}

enum mq_status mq_check_structure(sqlite3 *db, struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	sqlite3_stmt *stmt = NULL;
	const char *finding;
	int rc;

	rc = sqlite3_prepare_v2(db, "PRAGMA quick_check", -1, &stmt, NULL);
	while (rc == SQLITE_OK || rc == SQLITE_ROW) {
		rc = sqlite3_step(stmt);
		if (rc != SQLITE_ROW)
			break;
		finding = (const char *)sqlite3_column_text(stmt, 0);
		if (!finding || (strcmp(finding, "ok") != 0 && !only_a_value(finding))) {
			status = mq_fail(err, MQ_ECORRUPT, "the database is damaged: %s",
			                 finding ? finding : "no memory to say how");
			break;
		}
	}
	if (status == MQ_OK && rc != SQLITE_DONE)
		status = mq_fail_sqlite(db, rc, err, "cannot check the database");
	(void)sqlite3_finalize(stmt); /* repeats the failure of the step */
	return status;
}

/* Runs a statement about a job; ?2, if it has that, is the time. */
static int run_for(sqlite3 *db, const char *sql, int64_t id)
{
	sqlite3_stmt *stmt = NULL;
	int rc, end;

	rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_bind_int64(stmt, 1, id);
	if (rc == SQLITE_OK && sqlite3_bind_parameter_count(stmt) == 2)
		rc = sqlite3_bind_int64(stmt, 2, mq_clock_wall_ms());
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	end = sqlite3_finalize(stmt);
	return rc == SQLITE_DONE ? SQLITE_OK : rc == SQLITE_ROW ? SQLITE_INTERNAL : end ? end : rc;
}

/* Values that cannot be are replaced by the least that can; the id stays, and with it the answer to
 * whoever asks what became of the job. */
static const char set_aside[] =
	"UPDATE jobs SET state = 'failed', reason = NULL, request_id = NULL,"
	" error = 'its row in the database was damaged; submit it again',"
	" name = iif(typeof(name) = 'text', name, ''), spec = iif(length(spec) > 0, spec, '{}'),"
	" priority = iif(typeof(priority) = 'integer', priority, 0),"
	" owner = iif(typeof(owner) = 'integer', owner, -1),"
	" width = iif(width BETWEEN 1 AND 16777216, width, 1),"
	" height = iif(height BETWEEN 1 AND 16777216, height, 1),"
	" iterations = iif(iterations BETWEEN 1 AND 4294967294, iterations, 1),"
	" strips_total = 1, strips_done = 0, tiles_total = 1, tiles_done = 0, tiles_split = 0,"
	" compute_seconds = 0, created_ms = max(coalesce(created_ms, 0), 0),"
	" started_ms = max(coalesce(started_ms, 0), 0),"
	" finished_ms = iif(finished_ms > 0, finished_ms, ?2),"
	" output_bytes = 0, output_sha256 = '', preview_bytes = 0, counts_bytes = 0"
	" WHERE id = ?1";

static int set_job_aside(sqlite3 *db, int64_t id)
{
	int rc = run_for(db, set_aside, id);

	if (rc == SQLITE_OK)
		rc = run_for(db,
		             "UPDATE attempts SET outcome = 'dropped'"
		             " WHERE job = ?1 AND outcome IS NULL", id);
	/* Whatever stands in them: none of these rows is looked at again. */
	if (rc == SQLITE_OK)
		rc = run_for(db,
		             "UPDATE tiles SET state = 'failed', attempt = NULL, suspect = 0, deaths = 0"
		             " WHERE job = ?1", id);
	if (rc == SQLITE_OK)
		mq_log(MQ_LOG_ERROR, "job %lld: its row in the database is damaged; it is set aside as failed",
		       (long long)id);
	return rc;
}

/* A job is damaged if its own row is, or the tiles of a job that goes on are. Terminal jobs keep tiles
 * as they are: nobody reads them. */
#define DAMAGED_JOBS                                                                               \
	"SELECT id FROM jobs WHERE (" MQ_JOB_SOUND ") IS NOT TRUE"                                  \
	" OR typeof(name) <> 'text' OR typeof(priority) <> 'integer' OR typeof(owner) <> 'integer'"

static const char damaged_jobs[] = DAMAGED_JOBS;
const char mq_check_damaged[] =
	DAMAGED_JOBS
	" UNION SELECT job FROM tiles WHERE job IN"
	" (SELECT id FROM jobs WHERE state NOT IN ('done', 'failed', 'cancelled'))"
	" AND (" MQ_TILE_SOUND ") IS NOT TRUE"
	/* One whose tiles do not make up the picture would wait for ever. total() cannot overflow. */
	" UNION SELECT id FROM jobs WHERE state NOT IN ('done', 'failed', 'cancelled')"
	" AND (strips_total, strips_done) IS NOT"
	" (SELECT total(strip_count), total(strip_count * (state = 'done')) FROM tiles"
	" WHERE job = jobs.id AND state NOT IN ('split', 'failed'))";

static int set_all_aside(sqlite3 *db, const char *damaged)
{
	int64_t id = 0, last = 0;
	int rc;

	/* One at a time: a set-aside job is sound, so that the list shrinks. */
	for (;;) {
		rc = read_int(db, damaged, &id);
		if (rc != SQLITE_OK || id == last)
			return rc;
		rc = set_job_aside(db, id);
		if (rc != SQLITE_OK)
			return rc;
		last = id;
	}
}

enum mq_status mq_check_rows(sqlite3 *db, bool thorough, struct mq_error *err)
{
	const char *damaged = thorough ? mq_check_damaged : damaged_jobs;
	enum mq_status status = MQ_OK;
	int64_t found = 0;
	int rc;

	rc = read_int(db, damaged, &found);
	if (rc == SQLITE_OK && found == 0)
		return MQ_OK;
	/* The rows at hand break the very constraints that would forbid to mend them. */
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, "PRAGMA ignore_check_constraints = ON; BEGIN IMMEDIATE", NULL, NULL,
		                  NULL);
	if (rc == SQLITE_OK)
		rc = set_all_aside(db, damaged);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	if (rc != SQLITE_OK)
		status = mq_fail_sqlite(db, rc, err, "cannot set damaged jobs aside");
	if (!sqlite3_get_autocommit(db))
		(void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	rc = sqlite3_exec(db, "PRAGMA ignore_check_constraints = OFF", NULL, NULL, NULL);
	if (status == MQ_OK && rc != SQLITE_OK)
		status = mq_fail_sqlite(db, rc, err, "cannot check rows again");
	return status;
}
