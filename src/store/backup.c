/* backup: whole copies of a database by SQLite's backup API: of the open one, page by page between its
 * turns, of one that nobody has open, and of an old one before it is migrated.
 *
 * While a copy is being made the connection that it is made from carries its own writes into it: that is
 * SQLite's promise for one connection, and the store has one. */
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

struct mq_copy {
	sqlite3 *to;
	sqlite3_backup *backup;
	char *path;
	bool done;
};

/* path: an empty file. settings: how the copy is written. */
static enum mq_status copy_open(sqlite3 *from, const char *path, const char *settings,
                                struct mq_copy **out, struct mq_error *err)
{
	struct mq_copy *c = calloc(1, sizeof *c);
	enum mq_status status;
	int rc;

	if (c)
		c->path = strdup(path);
	if (!c || !c->path) {
		free(c);
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a copy");
	}
	rc = sqlite3_open_v2(path, &c->to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(c->to, settings, NULL, NULL, NULL);
	if (rc == SQLITE_OK) {
		c->backup = sqlite3_backup_init(c->to, "main", from, "main");
		rc = c->backup ? SQLITE_OK : sqlite3_errcode(c->to);
	}
	if (rc != SQLITE_OK) {
		status = mq_fail_sqlite(c->to, rc, err, path);
		mq_copy_end(c);
		return status;
	}
	*out = c;
	return MQ_OK;
}

/* The last page has been copied: from here on the source changes without the copy. */
static enum mq_status copy_close(struct mq_copy *c, struct mq_error *err)
{
	int rc = sqlite3_backup_finish(c->backup);
	enum mq_status status = rc == SQLITE_OK ? leave_wal(c->to, c->path, err)
	                                        : mq_fail_sqlite(c->to, rc, err, c->path);

	c->backup = NULL;
	if (sqlite3_close(c->to) != SQLITE_OK && status == MQ_OK)
		status = mq_fail(err, MQ_EINTERNAL, "%s does not close", c->path);
	c->to = NULL;
	c->done = status == MQ_OK;
	return status;
}

/* pages: -1 for all that are left. */
static enum mq_status copy_pages(struct mq_copy *c, int pages, struct mq_error *err)
{
	int fault = mq_failpoint("store-backup");
	int rc = fault ? SQLITE_OK : sqlite3_backup_step(c->backup, pages);

	if (fault)
		return mq_fail_errno(err, fault, "copying the database to %s", c->path);
	if (rc == SQLITE_DONE)
		return copy_close(c, err);
	if (rc == SQLITE_OK)
		return MQ_OK;
	if ((rc & 0xff) != SQLITE_BUSY && (rc & 0xff) != SQLITE_LOCKED) {
		/* It cannot go on, and only its end gives the copy's handle the error's text. */
		(void)sqlite3_backup_finish(c->backup);
		c->backup = NULL;
	}
	return mq_fail_sqlite(c->to, rc, err, c->path);
}

enum mq_status mq_copy_begin(struct mq_store *store, const char *path, struct mq_copy **out,
                             struct mq_error *err)
{
	enum mq_status status = make_empty(path, err);

	if (status == MQ_OK) {
		status = copy_open(store->db, path,
		                   "PRAGMA synchronous = OFF; PRAGMA journal_mode = OFF;"
		                   "PRAGMA locking_mode = EXCLUSIVE", out, err);
		if (status != MQ_OK)
			(void)unlink(path); /* it may not be there */
	}
	return status == MQ_ENOENT ? MQ_EIO : status;
}

enum mq_status mq_copy_step(struct mq_copy *c, int pages, double *progress, bool *done,
                            struct mq_error *err)
{
	enum mq_status status = c->done ? MQ_OK : copy_pages(c, pages, err);
	int total;

	if (status != MQ_OK)
		return status == MQ_ENOENT ? MQ_EIO : status;
	*done = c->done;
	*progress = 1;
	total = c->done ? 0 : sqlite3_backup_pagecount(c->backup);
	if (!c->done)
		*progress = total > 0 ? 1 - (double)sqlite3_backup_remaining(c->backup) / total : 0;
	return MQ_OK;
}

void mq_copy_end(struct mq_copy *c)
{
	if (!c)
		return;
	/* Failures have been told by the steps, or the copy is not wanted any more. */
	if (c->backup)
		(void)sqlite3_backup_finish(c->backup);
	(void)sqlite3_close(c->to);
	if (!c->done)
		(void)unlink(c->path);
	free(c->path);
	free(c);
}

static enum mq_status copy_all(sqlite3 *db, const char *path, struct mq_error *err)
{
	struct mq_copy *copy = NULL;
	enum mq_status status = copy_open(db, path, "PRAGMA synchronous = FULL; PRAGMA journal_mode = OFF",
	                                  &copy, err);

	if (status == MQ_OK)
		status = copy_pages(copy, -1, err);
	mq_copy_end(copy);
	return status == MQ_ENOENT ? MQ_EIO : status;
}

enum mq_status mq_backup_write(sqlite3 *db, const char *path, struct mq_error *err)
{
	char *temporary = sqlite3_mprintf("%s.tmp", path);
	enum mq_status status;

	if (!temporary)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	status = make_empty(temporary, err);
	if (status == MQ_OK) {
		status = copy_all(db, temporary, err);
		if (status == MQ_OK)
			status = give_name(temporary, path, err);
		if (status != MQ_OK)
			(void)unlink(temporary); /* it may not be there */
	}
	sqlite3_free(temporary);
	return status == MQ_ENOENT ? MQ_EIO : status;
}

enum mq_status mq_store_copy(const char *from, const char *into, struct mq_error *err)
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
		status = copy_all(db, into, err);
	if (sqlite3_close(db) != SQLITE_OK && status == MQ_OK)
		status = mq_fail(err, MQ_EINTERNAL, "%s does not close", from);
	return status;
}
