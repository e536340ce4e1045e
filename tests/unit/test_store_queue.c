/* test_store_queue: what people do to jobs, jobs that come after others, sums and walks. */
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
	int64_t id = add_job(f, 4, 2), attempt, waiting;

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

	/* Nor is an assembly in flight lost, and whoever waits for it goes on. */
	waiting = add_after(f, id);
	assert_ok(mq_store_job_pause(f->store, id, "by hand", NOW, err));
	finish(f, id);
	expect(f, id, MQ_JOB_DONE, NULL);
	expect(f, waiting, MQ_JOB_QUEUED, NULL);
	/* With tiles left there was none. */
	assert_ok(mq_store_job_pause(f->store, waiting, "by hand", NOW, err));
	assert_int_equal(mq_store_job_done(f->store, waiting, &(struct mq_output){.picture_bytes = 1}, NOW, NULL),
	                 MQ_ESTATE);
	expect(f, waiting, MQ_JOB_PAUSED, "by hand");

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

/* It runs only after one that was done, also when that one is gone. */
static void after_one_that_is_gone(void **state)
{
	struct fixture *f = *state;
	int64_t a = add_job(f, 4, 2), b = add_after(f, a), c = add_after(f, b), d, e;
	struct mq_error why;

	move(f, a, MQ_JOB_CANCELLED);
	assert_ok(mq_store_job_remove(f->store, a, err));
	assert_int_equal(mq_store_job_retry(f->store, b, &why), MQ_ESTATE);
	assert_non_null(strstr(why.text, "job 1, which it waited for, was cancelled, and has been removed"));
	assert_non_null(strstr(why.text, "without --after"));
	expect(f, b, MQ_JOB_FAILED, "job 1, which it waited for, was cancelled");
	assert_ok(mq_store_job_remove(f->store, b, err));
	assert_int_equal(mq_store_job_retry(f->store, c, NULL), MQ_ESTATE);

	/* One that was done is not missed, whatever became of this one since. */
	a = add_job(f, 4, 2);
	d = add_after(f, a);
	e = add_after(f, a);
	finish(f, a);
	assert_ok(mq_store_job_pause(f->store, e, "by hand", NOW, err));
	assert_ok(mq_store_job_remove(f->store, a, err));
	assert_ok(mq_store_job_resume(f->store, e, NOW, err));
	expect(f, e, MQ_JOB_QUEUED, NULL);
	move(f, d, MQ_JOB_FAILED);
	assert_ok(mq_store_job_retry(f->store, d, err));
	expect(f, d, MQ_JOB_QUEUED, NULL);
}

/* A job may come after one that damage has ended, and nobody has told it. */
static void after_one_that_was_set_aside(void **state)
{
	struct fixture *f = *state;
	struct mq_recovery sum;
	int64_t a = add_job(f, 4, 2), b = add_after(f, a), c = add_after(f, b), gone = add_job(f, 4, 2),
	        d = add_after(f, gone), good = add_job(f, 4, 2), e = add_after(f, good), g = add_after(f, good);

	finish(f, good);
	assert_ok(mq_store_job_pause(f->store, e, "by hand", NOW, err));
	assert_ok(mq_store_job_pause(f->store, b, "by hand", NOW, err));
	assert_int_equal(sqlite3_exec(f->store->db,
	                              "UPDATE jobs SET state = 'failed' WHERE id = 1;"
	                              "DELETE FROM tiles WHERE job IN (4, 6); DELETE FROM jobs WHERE id IN (4, 6)",
	                              0, 0, 0),
	                 SQLITE_OK);
	assert_ok(mq_store_recover(f->store, NOW, &sum, err));
	expect(f, b, MQ_JOB_FAILED, "job 1, which it waited for, failed");
	expect(f, c, MQ_JOB_FAILED, "job 2, which it waited for, failed");
	expect(f, d, MQ_JOB_FAILED, "job 4, which it waited for, is gone");
	expect(f, e, MQ_JOB_PAUSED, "by hand");
	expect(f, g, MQ_JOB_QUEUED, NULL);
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

struct told {
	int64_t job;
	unsigned changes, removals;
};

static void note(void *arg, int64_t job, bool removed)
{
	struct told *t = arg;

	t->job = job;
	*(removed ? &t->removals : &t->changes) += 1;
}

static void a_removal_is_told_as_one(void **state)
{
	struct fixture *f = *state;
	struct told told = {0, 0, 0};
	int64_t id = add_job(f, 4, 2);

	mq_store_watch(f->store, note, &told);
	move(f, id, MQ_JOB_CANCELLED);
	assert_int_equal(told.job, id);
	assert_true(told.changes > 0);
	assert_int_equal(told.removals, 0);
	told = (struct told){0, 0, 0};
	assert_ok(mq_store_job_remove(f->store, id, err));
	assert_int_equal(told.job, id);
	assert_int_equal(told.changes, 0);
	assert_int_equal(told.removals, 1);
	mq_store_watch(f->store, NULL, NULL);
	commit(f);
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pause_and_resume),
		TEST(retry_keeps_what_is_done),
		TEST(a_job_set_aside_is_not_retried),
		TEST(after_a_good_end),
		TEST(after_a_bad_end),
		TEST(after_one_that_is_gone),
		TEST(after_one_that_was_set_aside),
		TEST(retry_of_a_chain),
		TEST(priority_and_repeated_requests),
		TEST(remove_leaves_nothing),
		TEST(a_removal_is_told_as_one),
		TEST(old_jobs_and_sums),
		TEST(inside_is_summed),
		TEST(numbers_of_the_queue),
		TEST(paused_for_a_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
