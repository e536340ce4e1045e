/* store: opening and closing, and the turn with its savepoints.
 *
 * What always holds: once open, the database is written inside a turn only; after a failed sync it
 * is not written at all, not even by closing it. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/failpoint.h"
#include "src/log.h"
#include "src/store/store_private.h"

/* Frames (pages) of log after which it is copied into the database: 4 MiB. */
#define CHECKPOINT_FRAMES 1000
/* Those, and a turn's. */
#define LOG_RESERVE (5 << 20)

/* ---- the turn ---- */

static enum mq_status run_plain(struct mq_store *store, enum mq_sql sql, struct mq_error *err)
{
	struct mq_query q = mq_query_start(store, sql);

	return mq_query_run(&q, err);
}

static enum mq_status turn_begin(struct mq_store *store, struct mq_error *err)
{
	enum mq_status status;
	int fault;

	if (store->in_turn)
		return MQ_OK;
	fault = mq_failpoint("store-begin");
	if (fault)
		return mq_fail_errno(err, fault, "cannot write the database");
	status = run_plain(store, MQ_SQL_BEGIN, err);
	if (status == MQ_OK) {
		store->in_turn = true;
		store->changed = false;
	}
	return status;
}

enum mq_status mq_change_begin(struct mq_store *store, struct mq_error *err)
{
	enum mq_status status;

	if (store->dead)
		return mq_fail(err, MQ_EIO, "the database could not be synced: stop and recover");
	if (store->broken != MQ_OK)
		return mq_fail(err, store->broken, "the database has undone this turn");
	status = turn_begin(store, err);
	if (status != MQ_OK)
		return status;
	store->mark = sqlite3_total_changes64(store->db);
	return run_plain(store, MQ_SQL_SAVE, err);
}

static enum mq_status keep(struct mq_store *store, struct mq_error *err)
{
	enum mq_status status = run_plain(store, MQ_SQL_SAVE_KEEP, err);

	if (status == MQ_OK && sqlite3_total_changes64(store->db) != store->mark)
		store->changed = true;
	return status;
}

static enum mq_status undo(struct mq_store *store)
{
	enum mq_status status = run_plain(store, MQ_SQL_SAVE_UNDO, NULL);

	return status == MQ_OK ? run_plain(store, MQ_SQL_SAVE_KEEP, NULL) : status;
}

enum mq_status mq_change_end(struct mq_store *store, enum mq_status status, struct mq_error *err)
{
	enum mq_status undone;

	if (store->broken != MQ_OK)
		return status != MQ_OK ? status : mq_fail(err, store->broken, "the turn is undone");
	if (status == MQ_OK)
		status = keep(store, err);
	if (status == MQ_OK)
		return MQ_OK;
	undone = undo(store);
	/* Half a change must not be committed with the rest. */
	if (undone != MQ_OK && store->broken == MQ_OK)
		store->broken = undone;
	return status;
}

static void die(struct mq_store *store)
{
	store->dead = true;
	/* Closing must not try again what failed. */
	(void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

void mq_store_rollback(struct mq_store *store)
{
	struct mq_error err;

	if (store->in_turn && !sqlite3_get_autocommit(store->db) &&
	    run_plain(store, MQ_SQL_ROLLBACK, &err) != MQ_OK) {
		/* The turn would go on growing under those to come. */
		mq_log(MQ_LOG_ERROR, "the database cannot roll back: %s", err.text);
		die(store);
	}
	store->in_turn = false;
	store->changed = false;
	store->broken = MQ_OK;
}

static int note_wal(void *arg, sqlite3 *db, const char *name, int frames)
{
	struct mq_store *store = arg;

	(void)db;
	(void)name;
	store->wal_frames = frames;
	return SQLITE_OK;
}

/* SQLite's own automatic checkpoint drops its errors, a failed sync among them: so it is done here.
 * Without space the log just goes on growing until there is. */
static enum mq_status checkpoint(struct mq_store *store, struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	struct mq_error why;
	int fault, rc;

	if (store->wal_frames < store->checkpoint_at)
		return MQ_OK;
	fault = mq_failpoint("store-checkpoint");
	rc = fault ? SQLITE_OK : sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE,
	                                                   NULL, NULL);
	if (fault)
		status = mq_fail_errno(&why, fault, "cannot checkpoint the database");
	else if (rc != SQLITE_OK)
		status = mq_fail_sqlite(store->db, rc, &why, "cannot checkpoint the database");
	if (status == MQ_OK) {
		store->checkpoint_at = CHECKPOINT_FRAMES;
		return MQ_OK;
	}
	store->checkpoint_at = store->wal_frames + CHECKPOINT_FRAMES;
	if (status != MQ_ENOSPC && status != MQ_ENOMEM_HOST)
		return mq_fail(err, status, "%s", why.text);
	mq_log(MQ_LOG_WARN, "%s", why.text);
	return MQ_OK;
}

static enum mq_status commit_changes(struct mq_store *store, struct mq_error *err)
{
	enum mq_status status;
	int fault;

	fault = mq_failpoint("store-commit");
	if (fault)
		return mq_fail_errno(err, fault, "cannot commit to the database");
	status = run_plain(store, MQ_SQL_COMMIT, err);
	if (status != MQ_OK)
		return status;
	store->in_turn = false;
	/* Durable, but nobody knows: what a failure from here on leaves for recovery. */
	fault = mq_failpoint("store-committed");
	if (fault)
		return mq_fail(err, MQ_EIO, "the database failed after a commit");
	return checkpoint(store, err);
}

enum mq_status mq_store_commit(struct mq_store *store, bool *changed, struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	bool any = store->changed;

	if (store->dead)
		status = mq_fail(err, MQ_EIO, "the database could not be synced: stop and recover");
	else if (store->broken != MQ_OK)
		status = mq_fail(err, store->broken, "the database has undone this turn");
	else if (store->in_turn && any)
		status = commit_changes(store, err);
	if (status == MQ_EIO)
		die(store);
	mq_store_rollback(store);
	if (status == MQ_OK && changed)
		*changed = any;
	return status;
}

/* ---- opening and closing ---- */

static int configure(sqlite3 *db)
{
	static const struct {
		int option, value;
	} options[] = {
		/* Until the database is known to be ours, closing must leave it alone. */
		{SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1},
		{SQLITE_DBCONFIG_ENABLE_FKEY, 1},
		{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
		{SQLITE_DBCONFIG_ENABLE_VIEW, 0},
		{SQLITE_DBCONFIG_DEFENSIVE, 1},
		{SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
		{SQLITE_DBCONFIG_DQS_DDL, 0},
		{SQLITE_DBCONFIG_DQS_DML, 0},
	};
	int rc = sqlite3_extended_result_codes(db, 1);

	for (size_t i = 0; rc == SQLITE_OK && i < sizeof options / sizeof options[0]; i++)
		rc = sqlite3_db_config(db, options[i].option, options[i].value, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_busy_timeout(db, 0);
	/* EXCLUSIVE before the first read: no shared memory file is ever made. */
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db,
		                  "PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL;"
		                  "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;"
		                  "PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384;"
		                  "PRAGMA ignore_check_constraints = ON",
		                  NULL, NULL, NULL);
	return rc;
}

static enum mq_status use_wal(sqlite3 *db, struct mq_error *err)
{
	sqlite3_stmt *stmt = NULL;
	enum mq_status status = MQ_OK;
	const char *mode;
	int rc;

	rc = sqlite3_prepare_v2(db, "PRAGMA journal_mode = WAL", -1, &stmt, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	mode = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(stmt, 0) : NULL;
	if (rc != SQLITE_ROW)
		status = mq_fail_sqlite(db, rc, err, "cannot log the database's changes");
	else if (!mode || strcmp(mode, "wal") != 0)
		status = mq_fail(err, MQ_EIO, "the database refuses a write-ahead log");
	(void)sqlite3_finalize(stmt); /* repeats the failure of the step */
	if (status != MQ_OK)
		return status;
	/* A log that one huge submit has grown shrinks again. */
	rc = sqlite3_exec(db,
	                  "PRAGMA journal_size_limit = 16777216; PRAGMA ignore_check_constraints = OFF",
	                  NULL, NULL, NULL);
	return rc == SQLITE_OK ? MQ_OK : mq_fail_sqlite(db, rc, err, "cannot set up the database");
}

static enum mq_status prepare_all(struct mq_store *store, struct mq_error *err)
{
	for (int i = 0; i < MQ_SQL_COUNT; i++) {
		int rc = sqlite3_prepare_v3(store->db, mq_sql_table[i].text, -1, SQLITE_PREPARE_PERSISTENT,
		                            &store->stmt[i], NULL);

		if (rc != SQLITE_OK)
			return mq_fail_sqlite(store->db, rc, err, mq_sql_table[i].name);
	}
	return MQ_OK;
}

/* So that the program before this one can go back to it. */
static enum mq_status keep_old(sqlite3 *db, const char *path, int version, struct mq_error *err)
{
	char *copy = sqlite3_mprintf("%s.v%d-backup", path, version);
	enum mq_status status = copy ? mq_backup_write(db, copy, err)
	                             : mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");

	if (status == MQ_OK)
		mq_log(MQ_LOG_INFO, "the database is brought from schema %d to %d; %s is a copy of it as it was",
		       version, MQ_STORE_SCHEMA, copy);
	sqlite3_free(copy);
	return status;
}

static enum mq_status open_checked(struct mq_store *store, const char *path, bool thorough,
                                   struct mq_error *err)
{
	enum mq_status status;
	int rc, version = 0;

	rc = sqlite3_open_v2(path, &store->db,
	                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
	                             SQLITE_OPEN_PRIVATECACHE,
	                     NULL);
	if (rc == SQLITE_OK)
		rc = configure(store->db);
	if (rc != SQLITE_OK)
		return mq_fail_sqlite(store->db, rc, err, path);
	status = mq_check_identity(store->db, path, &version, err);
	if (status == MQ_OK && thorough)
		status = mq_check_structure(store->db, err);
	if (status == MQ_OK)
		status = use_wal(store->db, err);
	if (status == MQ_OK && version > 0 && version < MQ_STORE_SCHEMA)
		status = keep_old(store->db, path, version, err);
	if (status == MQ_OK)
		status = mq_schema_migrate(store->db, version, err);
	if (status == MQ_OK)
		status = mq_check_rows(store->db, thorough || version < MQ_STORE_SCHEMA, err);
	if (status == MQ_OK)
		status = prepare_all(store, err);
	if (status != MQ_OK)
		return status;
	(void)sqlite3_wal_hook(store->db, note_wal, store); /* gives the old hook's argument */
	rc = sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
	return rc == SQLITE_OK ? MQ_OK : mq_fail_sqlite(store->db, rc, err, path);
}

/* Blocks for the log, so that a full disk does not keep the store from saying so: what a pause writes
 * fits. The log's size stays what it is. Without space, or on a file system that cannot, there is no
 * such reserve. */
static void reserve_log(const char *path)
{
	char name[4096];
	int n = snprintf(name, sizeof name, "%s-wal", path), fd;

	if (n < 0 || (size_t)n >= sizeof name)
		return;
	fd = open(name, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, LOG_RESERVE) && errno != EOPNOTSUPP)
		mq_log(MQ_LOG_WARN, "%s: no room is reserved for the log: %s", path, strerror(errno));
	close(fd); /* the locks are on the database, not on its log */
}

enum mq_status mq_store_open(const char *path, struct mq_store **out, struct mq_error *err)
{
	struct mq_store *store;
	enum mq_status status;
	bool had_log;
	int fault;

	status = mq_check_file(path, err);
	if (status != MQ_OK)
		return status;
	fault = mq_failpoint("store-open");
	if (fault)
		return mq_fail_errno(err, fault, "cannot open %s", path);
	store = calloc(1, sizeof *store);
	if (!store)
		return mq_fail(err, MQ_ENOMEM_HOST, "no host memory for %zu bytes", sizeof *store);
	store->checkpoint_at = CHECKPOINT_FRAMES;
	had_log = mq_check_has_log(path);
	/* A clean end takes the log away. What a quick look has missed in a large database ends the process
	 * when it is met, which leaves the log: then the next start looks through everything. */
	status = open_checked(store, path, had_log || mq_check_is_small(path), err);
	if (status != MQ_OK) {
		mq_store_close(store);
		if (!had_log)
			mq_check_drop_empty_log(path);
		return status;
	}
	reserve_log(path);
	*out = store;
	return MQ_OK;
}

void mq_store_close(struct mq_store *store)
{
	if (!store)
		return;
	for (int i = 0; i < MQ_SQL_COUNT; i++)
		(void)sqlite3_finalize(store->stmt[i]); /* repeats the failure of the last step */
	if (sqlite3_close(store->db) != SQLITE_OK)
		mq_log(MQ_LOG_ERROR, "the database does not close: %s", sqlite3_errmsg(store->db));
	free(store);
}
