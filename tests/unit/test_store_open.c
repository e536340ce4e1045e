/* test_store_open: what the store does with files that it did not write, that are damaged, or that a
 * killed process left. */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/store_fixture.h"

/* ---- whole files ---- */

struct bytes {
	unsigned char *data;
	size_t len;
	bool there;
};

static struct bytes slurp(const char *path)
{
	struct bytes b = {0};
	FILE *file = fopen(path, "rb");
	struct stat st;

	if (!file)
		return b;
	b.there = true;
	assert_int_equal(fstat(fileno(file), &st), 0);
	b.len = (size_t)st.st_size;
	b.data = malloc(b.len + 1);
	assert_non_null(b.data);
	assert_int_equal(fread(b.data, 1, b.len, file), b.len);
	fclose(file);
	return b;
}

static void spill(const char *path, const void *data, size_t len)
{
	FILE *file = fopen(path, "wb");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static void assert_same(struct bytes a, struct bytes b)
{
	assert_int_equal(a.there, b.there);
	assert_int_equal(a.len, b.len);
	if (a.len > 0)
		assert_memory_equal(a.data, b.data, a.len);
	free(a.data);
	free(b.data);
}

/* Opening gives status and changes neither the database nor what lies beside it. */
static void assert_refused(struct fixture *f, enum mq_status status)
{
	static const char *const suffixes[] = {"", "-wal", "-journal", "-shm"};
	struct bytes before[4], after;
	char name[320];
	struct mq_error err = {.text = ""};

	for (size_t i = 0; i < 4; i++) {
		snprintf(name, sizeof name, "%s%s", f->path, suffixes[i]);
		before[i] = slurp(name);
	}
	assert_int_equal(mq_store_open(f->path, &f->store, &err), status);
	assert_null(f->store);
	assert_true(err.text[0] != '\0');
	for (size_t i = 0; i < 4; i++) {
		snprintf(name, sizeof name, "%s%s", f->path, suffixes[i]);
		after = slurp(name);
		assert_same(before[i], after);
	}
}

/* Runs SQL on the closed database by a connection of its own. */
static void with_sqlite(struct fixture *f, const char *sql)
{
	sqlite3 *db = NULL;
	char *text = NULL;

	mq_store_close(f->store);
	f->store = NULL;
	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &text) != SQLITE_OK)
		fail_msg("%s", text);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* As with_sqlite, but the connection dies with its log beside it. */
static void with_sqlite_killed(struct fixture *f, const char *sql)
{
	pid_t child;
	int status;

	mq_store_close(f->store);
	f->store = NULL;
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		sqlite3 *db = NULL;

		if (sqlite3_open(f->path, &db) == SQLITE_OK &&
		    sqlite3_exec(db, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL", 0, 0, 0) ==
		            SQLITE_OK &&
		    sqlite3_exec(db, sql, 0, 0, 0) == SQLITE_OK)
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
}

/* ---- a new one ---- */

static void new_database(void **state)
{
	struct fixture *f = *state;
	struct bytes file;

	fixture_reopen(f);
	assert_int_equal(ask(f, "PRAGMA application_id"), 0x4d514c31);
	assert_int_equal(ask(f, "PRAGMA user_version"), MQ_STORE_SCHEMA);
	assert_int_equal(ask(f, "PRAGMA synchronous"), 2);
	assert_int_equal(ask(f, "PRAGMA foreign_keys"), 1);
	assert_int_equal(ask(f, "PRAGMA ignore_check_constraints"), 0);
	assert_int_equal(ask(f, "SELECT count(*) FROM pragma_journal_mode WHERE journal_mode = 'wal'"), 1);
	mq_store_close(f->store);
	f->store = NULL;
	file = slurp(f->path);
	assert_memory_equal(file.data + 68, "MQL1", 4);
	free(file.data);
}

static void empty_files_are_new(void **state)
{
	struct fixture *f = *state;

	spill(f->path, "", 0);
	fixture_reopen(f);
	mq_store_close(f->store);
	f->store = NULL;
	unlink(f->path);
	/* A database without tables, as `sqlite3 FILE vacuum` makes it. */
	with_sqlite(f, "VACUUM");
	fixture_reopen(f);
	assert_int_equal(add_job(f, 1, 1), 1);
}

static void held_while_open(void **state)
{
	struct fixture *f = *state;
	char name[320];
	struct stat st;
	pid_t child;
	int status;

	fixture_reopen(f);
	snprintf(name, sizeof name, "%s-shm", f->path);
	assert_int_equal(stat(name, &st), -1);
	child = fork(); /* locks are a process's */
	assert_true(child >= 0);
	if (child == 0) {
		struct mq_store *second = NULL;

		_exit(mq_store_open(f->path, &second, NULL) == MQ_EBUSY ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(add_job(f, 1, 1), 1);
	commit(f);
}

/* ---- not ours ---- */

static void refuses_newer_schema(void **state)
{
	struct fixture *f = *state;
	char newer[64], ours[64];

	snprintf(newer, sizeof newer, "PRAGMA user_version = %d", MQ_STORE_SCHEMA + 1);
	snprintf(ours, sizeof ours, "PRAGMA user_version = %d", MQ_STORE_SCHEMA);
	fixture_reopen(f);
	add_job(f, 4, 1);
	commit(f);
	with_sqlite(f, newer);
	assert_refused(f, MQ_EVERSION);
	with_sqlite(f, ours);
	fixture_reopen(f);
	/* The newer version stands in the log alone. */
	with_sqlite_killed(f, newer);
	assert_refused(f, MQ_EVERSION);
}

static void refuses_foreign_databases(void **state)
{
	struct fixture *f = *state;

	with_sqlite(f, "CREATE TABLE t (x); INSERT INTO t VALUES (1)");
	assert_refused(f, MQ_ECORRUPT);
	with_sqlite(f, "PRAGMA journal_mode = WAL");
	assert_refused(f, MQ_ECORRUPT);
	with_sqlite_killed(f, "INSERT INTO t VALUES (2)");
	assert_refused(f, MQ_ECORRUPT);
	unlink(f->path);
	with_sqlite(f, "PRAGMA application_id = 77");
	assert_refused(f, MQ_ECORRUPT);
	with_sqlite(f, "PRAGMA application_id = 0; PRAGMA user_version = 3");
	assert_refused(f, MQ_ECORRUPT);
}

static void refuses_other_files(void **state)
{
	struct fixture *f = *state;
	char text[5000];

	memset(text, 'x', sizeof text);
	spill(f->path, text, sizeof text);
	assert_refused(f, MQ_ECORRUPT);
	spill(f->path, text, 3);
	assert_refused(f, MQ_ECORRUPT);
	memset(text, 0, sizeof text);
	spill(f->path, text, sizeof text);
	assert_refused(f, MQ_ECORRUPT);
	unlink(f->path);
	assert_int_equal(mkfifo(f->path, 0600), 0);
	assert_int_equal(mq_store_open(f->path, &f->store, NULL), MQ_ECORRUPT);
	unlink(f->path);
	assert_int_equal(mkdir(f->path, 0700), 0);
	assert_int_equal(mq_store_open(f->path, &f->store, NULL), MQ_ECORRUPT);
	rmdir(f->path);
}

static void refuses_damage(void **state)
{
	struct fixture *f = *state;
	struct bytes file;

	fixture_reopen(f);
	for (int i = 0; i < 20; i++)
		add_job(f, 100, 1);
	commit(f);
	mq_store_close(f->store);
	f->store = NULL;
	file = slurp(f->path);
	assert_true(file.len > 30 * 4096);
	for (size_t page = 8; page < 30; page++)
		memset(file.data + page * 4096, 0x5a, 64);
	spill(f->path, file.data, file.len);
	free(file.data);
	assert_refused(f, MQ_ECORRUPT);
}

/* ---- bad rows ---- */

static enum mq_status count_row(void *arg, const struct mq_job_row *row)
{
	(void)row;
	++*(int *)arg;
	return MQ_OK;
}

static void sets_bad_jobs_aside(void **state)
{
	struct fixture *f = *state;
	struct mq_new_job job = job_of(4, 2);
	struct mq_job_row row;
	struct mq_tile_row tile;
	int count = 0;

	fixture_reopen(f);
	job.request_id = "mine";
	for (int i = 0; i < 6; i++) {
		add(f, &job);
		job.request_id = NULL;
	}
	next(f, false, &tile, 1);
	begin(f, tile.id, false);
	commit(f);
	with_sqlite(f,
	            "PRAGMA ignore_check_constraints = ON;"
	            "UPDATE jobs SET width = -5, state = 'bogus', strips_done = 99 WHERE id = 1;"
	            "UPDATE tiles SET state = '' WHERE job = 3 AND strip_first = 0;"
	            "PRAGMA writable_schema = ON;"
	            "UPDATE sqlite_schema SET sql = replace(sql, 'spec TEXT NOT NULL', 'spec TEXT')");
	with_sqlite(f, "PRAGMA ignore_check_constraints = ON; UPDATE jobs SET spec = NULL WHERE id = 5");
	with_sqlite(f, "PRAGMA writable_schema = ON;"
	               "UPDATE sqlite_schema SET sql = replace(sql, 'spec TEXT', 'spec TEXT NOT NULL')");
	fixture_reopen(f);
	for (int64_t id = 1; id <= 6; id++) {
		assert_ok(mq_store_job_get(f->store, id, &row, err));
		if (id % 2 == 0) {
			assert_int_equal(row.state, MQ_JOB_QUEUED);
			assert_null(row.error);
		} else {
			assert_int_equal(row.state, MQ_JOB_FAILED);
			assert_non_null(strstr(row.error, "damaged"));
			assert_null(row.request_id);
			assert_true(row.finished_ms > 0); /* else it would never be cleaned away */
		}
		mq_job_row_clear(&row);
	}
	assert_ok(mq_store_job_each(f->store, 0, 100, count_row, &count, err));
	assert_int_equal(count, 6);
	assert_int_equal(ask(f, "SELECT count(*) FROM attempts WHERE outcome IS NULL"), 0);
	render_all(f);
	assert_int_equal(get(f, 2).state, MQ_JOB_ASSEMBLING);
	assert_int_equal(get(f, 6).state, MQ_JOB_ASSEMBLING);
	assert_int_equal(get(f, 1).state, MQ_JOB_FAILED);
}

static void a_bad_row_spoils_no_walk(void **state)
{
	struct fixture *f = *state;
	struct mq_error why;
	struct mq_job_row row;
	int count = 0;

	fixture_reopen(f);
	for (int i = 0; i < 3; i++)
		add_job(f, 1, 1);
	commit(f);
	/* While the store is open, past the check at start. */
	assert_int_equal(sqlite3_exec(f->store->db,
	                              "PRAGMA ignore_check_constraints = ON;"
	                              "UPDATE jobs SET height = 0 WHERE id = 2;"
	                              "PRAGMA ignore_check_constraints = OFF",
	                              0, 0, 0),
	                 SQLITE_OK);
	assert_int_equal(mq_store_job_get(f->store, 2, &row, &why), MQ_ECORRUPT);
	assert_non_null(strstr(why.text, "job 2"));
	memset(&why, 0, sizeof why);
	assert_int_equal(mq_store_job_each(f->store, 0, 9, count_row, &count, &why), MQ_ECORRUPT);
	assert_non_null(strstr(why.text, "job 2"));
	assert_int_equal(count, 2);
	/* A page is filled up from behind the damaged row. */
	count = 0;
	assert_int_equal(mq_store_job_each(f->store, 0, 2, count_row, &count, NULL), MQ_ECORRUPT);
	assert_int_equal(count, 2);
}

/* ---- killed ---- */

/* Reading all of a large database takes seconds: not after a clean end. Then a job's own row is looked
 * at, and a tile's as soon as there may have been an unclean end. */
static void large_ones_are_looked_through_after_an_unclean_end(void **state)
{
	struct fixture *f = *state;
	char log[320];
	FILE *file;

	fixture_reopen(f);
	for (int i = 0; i < 3; i++)
		add_job(f, 4, 1);
	commit(f);
	with_sqlite(f, "PRAGMA ignore_check_constraints = ON;"
	               "CREATE TABLE filler (x); INSERT INTO filler VALUES (zeroblob(40000000));"
	               "UPDATE tiles SET strip_first = -1 WHERE job = 1 AND strip_first = 0;"
	               "UPDATE jobs SET width = 0 WHERE id = 2");
	fixture_reopen(f);
	assert_int_equal(get(f, 1).state, MQ_JOB_QUEUED);
	assert_int_equal(get(f, 2).state, MQ_JOB_FAILED);
	mq_store_close(f->store);
	f->store = NULL;
	snprintf(log, sizeof log, "%s-wal", f->path);
	assert_int_not_equal(access(log, F_OK), 0);
	file = fopen(log, "w");
	assert_non_null(file);
	fclose(file);
	fixture_reopen(f);
	assert_int_equal(get(f, 1).state, MQ_JOB_FAILED);
	assert_int_equal(get(f, 3).state, MQ_JOB_QUEUED);
}

static void kill_keeps_what_was_committed(void **state)
{
	struct fixture *f = *state;
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		struct mq_new_job job = job_of(8, 2);
		int64_t id;
		bool existing;

		if (mq_store_open(f->path, &f->store, NULL) == MQ_OK &&
		    mq_store_job_add(f->store, &job, &id, &existing, NULL) == MQ_OK &&
		    mq_store_commit(f->store, NULL, NULL) == MQ_OK &&
		    mq_store_job_add(f->store, &job, &id, &existing, NULL) == MQ_OK)
			kill(getpid(), SIGKILL);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	fixture_reopen(f);
	assert_int_equal(ask(f, "SELECT count(*) FROM jobs"), 1);
	assert_int_equal(ask(f, "SELECT count(*) FROM tiles"), 4);
	assert_int_equal(add_job(f, 1, 1), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_prepare, fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(new_database),
		TEST(empty_files_are_new),
		TEST(held_while_open),
		TEST(refuses_newer_schema),
		TEST(refuses_foreign_databases),
		TEST(refuses_other_files),
		TEST(refuses_damage),
		TEST(sets_bad_jobs_aside),
		TEST(a_bad_row_spoils_no_walk),
		TEST(large_ones_are_looked_through_after_an_unclean_end),
		TEST(kill_keeps_what_was_committed),
	};

	return cmocka_run_group_tests_name("store_open", tests, NULL, NULL);
}
