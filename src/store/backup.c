/* backup: whole copies of a database by SQLite's backup API: of the open one, of one that nobody has
 * open, and of an old one before it is migrated. A copy has its name when it is whole and durable. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/failpoint.h"
#include "src/store/store_private.h"

static enum mq_status copy_pages(sqlite3 *from, sqlite3 *to, const char *path, struct mq_error *err)
{
	sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
	int rc, fault = mq_failpoint("store-backup");

	if (!backup)
		return mq_fail_sqlite(to, sqlite3_errcode(to), err, path);
	rc = sqlite3_backup_step(backup, -1);
	/* Its result is that of the step, unless only the end fails. */
	if (sqlite3_backup_finish(backup) != SQLITE_OK && rc == SQLITE_DONE)
		rc = sqlite3_errcode(to);
	if (fault)
		return mq_fail_errno(err, fault, "copying the database to %s", path);
	if (rc == SQLITE_DONE)
		return MQ_OK;
	if ((rc & 0xff) == SQLITE_LOCKED || (rc & 0xff) == SQLITE_BUSY)
		return mq_fail(err, MQ_EBUSY, "the database is being written: try again");
	return mq_fail_sqlite(to, rc, err, path);
}

/* A copy of a database in WAL mode would make a log beside it for whoever opens it, and could not be
 * read where nothing can be written. */
static enum mq_status leave_wal(sqlite3 *db, const char *path, struct mq_error *err)
{
	int rc = sqlite3_exec(db, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL);

	return rc == SQLITE_OK ? MQ_OK : mq_fail_sqlite(db, rc, err, path);
}

static enum mq_status sync_path(const char *path, int flags, struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0)
		return mq_fail_errno(err, errno, "%s", path);
	/* Some file systems have no sync of directories. */
	if (fsync(fd) != 0 && !((flags & O_DIRECTORY) && errno == EINVAL))
		status = mq_fail_errno(err, errno, "syncing %s", path);
	(void)close(fd); /* nothing was written through it */
	return status;
}

static enum mq_status give_name(const char *temporary, const char *path, struct mq_error *err)
{
	enum mq_status status = sync_path(temporary, O_RDONLY, err);
	char *dir;

	if (status != MQ_OK)
		return status;
	if (rename(temporary, path) != 0)
		return mq_fail_errno(err, errno, "giving %s its name", path);
	dir = strdup(path);
	if (!dir)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	status = sync_path(dirname(dir), O_RDONLY | O_DIRECTORY, err);
	free(dir);
	return status;
}

/* An empty file that only we can read, before SQLite opens it. */
static enum mq_status make_empty(const char *path, struct mq_error *err)
{
	int fd;

	if (unlink(path) != 0 && errno != ENOENT)
		return mq_fail_errno(err, errno, "removing %s", path);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return mq_fail_errno(err, errno, "cannot make %s", path);
	(void)close(fd); /* empty */
	return MQ_OK;
}

static enum mq_status fill(sqlite3 *from, const char *path, struct mq_error *err)
{
	sqlite3 *to = NULL;
	enum mq_status status;
	int rc;

	rc = sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(to, "PRAGMA synchronous = FULL; PRAGMA journal_mode = OFF", NULL, NULL, NULL);
	status = rc == SQLITE_OK ? copy_pages(from, to, path, err) : mq_fail_sqlite(to, rc, err, path);
	if (status == MQ_OK)
		status = leave_wal(to, path, err);
	if (sqlite3_close(to) != SQLITE_OK && status == MQ_OK)
		status = mq_fail(err, MQ_EINTERNAL, "%s does not close", path);
	return status;
}

enum mq_status mq_backup_write(sqlite3 *db, const char *path, struct mq_error *err)
{
	char *temporary = sqlite3_mprintf("%s.tmp", path);
	enum mq_status status;

	if (!temporary)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	status = make_empty(temporary, err);
	if (status == MQ_OK)
		status = fill(db, temporary, err);
	if (status == MQ_OK)
		status = give_name(temporary, path, err);
	if (status != MQ_OK)
		(void)unlink(temporary); /* it may not be there */
	sqlite3_free(temporary);
	return status == MQ_ENOENT ? MQ_EIO : status;
}

enum mq_status mq_store_backup(struct mq_store *store, const char *path, struct mq_error *err)
{
	/* What is not committed yet may never be: it has no place in a copy. */
	if (store->in_turn && store->changed)
		return mq_fail(err, MQ_EBUSY, "the database is being written: try again");
	if (store->in_turn)
		mq_store_rollback(store);
	return mq_backup_write(store->db, path, err);
}

enum mq_status mq_store_copy(const char *from, const char *path, struct mq_error *err)
{
	enum mq_status status = mq_check_file(from, err);
	sqlite3 *db = NULL;
	int rc, version = 0;

	if (status != MQ_OK)
		return status;
	rc = sqlite3_open_v2(from, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	/* As it lies there, with its log: nothing is moved from one to the other. */
	if (rc == SQLITE_OK)
		rc = sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE", NULL, NULL, NULL);
	status = rc == SQLITE_OK ? mq_check_identity(db, from, &version, err)
	                         : mq_fail_sqlite(db, rc, err, from);
	if (status == MQ_OK)
		status = mq_check_structure(db, err);
	if (status == MQ_OK)
		status = mq_backup_write(db, path, err);
	if (sqlite3_close(db) != SQLITE_OK && status == MQ_OK)
		status = mq_fail(err, MQ_EINTERNAL, "%s does not close", from);
	return status;
}
