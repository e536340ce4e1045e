/* test_store: jobs, tiles and attempts, as store.h promises them. */
#include "tests/unit/store_fixture.h"

/* ---- jobs ---- */

static void job_round_trip(void **state)
{
	struct fixture *f = *state;
	struct mq_new_job job = job_of(10, 4);
	struct mq_job_row row;
	int64_t id;

	job.request_id = "r1";
	job.priority = -7;
	id = add(f, &job);
	assert_int_equal(id, 1);
	commit(f);
	fixture_reopen(f);
	assert_ok(mq_store_job_get(f->store, id, &row, err));
	assert_string_equal(row.name, "a job");
	assert_string_equal(row.spec, job.spec);
	assert_string_equal(row.request_id, "r1");
	assert_null(row.reason);
	assert_null(row.error);
	assert_int_equal(row.priority, -7);
	assert_int_equal(row.owner, 1000);
	assert_int_equal(row.state, MQ_JOB_QUEUED);
	assert_int_equal(row.width, 100);
	assert_int_equal(row.height, 10);
	assert_int_equal(row.iterations, 500);
	assert_int_equal(row.strips_total, 10);
	assert_int_equal(row.strips_done, 0);
	assert_int_equal(row.tiles_total, 3);
	assert_int_equal(row.tiles_done, 0);
	assert_int_equal(row.tiles_split, 0);
	assert_int_equal(row.created_ms, 1700000000000);
	assert_int_equal(row.started_ms, 0);
	assert_int_equal(row.finished_ms, 0);
	assert_int_equal(row.output_bytes, 0);
	assert_string_equal(row.output_sha256, "");
	mq_job_row_clear(&row);
	assert_null(row.name);
}

static void tiles_are_laid_out(void **state)
{
	struct fixture *f = *state;
	struct mq_tile_row tile[8];
	struct mq_new_job job = job_of(10, 4);

	add(f, &job);
	assert_int_equal(next(f, false, tile, 8), 3);
	for (uint32_t i = 0; i < 3; i++) {
		struct mq_span want = mq_layout_tile(&job.layout, i);

		assert_int_equal(tile[i].span.first, want.first);
		assert_int_equal(tile[i].span.count, want.count);
		assert_false(tile[i].suspect);
		assert_int_equal(tile[i].attempts, 0);
	}
	assert_int_equal(tile[2].span.first, 8);
	assert_int_equal(tile[2].span.count, 2);
}

static void unknown_job(void **state)
{
	struct fixture *f = *state;
	struct mq_job_row row;
	struct mq_error err;

	assert_int_equal(mq_store_job_get(f->store, 17, &row, &err), MQ_ENOENT);
	assert_string_equal(err.text, "no job 17");
	assert_int_equal(mq_store_job_move(f->store, 17, MQ_JOB_PAUSED, NULL, NULL, 1, &err), MQ_ENOENT);
	assert_int_equal(mq_store_attempt_begin(f->store, 5, "cpu", true, 1, &(int64_t){0}, &err),
	                 MQ_ENOENT);
	assert_int_equal(mq_store_tile_retry(f->store, 5, "oom", 1, &err), MQ_ESTALE);
}

static void request_id_is_idempotent(void **state)
{
	struct fixture *f = *state;
	struct mq_new_job job = job_of(4, 1), other;
	bool existing = false;
	int64_t id, again = 0;

	job.request_id = "once";
	id = add(f, &job);
	commit(f);
	fixture_reopen(f);
	assert_ok(mq_store_job_add(f->store, &job, &again, &existing, err));
	assert_true(existing);
	assert_int_equal(again, id);
	assert_int_equal(ask(f, "SELECT count(*) FROM jobs"), 1);
	assert_int_equal(ask(f, "SELECT count(*) FROM tiles"), 4);

	again = 99;
	other = job;
	other.spec = "{\"width\":101}";
	assert_int_equal(mq_store_job_add(f->store, &other, &again, &existing, NULL), MQ_ECONFLICT);
	other = job;
	other.name = "another";
	assert_int_equal(mq_store_job_add(f->store, &other, &again, &existing, NULL), MQ_ECONFLICT);
	other = job;
	other.priority = 1;
	assert_int_equal(mq_store_job_add(f->store, &other, &again, &existing, NULL), MQ_ECONFLICT);
	assert_int_equal(again, 99);
}

static void ended_jobs_free_their_request(void **state)
{
	static const enum mq_job_state ends[] = {MQ_JOB_CANCELLED, MQ_JOB_FAILED};
	struct fixture *f = *state;
	struct mq_new_job job = job_of(4, 1);

	job.request_id = "again";
	for (size_t i = 0; i < 2; i++) {
		int64_t id = add(f, &job);

		assert_int_equal(id, (int64_t)i + 1);
		assert_ok(mq_store_job_move(f->store, id, ends[i], NULL, "why", 5, err));
	}
	job.spec = "{\"width\":2}";
	assert_int_equal(add(f, &job), 3);
	/* A done job keeps it. */
	render_all(f);
	assert_ok(mq_store_job_done(f->store, 3, &(struct mq_output){.picture_bytes = 9}, 6, err));
	job.spec = "{\"width\":3}";
	assert_int_equal(mq_store_job_add(f->store, &job, &(int64_t){0}, &(bool){0}, NULL), MQ_ECONFLICT);
}

static void ids_are_never_reused(void **state)
{
	struct fixture *f = *state;

	add_job(f, 1, 1);
	add_job(f, 1, 1);
	commit(f);
	assert_int_equal(sqlite3_exec(f->store->db, "DELETE FROM tiles; DELETE FROM jobs", 0, 0, 0),
	                 SQLITE_OK);
	fixture_reopen(f);
	assert_int_equal(add_job(f, 1, 1), 3);
}

struct walk {
	struct fixture *f;
	int64_t ids[8];
	size_t count, stop_at;
};

static enum mq_status walk_one(void *arg, const struct mq_job_row *row)
{
	struct walk *walk = arg;

	if (walk->count == walk->stop_at)
		return MQ_ESTOPPED;
	walk->ids[walk->count++] = row->id;
	/* The callback may use the store, also for changes and reads of the same kind. */
	assert_ok(mq_store_job_move(walk->f->store, row->id, MQ_JOB_PAUSED, "walked", NULL, 1, err));
	assert_int_equal(get(walk->f, row->id).state, MQ_JOB_PAUSED);
	commit(walk->f);
	return MQ_OK;
}

static void walking_jobs(void **state)
{
	struct fixture *f = *state;
	struct walk walk = {.f = f, .stop_at = 8};
	int64_t ids[2] = {0};
	size_t count = 9;

	for (int i = 0; i < 5; i++)
		add_job(f, 1, 1);
	assert_ok(mq_store_job_each(f->store, 1, 3, walk_one, &walk, err));
	assert_int_equal(walk.count, 3);
	assert_int_equal(walk.ids[0], 2);
	assert_int_equal(walk.ids[2], 4);
	walk.count = walk.stop_at = 0;
	assert_int_equal(mq_store_job_each(f->store, 0, 9, walk_one, &walk, NULL), MQ_ESTOPPED);
	assert_ok(mq_store_jobs_in(f->store, MQ_JOB_PAUSED, ids, 2, &count, err));
	assert_int_equal(count, 2);
	assert_int_equal(ids[0], 2);
	assert_int_equal(ids[1], 3);
	assert_ok(mq_store_jobs_in(f->store, MQ_JOB_DONE, ids, 2, &count, err));
	assert_int_equal(count, 0);
}

static void reasons_and_times(void **state)
{
	struct fixture *f = *state;
	int64_t id = add_job(f, 2, 1);
	struct mq_job_row row;

	assert_ok(mq_store_job_move(f->store, id, MQ_JOB_PAUSED, "disk full", NULL, 10, err));
	assert_ok(mq_store_job_move(f->store, id, MQ_JOB_PAUSED, "other", NULL, 11, err));
	assert_ok(mq_store_job_get(f->store, id, &row, err));
	assert_string_equal(row.reason, "disk full");
	mq_job_row_clear(&row);
	assert_ok(mq_store_job_move(f->store, id, MQ_JOB_RUNNING, NULL, NULL, 12, err));
	assert_ok(mq_store_job_move(f->store, id, MQ_JOB_PAUSED, "p", NULL, 13, err));
	assert_ok(mq_store_job_move(f->store, id, MQ_JOB_RUNNING, NULL, NULL, 14, err));
	assert_ok(mq_store_job_get(f->store, id, &row, err));
	assert_null(row.reason);
	assert_int_equal(row.started_ms, 12);
	assert_int_equal(row.finished_ms, 0);
	mq_job_row_clear(&row);
	assert_ok(mq_store_job_move(f->store, id, MQ_JOB_FAILED, NULL, "broken", 15, err));
	assert_ok(mq_store_job_get(f->store, id, &row, err));
	assert_string_equal(row.error, "broken");
	assert_int_equal(row.finished_ms, 15);
	mq_job_row_clear(&row);
}

static void illegal_moves(void **state)
{
	struct fixture *f = *state;
	int64_t id = add_job(f, 2, 1);
	struct mq_error why;

	assert_int_equal(mq_store_job_move(f->store, id, MQ_JOB_ASSEMBLING, NULL, NULL, 1, &why),
	                 MQ_ESTATE);
	assert_ok(mq_store_job_move(f->store, id, MQ_JOB_RUNNING, NULL, NULL, 1, err));
	/* Legal in itself, but there are tiles left. */
	assert_int_equal(mq_store_job_move(f->store, id, MQ_JOB_ASSEMBLING, NULL, NULL, 1, &why),
	                 MQ_ESTATE);
	assert_int_equal(mq_store_job_done(f->store, id, &(struct mq_output){.picture_bytes = 1}, 1, &why),
	                 MQ_ESTATE);
	assert_ok(mq_store_job_move(f->store, id, MQ_JOB_CANCELLED, NULL, NULL, 1, err));
	assert_int_equal(mq_store_job_move(f->store, id, MQ_JOB_RUNNING, NULL, NULL, 1, &why), MQ_ESTATE);
	assert_non_null(strstr(why.text, "cancelled"));
	assert_non_null(strstr(why.text, "running"));
	assert_int_equal(get(f, id).state, MQ_JOB_CANCELLED);
}

/* ---- the turn ---- */

static void rollback_leaves_nothing(void **state)
{
	struct fixture *f = *state;
	bool changed = true;
	int64_t id;

	assert_ok(mq_store_commit(f->store, &changed, err));
	assert_false(changed);
	id = add_job(f, 8, 2);
	commit(f);
	begin(f, 1, true);
	add_job(f, 8, 2);
	assert_ok(mq_store_tile_split(f->store, 2, "oom", err));
	mq_store_rollback(f->store);
	assert_ok(mq_store_commit(f->store, &changed, err));
	assert_false(changed);
	assert_int_equal(ask(f, "SELECT count(*) FROM jobs"), 1);
	assert_int_equal(ask(f, "SELECT count(*) FROM tiles"), 4);
	assert_int_equal(ask(f, "SELECT count(*) FROM attempts"), 0);
	assert_int_equal(get(f, id).tiles_split, 0);
	assert_int_equal(get(f, id).state, MQ_JOB_QUEUED);
	assert_int_equal(add_job(f, 1, 1), 2);
	assert_ok(mq_store_commit(f->store, &changed, err));
	assert_true(changed);
}

static void failed_change_leaves_the_turn(void **state)
{
	struct fixture *f = *state;
	struct mq_new_job bad = job_of(4, 1);
	bool changed = false;
	int64_t id = add_job(f, 4, 1), none = -1;

	/* The layout contradicts itself: found only after the job's row and tiles have been written. */
	bad.layout.tiles = 3;
	assert_int_equal(mq_store_job_add(f->store, &bad, &none, &changed, NULL), MQ_EINTERNAL);
	bad.layout.tile_strips = 0;
	assert_int_equal(mq_store_job_add(f->store, &bad, &none, &changed, NULL), MQ_EINTERNAL);
	assert_int_equal(none, -1);
	commit(f);
	fixture_reopen(f);
	assert_int_equal(ask(f, "SELECT count(*) FROM jobs"), 1);
	assert_int_equal(ask(f, "SELECT count(*) FROM tiles"), 4);
	assert_int_equal(get(f, id).state, MQ_JOB_QUEUED);
}

/* ---- tiles ---- */

static void order_of_tiles(void **state)
{
	struct fixture *f = *state;
	struct mq_new_job job = job_of(2, 1);
	struct mq_tile_row tile[16];
	int64_t low, high, high2, paused;

	low = add(f, &job);
	job.priority = 5;
	high = add(f, &job);
	high2 = add(f, &job);
	job.priority = 9;
	paused = add(f, &job);
	assert_ok(mq_store_job_move(f->store, paused, MQ_JOB_PAUSED, "p", NULL, 1, err));
	assert_int_equal(next(f, false, tile, 16), 6);
	assert_int_equal(tile[0].job, high);
	assert_int_equal(tile[0].span.first, 0);
	assert_int_equal(tile[1].job, high);
	assert_int_equal(tile[1].span.first, 1);
	assert_int_equal(tile[2].job, high2);
	assert_int_equal(tile[4].job, low);
	assert_int_equal(next(f, false, tile, 3), 3);
	assert_int_equal(next(f, true, tile, 3), 0);
	assert_ok(mq_store_job_move(f->store, paused, MQ_JOB_WAITING, "after 1", NULL, 1, err));
	assert_int_equal(next(f, false, tile, 16), 6);
	assert_ok(mq_store_job_move(f->store, paused, MQ_JOB_QUEUED, NULL, NULL, 1, err));
	assert_int_equal(next(f, false, tile, 16), 8);
	assert_int_equal(tile[0].job, paused);
}

static void life_of_a_job(void **state)
{
	struct fixture *f = *state;
	struct mq_output out = {.picture_bytes = 1234, .preview_bytes = 5, .counts_bytes = 6};
	int64_t id = add_job(f, 5, 2), attempt;
	struct mq_tile_row tile[4];

	memset(out.picture_sha256, 'a', 64);
	assert_int_equal(next(f, false, tile, 4), 3);
	attempt = begin(f, tile[2].id, false);
	assert_int_equal(get(f, id).state, MQ_JOB_RUNNING);
	assert_int_equal(get(f, id).started_ms, 1700000001000);
	assert_int_equal(next(f, false, tile, 4), 2);
	assert_false(done(f, attempt));
	assert_int_equal(get(f, id).strips_done, 1);
	assert_int_equal(get(f, id).tiles_done, 1);
	assert_false(done(f, begin(f, tile[0].id, false)));
	assert_true(done(f, begin(f, tile[1].id, false)));
	assert_int_equal(get(f, id).state, MQ_JOB_ASSEMBLING);
	assert_int_equal(get(f, id).strips_done, 5);
	assert_true(get(f, id).compute_seconds == 0.75);
	assert_ok(mq_store_job_done(f->store, id, &out, 20, err));
	commit(f);
	fixture_reopen(f);
	assert_int_equal(get(f, id).state, MQ_JOB_DONE);
	assert_int_equal(get(f, id).finished_ms, 20);
	assert_int_equal(get(f, id).output_bytes, 1234);
	assert_string_equal(get(f, id).output_sha256, out.picture_sha256);
	assert_int_equal(get(f, id).preview_bytes, 5);
	assert_int_equal(get(f, id).counts_bytes, 6);
	assert_int_equal(mq_store_tile_redo(f->store, 1, "missing", 30, NULL), MQ_ESTATE);
}

static void attempts_are_fenced(void **state)
{
	struct fixture *f = *state;
	int64_t id = add_job(f, 2, 1), old, new;
	struct mq_tile_file file = {.bytes = 1};
	struct mq_tile_row tile;
	bool complete = true;

	assert_int_equal(next(f, false, &tile, 1), 1);
	old = begin(f, tile.id, false);
	assert_int_equal(mq_store_attempt_begin(f->store, tile.id, "cpu", false, 1, &new, NULL), MQ_ESTATE);
	assert_ok(mq_store_tile_retry(f->store, old, "oom", 1, err));
	new = begin(f, tile.id, false);
	assert_true(new > old);
	assert_int_equal(mq_store_tile_done(f->store, old, &file, 1, 1, &complete, NULL), MQ_ESTALE);
	assert_int_equal(mq_store_tile_retry(f->store, old, "oom", 1, NULL), MQ_ESTALE);
	assert_true(complete);
	assert_int_equal(get(f, id).tiles_done, 0);
	done(f, new);
	assert_int_equal(mq_store_tile_done(f->store, new, &file, 1, 1, &complete, NULL), MQ_ESTALE);
	assert_int_equal(get(f, id).tiles_done, 1);
	assert_int_equal(next(f, false, &tile, 1), 1);
	old = begin(f, tile.id, false);
	assert_ok(mq_store_job_move(f->store, id, MQ_JOB_CANCELLED, NULL, NULL, 9, err));
	assert_int_equal(mq_store_tile_done(f->store, old, &file, 1, 1, &complete, NULL), MQ_ESTALE);
	assert_int_equal(get(f, id).state, MQ_JOB_CANCELLED);
	assert_int_equal(ask(f, "SELECT count(*) FROM attempts WHERE outcome = 'oom'"), 1);
	assert_int_equal(ask(f, "SELECT count(*) FROM attempts WHERE outcome = 'done'"), 1);
	assert_int_equal(ask(f, "SELECT count(*) FROM attempts WHERE outcome = 'dropped'"), 1);
	assert_int_equal(ask(f, "SELECT count(*) FROM tiles WHERE state = 'failed'"), 1);
	assert_int_equal(ask(f, "SELECT attempts FROM tiles WHERE strip_first = 0"), 2);
}

static void splitting(void **state)
{
	struct fixture *f = *state;
	int64_t id = add_job(f, 7, 7), attempt;
	struct mq_tile_row tile[4];

	assert_int_equal(next(f, false, tile, 4), 1);
	attempt = begin(f, tile[0].id, false);
	assert_int_equal(mq_store_tile_split(f->store, tile[0].id, "oom", NULL), MQ_ESTATE);
	assert_ok(mq_store_tile_retry(f->store, attempt, "oom", 1, err));
	assert_ok(mq_store_tile_split(f->store, tile[0].id, "oom", err));
	assert_int_equal(get(f, id).tiles_total, 2);
	assert_int_equal(get(f, id).tiles_split, 1);
	assert_int_equal(next(f, false, tile, 4), 2);
	assert_int_equal(tile[0].span.first, 0);
	assert_int_equal(tile[0].span.count, 4);
	assert_int_equal(tile[1].span.first, 4);
	assert_int_equal(tile[1].span.count, 3);
	assert_ok(mq_store_tile_split(f->store, tile[1].id, "time", err));
	assert_int_equal(next(f, false, tile, 4), 3);
	assert_int_equal(tile[2].span.first, 6);
	assert_int_equal(tile[2].span.count, 1);
	assert_int_equal(mq_store_tile_split(f->store, tile[2].id, "time", NULL), MQ_EINVAL);
	render_all(f);
	assert_int_equal(get(f, id).state, MQ_JOB_ASSEMBLING);
	assert_int_equal(get(f, id).tiles_done, 3);
	assert_int_equal(get(f, id).tiles_total, 3);
	assert_int_equal(get(f, id).tiles_split, 2);
}

struct done_list {
	uint32_t next_strip;
	size_t count;
	uint8_t sum;
};

static enum mq_status list_done(void *arg, const struct mq_done_tile *t)
{
	struct done_list *list = arg;

	assert_int_equal(t->span.first, list->next_strip);
	assert_int_equal(t->file.bytes, 77);
	list->next_strip += t->span.count;
	list->sum = t->file.sha256[2];
	list->count++;
	return MQ_OK;
}

static void done_again(void **state)
{
	struct fixture *f = *state;
	int64_t id = add_job(f, 6, 2);
	struct done_list list = {0};
	struct mq_tile_row tile;

	render_all(f);
	assert_ok(mq_store_tiles_done(f->store, id, list_done, &list, err));
	assert_int_equal(list.count, 3);
	assert_int_equal(list.next_strip, 6);
	assert_int_equal(list.sum, 3);
	assert_ok(mq_store_tile_redo(f->store, 2, "damaged", 1, err));
	assert_int_equal(get(f, id).state, MQ_JOB_RUNNING);
	assert_int_equal(get(f, id).tiles_done, 2);
	assert_int_equal(get(f, id).strips_done, 4);
	assert_int_equal(mq_store_tile_redo(f->store, 2, "damaged", 1, NULL), MQ_ESTATE);
	assert_int_equal(next(f, false, &tile, 1), 1);
	assert_int_equal(tile.id, 2);
	assert_true(done(f, begin(f, 2, false)));
	/* Each tile is done by exactly one attempt. */
	assert_int_equal(ask(f, "SELECT count(*) FROM attempts WHERE outcome = 'done'"), 3);
	assert_int_equal(ask(f, "SELECT count(*) FROM attempts WHERE outcome = 'damaged'"), 1);
}

static void pausing(void **state)
{
	struct fixture *f = *state;
	int64_t id = add_job(f, 2, 1), attempt;
	struct mq_tile_row tile;

	next(f, false, &tile, 1);
	done(f, begin(f, tile.id, false));
	next(f, false, &tile, 1);
	attempt = begin(f, tile.id, false);
	assert_ok(mq_store_job_move(f->store, id, MQ_JOB_PAUSED, "user", NULL, 1, err));
	/* The last tile ends while the job is paused: not complete until it goes on. */
	assert_false(done(f, attempt));
	assert_int_equal(get(f, id).state, MQ_JOB_PAUSED);
	assert_ok(mq_store_job_move(f->store, id, MQ_JOB_RUNNING, NULL, NULL, 2, err));
	assert_int_equal(get(f, id).state, MQ_JOB_ASSEMBLING);
	assert_ok(mq_store_job_move(f->store, id, MQ_JOB_PAUSED, "disk", NULL, 3, err));
	assert_ok(mq_store_job_move(f->store, id, MQ_JOB_ASSEMBLING, NULL, NULL, 4, err));
	assert_ok(mq_store_job_move(f->store, id, MQ_JOB_PAUSED, "disk", NULL, 5, err));
	assert_ok(mq_store_tile_redo(f->store, tile.id, "missing", 6, err));
	assert_int_equal(get(f, id).state, MQ_JOB_PAUSED);
	assert_int_equal(mq_store_attempt_begin(f->store, tile.id, "cpu", false, 1, &attempt, NULL),
	                 MQ_ESTATE);
	assert_ok(mq_store_job_move(f->store, id, MQ_JOB_RUNNING, NULL, NULL, 7, err));
	assert_true(done(f, begin(f, tile.id, false)));
}

static void failing_tile(void **state)
{
	struct fixture *f = *state;
	int64_t id = add_job(f, 4, 1), other = add_job(f, 2, 1);
	struct mq_tile_row tile[8];
	struct mq_job_row row;

	next(f, false, tile, 2);
	begin(f, tile[0].id, false);
	begin(f, tile[1].id, false);
	assert_ok(mq_store_tile_fail(f->store, tile[0].id, "out of memory at one strip", 44, err));
	assert_ok(mq_store_job_get(f->store, id, &row, err));
	assert_int_equal(row.state, MQ_JOB_FAILED);
	assert_string_equal(row.error, "out of memory at one strip");
	assert_int_equal(row.finished_ms, 44);
	mq_job_row_clear(&row);
	assert_int_equal(ask(f, "SELECT count(*) FROM tiles WHERE job = 1 AND state = 'failed'"), 4);
	assert_int_equal(ask(f, "SELECT count(*) FROM attempts WHERE outcome = 'failed'"), 1);
	assert_int_equal(ask(f, "SELECT count(*) FROM attempts WHERE outcome = 'dropped'"), 1);
	assert_int_equal(next(f, false, tile, 8), 2);
	assert_int_equal(tile[0].job, other);
	assert_int_equal(mq_store_tile_fail(f->store, 1, "x", 1, NULL), MQ_ESTATE);
}

/* ---- how much it costs ---- */

/* One tile out of a long queue must not be found by looking at all. */
static void plans(void **state)
{
	static const enum mq_sql next_sql[] = {MQ_SQL_TILES_READY, MQ_SQL_TILES_SUSPECT};
	struct fixture *f = *state;
	char text[4096];

	for (size_t i = 0; i < 2; i++) {
		sqlite3_stmt *stmt = NULL;
		bool index = false;

		snprintf(text, sizeof text, "EXPLAIN QUERY PLAN %s", mq_sql_table[next_sql[i]].text);
		assert_int_equal(sqlite3_prepare_v2(f->store->db, text, -1, &stmt, NULL), SQLITE_OK);
		while (sqlite3_step(stmt) == SQLITE_ROW) {
			const char *step = (const char *)sqlite3_column_text(stmt, 3);

			assert_null(strstr(step, "TEMP B-TREE"));
			if (strncmp(step, "SCAN", 4) == 0)
				assert_non_null(strstr(step, "USING INDEX"));
			index |= strstr(step, "USING INDEX tiles_ready (job=?)") ||
			         strcmp(step, "SCAN t USING INDEX tiles_suspect") == 0;
		}
		assert_true(index);
		sqlite3_finalize(stmt);
	}
}

/* Steps of the virtual machine, so that a busy machine cannot fail the test. */
static void next_does_not_grow_with_the_queue(void **state)
{
	struct fixture *f = *state;
	sqlite3_stmt *stmt = f->store->stmt[MQ_SQL_TILES_READY];
	struct mq_tile_row tile[4];
	int small, large;

	add_job(f, 4, 1);
	next(f, false, tile, 4);
	small = sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
	for (int i = 0; i < 20; i++)
		add_job(f, 1000, 1);
	next(f, false, tile, 4);
	large = sqlite3_stmt_status(stmt, SQLITE_STMTSTATUS_VM_STEP, 1);
	assert_true(small > 0 && large < 2 * small);
}

static void the_largest_job(void **state)
{
	struct fixture *f = *state;
	struct mq_new_job job = job_of(MQ_TILES_MAX, 1);
	int64_t id = add(f, &job);

	commit(f);
	assert_int_equal(get(f, id).tiles_total, MQ_TILES_MAX);
	assert_int_equal(ask(f, "SELECT count(*) FROM tiles"), MQ_TILES_MAX);
	assert_int_equal(ask(f, "SELECT sum(strip_count) FROM tiles"), MQ_TILES_MAX);
	assert_ok(mq_store_job_move(f->store, id, MQ_JOB_CANCELLED, NULL, NULL, 1, err));
	assert_int_equal(ask(f, "SELECT count(*) FROM tiles WHERE state = 'failed'"), MQ_TILES_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(job_round_trip),
		TEST(tiles_are_laid_out),
		TEST(unknown_job),
		TEST(request_id_is_idempotent),
		TEST(ended_jobs_free_their_request),
		TEST(ids_are_never_reused),
		TEST(walking_jobs),
		TEST(reasons_and_times),
		TEST(illegal_moves),
		TEST(rollback_leaves_nothing),
		TEST(failed_change_leaves_the_turn),
		TEST(order_of_tiles),
		TEST(life_of_a_job),
		TEST(attempts_are_fenced),
		TEST(splitting),
		TEST(done_again),
		TEST(pausing),
		TEST(failing_tile),
		TEST(plans),
		TEST(next_does_not_grow_with_the_queue),
		TEST(the_largest_job),
	};

	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
