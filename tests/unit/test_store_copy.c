/* test_store_copy: copies of a database, also of one that is open and changes, and the way from older
 * schemas, which begins with a copy. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/store_fixture.h"

static int64_t ask_file(const char *path, const char *sql)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *stmt = NULL;
	int64_t value;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	value = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	return value;
}

static void step_to_the_end(struct mq_copy *copy)
{
	double progress, before = 0;
	bool done = false;

	while (!done) {
		assert_ok(mq_copy_step(copy, 3, &progress, &done, err));
		assert_true(progress >= before && progress <= 1);
		before = progress;
	}
	assert_true(progress == 1);
	mq_copy_end(copy);
}

static void copy_of_an_open_store(void **state)
{
	struct fixture *f = *state;
	struct mq_copy *copy;
	double progress;
	char path[400];
	struct stat st;
	bool done;

	snprintf(path, sizeof path, "%s.copy", f->path);
	add_job(f, 5000, 1);
	/* It may begin within a turn, and goes on after it. */
	assert_ok(mq_copy_begin(f->store, path, &copy, err));
	assert_int_equal(mq_copy_step(copy, 1, &progress, &done, NULL), MQ_EBUSY);
	commit(f);
	assert_ok(mq_copy_step(copy, 10, &progress, &done, err));
	assert_false(done);
	assert_true(progress > 0 && progress < 0.9);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	/* What is committed meanwhile is in it, on pages that were copied and on new ones; what is undone is
	 * not, even when it was so much that SQLite had written it. */
	assert_ok(mq_store_meta_set(f->store, "paused", 7, err));
	add_job(f, 1000, 1);
	commit(f);
	assert_ok(mq_copy_step(copy, 10, &progress, &done, err));
	assert_int_equal(sqlite3_exec(f->store->db, "PRAGMA cache_size = 20", NULL, NULL, NULL), SQLITE_OK);
	add_job(f, 20000, 1);
	mq_store_rollback(f->store);
	step_to_the_end(copy);
	assert_int_equal(ask_file(path, "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'"), 0);
	assert_int_equal(ask_file(path, "SELECT count(*) FROM tiles"), 6000);
	assert_int_equal(ask_file(path, "SELECT count(*) FROM jobs"), 2);
	assert_int_equal(ask_file(path, "SELECT value FROM meta WHERE name = 'paused'"), 7);
	/* An older copy is replaced, and the store goes on. */
	add_job(f, 1, 1);
	commit(f);
	assert_ok(mq_copy_begin(f->store, path, &copy, err));
	step_to_the_end(copy);
	assert_int_equal(ask_file(path, "SELECT count(*) FROM jobs"), 3);
	mq_store_close(f->store);
	f->store = NULL;
	assert_ok(mq_store_open(path, &f->store, err));
	assert_int_equal(add_job(f, 1, 1), 4);
}

static void copy_that_is_given_up(void **state)
{
	struct fixture *f = *state;
	char path[400];
	struct mq_copy *copy;
	struct stat st;
	double progress;
	bool done;

	add_job(f, 1000, 1);
	commit(f);
	snprintf(path, sizeof path, "%s.copy", f->path);
	assert_ok(mq_copy_begin(f->store, path, &copy, err));
	assert_ok(mq_copy_step(copy, 3, &progress, &done, err));
	mq_copy_end(copy);
	assert_int_equal(stat(path, &st), -1);
	mq_copy_end(NULL);
	assert_int_equal(mq_copy_begin(f->store, "/nowhere/copy", &copy, NULL), MQ_EIO);
	add_job(f, 1, 1);
	commit(f);
}

static void copy_of_what_a_killed_worker_left(void **state)
{
	struct fixture *f = *state;
	char copy[400];
	pid_t child;
	int status;

	snprintf(copy, sizeof copy, "%s.copy", f->path);
	mq_store_close(f->store);
	f->store = NULL;
	child = fork();
	if (child == 0) {
		fixture_reopen(f);
		add_job(f, 100, 1);
		commit(f);
		_exit(0); /* the job is in the log alone */
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(close(open(copy, O_WRONLY | O_CREAT | O_EXCL, 0600)), 0);
	assert_ok(mq_store_copy(f->path, copy, err));
	assert_int_equal(ask_file(copy, "SELECT count(*) FROM tiles"), 100);
	fixture_reopen(f);
	assert_int_equal(add_job(f, 1, 1), 2);
}

/* As version 0.1.0 made it, with a done, a running and a cancelled job. */
static const char old_database[] =
	"CREATE TABLE jobs (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, request_id TEXT,"
	" reason TEXT, error TEXT, priority INTEGER NOT NULL, owner INTEGER NOT NULL,"
	" state TEXT NOT NULL DEFAULT 'queued', width INTEGER NOT NULL, height INTEGER NOT NULL,"
	" iterations INTEGER NOT NULL, strips_total INTEGER NOT NULL,"
	" strips_done INTEGER NOT NULL DEFAULT 0, tiles_total INTEGER NOT NULL,"
	" tiles_done INTEGER NOT NULL DEFAULT 0, tiles_split INTEGER NOT NULL DEFAULT 0,"
	" compute_seconds REAL NOT NULL DEFAULT 0, created_ms INTEGER NOT NULL,"
	" started_ms INTEGER NOT NULL DEFAULT 0, finished_ms INTEGER NOT NULL DEFAULT 0,"
	" output_bytes INTEGER NOT NULL DEFAULT 0, output_sha256 TEXT NOT NULL DEFAULT '',"
	" preview_bytes INTEGER NOT NULL DEFAULT 0, counts_bytes INTEGER NOT NULL DEFAULT 0,"
	" spec TEXT NOT NULL, CHECK (state IN ('queued', 'waiting', 'running', 'paused', 'assembling',"
	" 'done', 'failed', 'cancelled'))) STRICT;"
	"CREATE TABLE tiles (id INTEGER PRIMARY KEY, job INTEGER NOT NULL REFERENCES jobs (id),"
	" strip_first INTEGER NOT NULL, strip_count INTEGER NOT NULL,"
	" state TEXT NOT NULL DEFAULT 'pending', suspect INTEGER NOT NULL DEFAULT 0,"
	" deaths INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0, attempt INTEGER,"
	" file_attempt INTEGER, file_bytes INTEGER, file_sha256 BLOB, split_reason TEXT,"
	" compute_seconds REAL NOT NULL DEFAULT 0, CHECK (deaths >= 0)) STRICT;"
	"CREATE TABLE attempts (id INTEGER PRIMARY KEY AUTOINCREMENT,"
	" job INTEGER NOT NULL REFERENCES jobs (id), tile INTEGER NOT NULL REFERENCES tiles (id),"
	" device TEXT NOT NULL, alone INTEGER NOT NULL CHECK (alone IN (0, 1)),"
	" started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL DEFAULT 0, outcome TEXT) STRICT;"
	"CREATE UNIQUE INDEX jobs_request ON jobs (request_id) WHERE request_id IS NOT NULL;"
	"CREATE INDEX jobs_state ON jobs (state, id);"
	"CREATE INDEX jobs_open ON jobs (priority DESC, id) WHERE state IN ('queued', 'running');"
	"CREATE INDEX tiles_ready ON tiles (job, strip_first) WHERE state = 'pending' AND suspect = 0;"
	"CREATE INDEX tiles_suspect ON tiles (deaths DESC, job, strip_first)"
	" WHERE state = 'pending' AND suspect = 1;"
	"CREATE INDEX tiles_running ON tiles (job) WHERE state = 'running';"
	"CREATE INDEX tiles_done ON tiles (job, strip_first) WHERE state = 'done';"
	"CREATE INDEX tiles_deaths ON tiles (deaths) WHERE deaths > 0;"
	"INSERT INTO jobs (name, request_id, priority, owner, state, width, height, iterations,"
	" strips_total, strips_done, tiles_total, tiles_done, created_ms, finished_ms, output_bytes,"
	" output_sha256, spec) VALUES ('old', NULL, 4, -1, 'done', 10, 2, 9, 2, 2, 1, 1, 5, 6, 7,"
	" printf('%.64c', 'a'), '{}'),"
	" ('going', 'mine', 4, -1, 'running', 10, 2, 9, 2, 1, 2, 1, 5, 0, 0, '', '{\"width\":100}'),"
	" ('gone', NULL, 0, -1, 'cancelled', 10, 2, 9, 2, 0, 1, 0, 5, 6, 0, '', '{}');"
	"INSERT INTO tiles (job, strip_first, strip_count, state, file_attempt, file_bytes, file_sha256)"
	" VALUES (1, 0, 2, 'done', 1, 5, zeroblob(32)), (2, 0, 1, 'done', 2, 5, zeroblob(32)),"
	" (2, 1, 1, 'pending', NULL, NULL, NULL), (3, 0, 2, 'failed', NULL, NULL, NULL);"
	"INSERT INTO attempts (job, tile, device, alone, started_ms, ended_ms, outcome)"
	" VALUES (1, 1, 'cpu', 0, 5, 6, 'done'), (2, 2, 'cpu', 0, 5, 6, 'done'),"
	" (2, 3, 'cpu', 0, 5, 6, 'oom');"
	"PRAGMA application_id = 0x4d514c31; PRAGMA user_version = 1; PRAGMA journal_mode = WAL";

static void make_old(struct fixture *f, const char *change)
{
	sqlite3 *db = NULL;
	char *text = NULL;

	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	if (sqlite3_exec(db, old_database, NULL, NULL, &text) != SQLITE_OK ||
	    sqlite3_exec(db, change, NULL, NULL, &text) != SQLITE_OK)
		fail_msg("%s", text);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void from_schema_1(void **state)
{
	struct fixture *f = *state;
	struct mq_new_job same = job_of(1, 1);
	struct mq_tile_row tile;
	char copy[400];
	int64_t id = 0;
	bool existing = false;

	make_old(f, "");
	fixture_reopen(f);
	assert_int_equal(ask(f, "PRAGMA user_version"), MQ_STORE_SCHEMA);
	assert_int_equal(ask(f, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
	assert_int_equal(get(f, 1).state, MQ_JOB_DONE);
	assert_int_equal(get(f, 2).state, MQ_JOB_RUNNING);
	assert_int_equal(get(f, 2).inside, -1);
	assert_int_equal(get(f, 2).fetched_ms, 0);
	/* A repeated submit finds its job, which nobody was known to own. */
	same.request_id = "mine";
	same.name = "going";
	same.priority = 4;
	assert_ok(mq_store_job_add(f->store, &same, &id, &existing, err));
	assert_true(existing);
	assert_int_equal(id, 2);
	/* It goes on, and numbers of attempts go on. */
	assert_int_equal(next(f, false, &tile, 1), 1);
	assert_int_equal(begin(f, tile.id, false), 4);
	assert_int_equal(add_job(f, 1, 1), 4);
	commit(f);
	snprintf(copy, sizeof copy, "%s.v1-backup", f->path);
	assert_int_equal(ask_file(copy, "PRAGMA user_version"), 1);
	assert_int_equal(ask_file(copy, "SELECT count(*) FROM attempts"), 3);
	/* Once: a second start leaves the copy alone. */
	assert_int_equal(unlink(copy), 0);
	fixture_reopen(f);
	assert_int_equal(access(copy, F_OK), -1);
}

/* One row that cannot be keeps nobody else's jobs from going on. */
static void damaged_rows_of_schema_1(void **state)
{
	struct fixture *f = *state;

	make_old(f, "PRAGMA ignore_check_constraints = ON;"
	            "UPDATE jobs SET state = 'bogus' WHERE id = 1;"
	            "INSERT INTO jobs (name, priority, owner, state, width, height, iterations, strips_total,"
	            " tiles_total, created_ms, spec) VALUES ('hurt', 0, -1, 'running', 10, 1, 9, 1, 1, 5, '{}');"
	            "INSERT INTO tiles (job, strip_first, strip_count, deaths) VALUES (4, 0, 1, -1);"
	            "UPDATE attempts SET alone = 7 WHERE id = 1");
	fixture_reopen(f);
	assert_int_equal(ask(f, "PRAGMA user_version"), MQ_STORE_SCHEMA);
	assert_int_equal(get(f, 1).state, MQ_JOB_FAILED);
	assert_int_equal(get(f, 2).state, MQ_JOB_RUNNING);
	assert_int_equal(get(f, 4).state, MQ_JOB_FAILED);
	assert_int_equal(ask(f, "SELECT count(*) FROM attempts"), 2);
	/* The checks hold again. */
	assert_int_equal(sqlite3_exec(f->store->db, "UPDATE jobs SET state = 'bogus'", NULL, NULL, NULL),
	                 SQLITE_CONSTRAINT_CHECK);
}

static void from_schema_2(void **state)
{
	struct fixture *f = *state;
	char copy[400];

	add_job(f, 1, 1);
	render_all(f);
	commit(f);
	/* What 3 added. */
	assert_int_equal(sqlite3_exec(f->store->db, "DROP TABLE assemblies; PRAGMA user_version = 2", NULL,
	                              NULL, NULL), SQLITE_OK);
	fixture_reopen(f);
	assert_int_equal(ask(f, "PRAGMA user_version"), MQ_STORE_SCHEMA);
	assert_int_equal(get(f, 1).state, MQ_JOB_ASSEMBLING);
	assert_ok(mq_store_assembly_begin(f->store, 1, false, err));
	commit(f);
	snprintf(copy, sizeof copy, "%s.v2-backup", f->path);
	assert_int_equal(ask_file(copy, "PRAGMA user_version"), 2);
	assert_int_equal(unlink(copy), 0);
}

static void no_copy_no_migration(void **state)
{
	struct fixture *f = *state;
	char name[400];

	make_old(f, "");
	snprintf(name, sizeof name, "%s.v1-backup.tmp", f->path);
	assert_int_equal(mkdir(name, 0700), 0);
	assert_int_not_equal(mq_store_open(f->path, &f->store, NULL), MQ_OK);
	assert_int_equal(rmdir(name), 0);
	assert_int_equal(ask_file(f->path, "PRAGMA user_version"), 1);
	fixture_reopen(f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_end)
#define BARE(name) cmocka_unit_test_setup_teardown(name, fixture_prepare, fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(copy_of_an_open_store),
		TEST(copy_that_is_given_up),
		TEST(copy_of_what_a_killed_worker_left),
		BARE(from_schema_1),
		BARE(damaged_rows_of_schema_1),
		TEST(from_schema_2),
		BARE(no_copy_no_migration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
