/* test_store_queue: what people do to jobs, jobs that come after others, sums and walks, copies, and the
 * way from schema 1. */
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/store_fixture.h"

#define NOW 1700000100000

static int64_t add_after(struct fixture *f, int64_t after)
{
	struct mq_new_job job = job_of(4, 2);

	job.after = after;
	return add(f, &job);
}

static void expect(struct fixture *f, int64_t id, enum mq_job_state state, const char *text)
{
	struct mq_job_row row;

	assert_ok(mq_store_job_get(f->store, id, &row, err));
	if (row.state != state)
		fail_msg("job %lld is %s, not %s", (long long)id, mq_job_state_name(row.state),
		         mq_job_state_name(state));
	if (text)
		assert_non_null(strstr(row.reason ? row.reason : row.error ? row.error : "", text));
	else
		assert_null(row.reason);
	mq_job_row_clear(&row);
}

static void move(struct fixture *f, int64_t id, enum mq_job_state to)
{
	assert_ok(mq_store_job_move(f->store, id, to, NULL, to == MQ_JOB_FAILED ? "why" : NULL, NOW, err));
}

static void finish(struct fixture *f, int64_t id)
{
	struct mq_output out = {.picture_bytes = 1000, .preview_bytes = 100, .counts_bytes = 10};

	memset(out.picture_sha256, 'a', 64);
	render_all(f);
	assert_ok(mq_store_job_done(f->store, id, &out, NOW, err));
}

static void pause_and_resume(void **state)
{
	struct fixture *f = *state;
	struct mq_tile_row tile;
	int64_t id = add_job(f, 4, 2), attempt;

	assert_ok(mq_store_job_pause(f->store, id, "by hand", NOW, err));
	expect(f, id, MQ_JOB_PAUSED, "by hand");
	assert_int_equal(next(f, false, &tile, 1), 0);
	assert_ok(mq_store_job_pause(f->store, id, "again", NOW, err));
	expect(f, id, MQ_JOB_PAUSED, "again");
	assert_ok(mq_store_job_resume(f->store, id, NOW, err));
	expect(f, id, MQ_JOB_QUEUED, NULL);
	assert_ok(mq_store_job_resume(f->store, id, NOW, err));

	/* One in flight when it is paused counts; the job then goes on as running. */
	assert_int_equal(next(f, false, &tile, 1), 1);
	attempt = begin(f, tile.id, false);
	assert_ok(mq_store_job_pause(f->store, id, "by hand", NOW, err));
	assert_false(done(f, attempt));
	assert_ok(mq_store_job_resume(f->store, id, NOW, err));
	expect(f, id, MQ_JOB_RUNNING, NULL);

	/* The last tile of a paused job: it goes on to be assembled. */
	assert_int_equal(next(f, false, &tile, 1), 1);
	attempt = begin(f, tile.id, false);
	assert_ok(mq_store_job_pause(f->store, id, "by hand", NOW, err));
	assert_false(done(f, attempt));
	expect(f, id, MQ_JOB_PAUSED, "by hand");
	assert_ok(mq_store_job_resume(f->store, id, NOW, err));
	expect(f, id, MQ_JOB_ASSEMBLING, NULL);

	finish(f, id);
	assert_int_equal(mq_store_job_pause(f->store, id, "x", NOW, NULL), MQ_ESTATE);
	assert_int_equal(mq_store_job_resume(f->store, id, NOW, NULL), MQ_ESTATE);
	assert_int_equal(mq_store_job_pause(f->store, 99, "x", NOW, NULL), MQ_ENOENT);
}

static void retry_keeps_what_is_done(void **state)
{
	struct fixture *f = *state;
	struct mq_tile_row tile[4];
	int64_t id = add_job(f, 8, 2);
	struct mq_job_row row;

	assert_int_equal(mq_store_job_retry(f->store, id, NULL), MQ_ESTATE);
	assert_int_equal(next(f, false, tile, 4), 4);
	done(f, begin(f, tile[0].id, false));
	begin(f, tile[1].id, false);
	assert_ok(mq_store_tile_fail(f->store, tile[1].id, "poison", NOW, err));
	expect(f, id, MQ_JOB_FAILED, "poison");
	assert_ok(mq_store_job_retry(f->store, id, err));
	assert_ok(mq_store_job_get(f->store, id, &row, err));
	assert_int_equal(row.state, MQ_JOB_QUEUED);
	assert_null(row.error);
	assert_int_equal(row.finished_ms, 0);
	assert_int_equal(row.tiles_done, 1);
	mq_job_row_clear(&row);
	assert_int_equal(next(f, false, tile, 4), 3);
	assert_int_equal(tile[0].span.first, 2);
	assert_int_equal(tile[0].deaths, 0);
	render_all(f);
	expect(f, id, MQ_JOB_ASSEMBLING, NULL);

	/* Failed while it was assembled: only that is left. */
	move(f, id, MQ_JOB_FAILED);
	assert_ok(mq_store_job_retry(f->store, id, err));
	expect(f, id, MQ_JOB_ASSEMBLING, NULL);
	move(f, id, MQ_JOB_CANCELLED);
	assert_int_equal(mq_store_job_retry(f->store, id, NULL), MQ_ESTATE);
}

static void a_job_set_aside_is_not_retried(void **state)
{
	struct fixture *f = *state;
	int64_t id = add_job(f, 4, 2);

	move(f, id, MQ_JOB_FAILED);
	assert_int_equal(sqlite3_exec(f->store->db, "UPDATE jobs SET strips_total = 1, tiles_total = 1", 0, 0,
	                              0),
	                 SQLITE_OK);
	assert_int_equal(mq_store_job_retry(f->store, id, NULL), MQ_ECORRUPT);
}

static void after_a_good_end(void **state)
{
	struct fixture *f = *state;
	struct mq_tile_row tile[8];
	int64_t a = add_job(f, 4, 2), b = add_after(f, a), c = add_after(f, b), paused = add_after(f, a);

	expect(f, b, MQ_JOB_WAITING, "for job 1");
	assert_ok(mq_store_job_pause(f->store, paused, "by hand", NOW, err));
	assert_int_equal(next(f, false, tile, 8), 2);
	finish(f, a);
	expect(f, b, MQ_JOB_QUEUED, NULL);
	expect(f, c, MQ_JOB_WAITING, "for job 2");
	expect(f, paused, MQ_JOB_PAUSED, "by hand");
	assert_ok(mq_store_job_resume(f->store, paused, NOW, err));
	expect(f, paused, MQ_JOB_QUEUED, NULL);
	/* One that is done already is not waited for. */
	expect(f, add_after(f, a), MQ_JOB_QUEUED, NULL);
	/* A waiting job that was paused waits again. */
	assert_ok(mq_store_job_pause(f->store, c, "by hand", NOW, err));
	assert_ok(mq_store_job_resume(f->store, c, NOW, err));
	expect(f, c, MQ_JOB_WAITING, "for job 2");
}

static void after_a_bad_end(void **state)
{
	struct fixture *f = *state;
	struct mq_new_job late = job_of(1, 1);
	struct mq_tile_row tile[8];
	int64_t a = add_job(f, 4, 2), b = add_after(f, a), c = add_after(f, b), d = add_after(f, a), id;
	bool existing;

	assert_ok(mq_store_job_pause(f->store, d, "by hand", NOW, err));
	move(f, a, MQ_JOB_CANCELLED);
	expect(f, b, MQ_JOB_FAILED, "job 1, which it waited for, was cancelled");
	expect(f, c, MQ_JOB_FAILED, "job 2, which it waited for, failed");
	expect(f, d, MQ_JOB_FAILED, "job 1, which it waited for, was cancelled");
	assert_int_equal(next(f, false, tile, 8), 0);
	assert_int_equal(ask(f, "SELECT count(*) FROM tiles WHERE state <> 'failed'"), 0);
	late.after = a;
	assert_int_equal(mq_store_job_add(f->store, &late, &id, &existing, NULL), MQ_ESTATE);
	late.after = 99;
	assert_int_equal(mq_store_job_add(f->store, &late, &id, &existing, NULL), MQ_ENOENT);
	/* Its turn comes again only when that of the job before it can. */
	assert_int_equal(mq_store_job_retry(f->store, b, NULL), MQ_ESTATE);
	assert_int_equal(mq_store_job_retry(f->store, c, NULL), MQ_ESTATE);
}

static void retry_of_a_chain(void **state)
{
	struct fixture *f = *state;
	int64_t a = add_job(f, 4, 2), b = add_after(f, a);

	move(f, a, MQ_JOB_FAILED);
	expect(f, b, MQ_JOB_FAILED, "failed");
	assert_ok(mq_store_job_retry(f->store, a, err));
	assert_ok(mq_store_job_retry(f->store, b, err));
	expect(f, b, MQ_JOB_WAITING, "for job 1");
	finish(f, a);
	expect(f, b, MQ_JOB_QUEUED, NULL);
}

static void priority_and_repeated_requests(void **state)
{
	struct fixture *f = *state;
	struct mq_new_job job = job_of(1, 1);
	struct mq_tile_row tile;
	int64_t first = add_job(f, 1, 1), id = 0, again = 0;
	bool existing = false;

	job.request_id = "mine";
	job.priority = 3;
	id = add(f, &job);
	assert_ok(mq_store_job_priority(f->store, first, 7, err));
	assert_int_equal(next(f, false, &tile, 1), 1);
	assert_int_equal(tile.job, first);
	/* The submit is the same whatever became of the priority. */
	assert_ok(mq_store_job_priority(f->store, id, 9, err));
	assert_int_equal(get(f, id).priority, 9);
	assert_ok(mq_store_job_add(f->store, &job, &again, &existing, err));
	assert_true(existing);
	assert_int_equal(again, id);
	job.after = first;
	assert_int_equal(mq_store_job_add(f->store, &job, &again, &existing, NULL), MQ_ECONFLICT);
	/* Another user's request ids are others. */
	job.after = 0;
	job.owner = 1001;
	assert_int_equal(add(f, &job), id + 1);
	move(f, id, MQ_JOB_CANCELLED);
	assert_int_equal(mq_store_job_priority(f->store, id, 1, NULL), MQ_ESTATE);
}

static void remove_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	int64_t keep = add_job(f, 4, 2), id = add_job(f, 4, 2);

	render_all(f);
	assert_int_equal(mq_store_job_remove(f->store, id, NULL), MQ_ESTATE);
	move(f, id, MQ_JOB_CANCELLED);
	assert_ok(mq_store_job_remove(f->store, id, err));
	assert_int_equal(mq_store_job_remove(f->store, id, NULL), MQ_ENOENT);
	commit(f);
	assert_int_equal(ask(f, "SELECT count(*) FROM jobs"), 1);
	assert_int_equal(ask(f, "SELECT count(*) FROM tiles WHERE job = 2"), 0);
	assert_int_equal(ask(f, "SELECT count(*) FROM attempts WHERE job = 2"), 0);
	assert_int_equal(ask(f, "SELECT count(*) FROM attempts"), 2);
	expect(f, keep, MQ_JOB_ASSEMBLING, NULL);
	/* Its number is not used again. */
	assert_int_equal(add_job(f, 1, 1), id + 1);
	/* None of the statements may look through a whole table. */
	assert_int_equal(ask(f, "SELECT count(*) FROM pragma_foreign_key_list('attempts')"), 0);
}

static void old_jobs_and_sums(void **state)
{
	struct fixture *f = *state;
	int64_t ids[8], done_id = add_job(f, 1, 1), cancelled = add_job(f, 1, 1), open = add_job(f, 1, 1);
	struct mq_old which = {.before_ms = NOW + 1, .everybody = true};
	uint64_t count[MQ_JOB_STATE_COUNT], n;
	size_t got;

	move(f, cancelled, MQ_JOB_CANCELLED);
	assert_ok(mq_store_job_pause(f->store, open, "by hand", NOW, err));
	finish(f, done_id);
	assert_ok(mq_store_jobs_count(f->store, count, err));
	assert_int_equal(count[MQ_JOB_DONE], 1);
	assert_int_equal(count[MQ_JOB_PAUSED], 1);
	assert_int_equal(count[MQ_JOB_QUEUED], 0);
	assert_ok(mq_store_jobs_open(f->store, 1000, &n, err));
	assert_int_equal(n, 1);
	assert_ok(mq_store_jobs_open(f->store, 1001, &n, err));
	assert_int_equal(n, 0);
	assert_ok(mq_store_jobs_bytes(f->store, false, 1000, &n, err));
	assert_int_equal(n, 1110);
	assert_ok(mq_store_jobs_bytes(f->store, false, 1001, &n, err));
	assert_int_equal(n, 0);

	assert_ok(mq_store_jobs_old(f->store, &which, ids, 8, &got, err));
	assert_int_equal(got, 1);
	assert_int_equal(ids[0], cancelled);
	which.unfetched = true;
	assert_ok(mq_store_jobs_old(f->store, &which, ids, 8, &got, err));
	assert_int_equal(got, 2);
	which.unfetched = false;
	assert_ok(mq_store_job_fetched(f->store, done_id, NOW, err));
	assert_ok(mq_store_jobs_old(f->store, &which, ids, 8, &got, err));
	assert_int_equal(got, 2);
	which.after_ms = NOW;
	which.after_id = done_id;
	assert_ok(mq_store_jobs_old(f->store, &which, ids, 8, &got, err));
	assert_int_equal(got, 1);
	which.everybody = false;
	which.owner = 1001;
	assert_ok(mq_store_jobs_old(f->store, &which, ids, 8, &got, err));
	assert_int_equal(got, 0);
	which.everybody = true;
	which.before_ms = NOW;
	assert_ok(mq_store_jobs_old(f->store, &which, ids, 8, &got, err));
	assert_int_equal(got, 0);
}

static enum mq_status tally(void *arg, const struct mq_tile_info *t)
{
	uint64_t *sum = arg;

	sum[0]++;
	sum[1] += t->inside;
	return MQ_OK;
}

static enum mq_status tally_attempt(void *arg, const struct mq_attempt_info *a)
{
	uint64_t *sum = arg;

	sum[0]++;
	assert_string_equal(a->device, "cpu");
	assert_string_equal(a->outcome, "done");
	return MQ_OK;
}

static void inside_is_summed(void **state)
{
	struct fixture *f = *state;
	struct mq_tile_file file = {.bytes = 5, .inside = 30};
	int64_t id = add_job(f, 4, 2);
	uint64_t sum[2] = {0};
	struct mq_tile_row tile[2];
	bool complete;

	assert_int_equal(next(f, false, tile, 2), 2);
	assert_ok(mq_store_tile_done(f->store, begin(f, tile[0].id, false), &file, 1, NOW, &complete, err));
	file.inside = 12;
	assert_ok(mq_store_tile_done(f->store, begin(f, tile[1].id, false), &file, 1, NOW, &complete, err));
	assert_int_equal(get(f, id).inside, 42);
	assert_int_equal(get(f, id).flat, -1);
	assert_ok(mq_store_tiles_each(f->store, id, 0, 10, tally, sum, err));
	assert_int_equal(sum[0], 2);
	assert_int_equal(sum[1], 42);
	sum[0] = 0;
	assert_ok(mq_store_attempts_each(f->store, id, 1, 10, tally_attempt, sum, err));
	assert_int_equal(sum[0], 1);
	assert_ok(mq_store_tile_redo(f->store, tile[0].id, "damaged", NOW, err));
	assert_int_equal(get(f, id).inside, 12);
}

static void numbers_of_the_queue(void **state)
{
	struct fixture *f = *state;
	int64_t value = 5;

	assert_ok(mq_store_meta_get(f->store, "paused", &value, err));
	assert_int_equal(value, 0);
	assert_ok(mq_store_meta_set(f->store, "paused", 1, err));
	assert_ok(mq_store_meta_set(f->store, "paused", 2, err));
	commit(f);
	fixture_reopen(f);
	assert_ok(mq_store_meta_get(f->store, "paused", &value, err));
	assert_int_equal(value, 2);
}

/* ---- copies ---- */

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
	struct mq_copy *copy;
	double progress;
	char path[400];
	struct stat st;
	bool done;

	snprintf(path, sizeof path, "%s.copy", f->path);
	add_job(f, 1000, 1);
	commit(f);
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
	assert_ok(mq_store_copy(f->path, copy, err));
	assert_int_equal(ask_file(copy, "SELECT count(*) FROM tiles"), 100);
	fixture_reopen(f);
	assert_int_equal(add_job(f, 1, 1), 2);
}

/* ---- from schema 1 ---- */

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
	" spec TEXT NOT NULL) STRICT;"
	"CREATE TABLE tiles (id INTEGER PRIMARY KEY, job INTEGER NOT NULL REFERENCES jobs (id),"
	" strip_first INTEGER NOT NULL, strip_count INTEGER NOT NULL,"
	" state TEXT NOT NULL DEFAULT 'pending', suspect INTEGER NOT NULL DEFAULT 0,"
	" deaths INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 0, attempt INTEGER,"
	" file_attempt INTEGER, file_bytes INTEGER, file_sha256 BLOB, split_reason TEXT,"
	" compute_seconds REAL NOT NULL DEFAULT 0) STRICT;"
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

static void make_old(struct fixture *f)
{
	sqlite3 *db = NULL;
	char *text = NULL;

	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	if (sqlite3_exec(db, old_database, NULL, NULL, &text) != SQLITE_OK)
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

	make_old(f);
	fixture_reopen(f);
	assert_int_equal(ask(f, "PRAGMA user_version"), MQ_STORE_SCHEMA);
	assert_int_equal(ask(f, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
	expect(f, 1, MQ_JOB_DONE, NULL);
	expect(f, 2, MQ_JOB_RUNNING, NULL);
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
	expect(f, 1, MQ_JOB_ASSEMBLING, NULL);
	assert_ok(mq_store_assembly_begin(f->store, 1, false, err));
	commit(f);
	snprintf(copy, sizeof copy, "%s.v2-backup", f->path);
	assert_int_equal(ask_file(copy, "PRAGMA user_version"), 2);
	assert_int_equal(unlink(copy), 0);
}

static void paused_for_a_reason(void **state)
{
	struct fixture *f = *state;
	int64_t ids[4];
	size_t n;

	for (int i = 0; i < 4; i++)
		add_job(f, 1, 1);
	assert_ok(mq_store_job_pause(f->store, 1, "by a user", 1, err));
	assert_ok(mq_store_job_pause(f->store, 2, "disk full: x", 1, err));
	assert_ok(mq_store_job_pause(f->store, 3, "disk error: x", 1, err));
	assert_ok(mq_store_job_pause(f->store, 4, "disk full: y", 1, err));
	assert_ok(mq_store_jobs_paused(f->store, "disk full: ", ids, 4, &n, err));
	assert_int_equal(n, 2);
	assert_int_equal(ids[0], 2);
	assert_int_equal(ids[1], 4);
	assert_ok(mq_store_jobs_paused(f->store, "disk error: ", ids, 4, &n, err));
	assert_int_equal(n, 1);
	assert_int_equal(ids[0], 3);
}

static void no_copy_no_migration(void **state)
{
	struct fixture *f = *state;
	char name[400];

	make_old(f);
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
		TEST(pause_and_resume),
		TEST(retry_keeps_what_is_done),
		TEST(a_job_set_aside_is_not_retried),
		TEST(after_a_good_end),
		TEST(after_a_bad_end),
		TEST(retry_of_a_chain),
		TEST(priority_and_repeated_requests),
		TEST(remove_leaves_nothing),
		TEST(old_jobs_and_sums),
		TEST(inside_is_summed),
		TEST(numbers_of_the_queue),
		TEST(copy_of_an_open_store),
		TEST(copy_that_is_given_up),
		TEST(copy_of_what_a_killed_worker_left),
		BARE(from_schema_1),
		TEST(from_schema_2),
		TEST(paused_for_a_reason),
		BARE(no_copy_no_migration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
