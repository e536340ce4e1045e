/* schema: the tables, and one function a version that brings a database to it. Called by
 * mq_store_open, before any statement is prepared.
 *
 * A job's counters stand in its own row and are kept with each change, so that its status costs one
 * look-up whatever its size. The rows of a job stay until the job is removed: they tell its story. Job
 * and attempt ids name files, and are never used again. */
#include "config.h"

#include "src/failpoint.h"
#include "src/store/store_private.h"

/* spec comes last: it can be long, and the columns before it must stay on the row's first page.
 * tiles.attempt and tiles.file_attempt refer to attempts, but attempts refer to tiles already. */
static const char version_1[] =
	"CREATE TABLE jobs ("
	" id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" name TEXT NOT NULL, request_id TEXT, reason TEXT, error TEXT,"
	" priority INTEGER NOT NULL, owner INTEGER NOT NULL,"
	" state TEXT NOT NULL DEFAULT 'queued',"
	" width INTEGER NOT NULL, height INTEGER NOT NULL, iterations INTEGER NOT NULL,"
	" strips_total INTEGER NOT NULL, strips_done INTEGER NOT NULL DEFAULT 0,"
	" tiles_total INTEGER NOT NULL, tiles_done INTEGER NOT NULL DEFAULT 0,"
	" tiles_split INTEGER NOT NULL DEFAULT 0, compute_seconds REAL NOT NULL DEFAULT 0,"
	" created_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL DEFAULT 0,"
	" finished_ms INTEGER NOT NULL DEFAULT 0,"
	" output_bytes INTEGER NOT NULL DEFAULT 0, output_sha256 TEXT NOT NULL DEFAULT '',"
	" preview_bytes INTEGER NOT NULL DEFAULT 0, counts_bytes INTEGER NOT NULL DEFAULT 0,"
	" spec TEXT NOT NULL,"
	" CHECK (" MQ_JOB_SOUND ")) STRICT;"

	"CREATE TABLE tiles ("
	" id INTEGER PRIMARY KEY,"
	" job INTEGER NOT NULL REFERENCES jobs (id),"
	" strip_first INTEGER NOT NULL, strip_count INTEGER NOT NULL,"
	" state TEXT NOT NULL DEFAULT 'pending',"
	" suspect INTEGER NOT NULL DEFAULT 0, deaths INTEGER NOT NULL DEFAULT 0,"
	" attempts INTEGER NOT NULL DEFAULT 0, attempt INTEGER,"
	" file_attempt INTEGER, file_bytes INTEGER, file_sha256 BLOB,"
	" split_reason TEXT, compute_seconds REAL NOT NULL DEFAULT 0,"
	" CHECK (" MQ_TILE_SOUND ")) STRICT;"

	"CREATE TABLE attempts ("
	" id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" job INTEGER NOT NULL REFERENCES jobs (id), tile INTEGER NOT NULL REFERENCES tiles (id),"
	" device TEXT NOT NULL, alone INTEGER NOT NULL CHECK (alone IN (0, 1)),"
	" started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL DEFAULT 0,"
	" outcome TEXT) STRICT;"

	"CREATE UNIQUE INDEX jobs_request ON jobs (request_id) WHERE request_id IS NOT NULL;"
	"CREATE INDEX jobs_state ON jobs (state, id);"
	"CREATE INDEX jobs_open ON jobs (priority DESC, id) WHERE state IN ('queued', 'running');"
	"CREATE INDEX tiles_ready ON tiles (job, strip_first)"
	" WHERE state = 'pending' AND suspect = 0;"
	"CREATE INDEX tiles_suspect ON tiles (deaths DESC, job, strip_first)"
	" WHERE state = 'pending' AND suspect = 1;"
	"CREATE INDEX tiles_running ON tiles (job) WHERE state = 'running';"
	"CREATE INDEX tiles_done ON tiles (job, strip_first) WHERE state = 'done';"
	"CREATE INDEX tiles_deaths ON tiles (deaths) WHERE deaths > 0;";

static int to_version_1(sqlite3 *db)
{
	return sqlite3_exec(db, version_1, NULL, NULL, NULL);
}

/* Removing a job must not look through all attempts for each of its tiles, as the foreign keys of
 * version 1 would: so attempts name their job and tile by number only. Request ids are each user's own;
 * jobs of version 1 have no known owner. asked_priority is that of the submit, which a repeated submit
 * must match whatever the priority is now. inside is NULL where it was not counted from the start. */
static const char version_2[] =
	"ALTER TABLE jobs ADD COLUMN after INTEGER;"
	"ALTER TABLE jobs ADD COLUMN asked_priority INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE jobs ADD COLUMN fetched_ms INTEGER NOT NULL DEFAULT 0 CHECK (fetched_ms >= 0);"
	"ALTER TABLE jobs ADD COLUMN inside INTEGER CHECK (inside >= 0);"
	"ALTER TABLE jobs ADD COLUMN flat INTEGER CHECK (flat IN (0, 1));"
	"UPDATE jobs SET asked_priority = priority;"
	"ALTER TABLE tiles ADD COLUMN inside INTEGER NOT NULL DEFAULT 0 CHECK (inside >= 0);"

	"CREATE TABLE attempts_2 ("
	" id INTEGER PRIMARY KEY AUTOINCREMENT, job INTEGER NOT NULL, tile INTEGER NOT NULL,"
	" device TEXT NOT NULL, alone INTEGER NOT NULL CHECK (alone IN (0, 1)),"
	" started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL DEFAULT 0,"
	" outcome TEXT) STRICT;"
	"INSERT INTO attempts_2 SELECT id, job, tile, device, alone, started_ms, ended_ms, outcome"
	" FROM attempts WHERE alone IN (0, 1) AND typeof(job) = 'integer' AND typeof(tile) = 'integer'"
	" AND typeof(device) = 'text' AND typeof(started_ms) = 'integer' AND typeof(ended_ms) = 'integer'"
	" ORDER BY id;"
	"DROP TABLE attempts;"
	"ALTER TABLE attempts_2 RENAME TO attempts;"

	"CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;"

	"DROP INDEX jobs_request;"
	"CREATE UNIQUE INDEX jobs_request ON jobs (request_id, owner) WHERE request_id IS NOT NULL;"
	"CREATE INDEX jobs_after ON jobs (after) WHERE state IN ('waiting', 'paused');"
	"CREATE INDEX jobs_finished ON jobs (finished_ms, id) WHERE finished_ms > 0;"
	"CREATE INDEX tiles_job ON tiles (job);"
	"CREATE INDEX attempts_job ON attempts (job);";

static int to_version_2(sqlite3 *db)
{
	return sqlite3_exec(db, version_2, NULL, NULL, NULL);
}

/* The assemblies that are under way, and those that were at an unclean end: these run alone, as tiles do
 * that are suspects. */
static const char version_3[] =
	"CREATE TABLE assemblies ("
	" job INTEGER PRIMARY KEY, running INTEGER NOT NULL CHECK (running IN (0, 1)),"
	" alone INTEGER NOT NULL CHECK (alone IN (0, 1)),"
	" deaths INTEGER NOT NULL DEFAULT 0 CHECK (deaths >= 0)) STRICT;";

static int to_version_3(sqlite3 *db)
{
	return sqlite3_exec(db, version_3, NULL, NULL, NULL);
}

/* migrations[n] brings version n to n + 1. */
static int (*const migrations[MQ_STORE_SCHEMA])(sqlite3 *db) = {to_version_1, to_version_2, to_version_3};

static int stamp(sqlite3 *db)
{
	char text[96];

	sqlite3_snprintf((int)sizeof text, text, "PRAGMA application_id = %d; PRAGMA user_version = %d",
	                 MQ_STORE_APPLICATION_ID, MQ_STORE_SCHEMA);
	return sqlite3_exec(db, text, NULL, NULL, NULL);
}

enum mq_status mq_schema_migrate(sqlite3 *db, int from, struct mq_error *err)
{
	enum mq_status status;
	int version, fault, rc;

	if (from == MQ_STORE_SCHEMA)
		return MQ_OK;
	/* Rows that are damaged already are set aside afterwards (mq_check_rows). */
	rc = sqlite3_exec(db, "PRAGMA ignore_check_constraints = ON; BEGIN IMMEDIATE", NULL, NULL, NULL);
	for (version = from; rc == SQLITE_OK && version < MQ_STORE_SCHEMA; version++)
		rc = migrations[version](db);
	if (rc == SQLITE_OK)
		rc = stamp(db);
	if (rc != SQLITE_OK)
		goto failed;
	fault = mq_failpoint("store-migrate");
	if (fault) {
		(void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
		return mq_fail_errno(err, fault, "cannot make the tables of the database");
	}
	rc = sqlite3_exec(db, "COMMIT; PRAGMA ignore_check_constraints = OFF", NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		return MQ_OK;
failed:
	status = mq_fail_sqlite(db, rc, err, "cannot make the tables of the database");
	/* The text is taken; a rollback that fails leaves nothing that close does not undo. */
	if (!sqlite3_get_autocommit(db))
		(void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return status;
}
