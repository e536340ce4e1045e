/* test_store_recover: what an unclean end leaves in flight: who is a suspect, who is blamed, who is forgiven. */
#include "tests/unit/store_fixture.h"

static struct mq_recovery recover(struct fixture *f)
{
	struct mq_recovery sum = {0};

	commit(f);
	fixture_reopen(f);
	assert_ok(mq_store_recover(f->store, 50, &sum, err));
	commit(f);
	return sum;
}

static void nothing_to_recover(void **state)
{
	struct fixture *f = *state;
	struct mq_recovery sum;

	add_job(f, 1, 1);
	render_all(f);
	add_job(f, 3, 1);
	sum = recover(f);
	assert_int_equal(sum.suspects, 0);
	assert_int_equal(sum.assembling, 1);
	assert_int_equal(ask(f, "SELECT count(*) FROM tiles WHERE suspect = 1"), 0);
}

static void not_alone_is_not_blamed(void **state)
{
	struct fixture *f = *state;
	struct mq_tile_row tile[8];
	struct mq_recovery sum;
	int64_t old;

	add_job(f, 16, 4);
	for (int round = 0; round < 2 * MQ_DEATHS_MAX; round++) {
		assert_int_equal(next(f, false, tile, 8), 4);
		old = begin(f, tile[0].id, true);
		begin(f, tile[1].id, false);
		sum = recover(f);
		assert_int_equal(sum.suspects, 2);
		assert_int_equal(sum.halved, 0);
		assert_int_equal(sum.jobs_failed, 0);
	}
	assert_int_equal(mq_store_tile_retry(f->store, old, "x", 1, NULL), MQ_ESTALE);
	assert_int_equal(ask(f, "SELECT count(*) FROM attempts WHERE outcome = 'lost'"),
	                 4 * MQ_DEATHS_MAX);
	assert_int_equal(next(f, true, tile, 8), 2);
	assert_true(tile[0].suspect);
	assert_int_equal(tile[0].deaths, 0);
	assert_int_equal(tile[0].attempts, 2 * MQ_DEATHS_MAX);
	/* One in flight that had begun beside others is not blamed either. */
	begin(f, tile[1].id, false);
	sum = recover(f);
	assert_int_equal(sum.suspects, 1);
	assert_int_equal(sum.halved, 0);
	done(f, begin(f, tile[1].id, true));
	assert_int_equal(next(f, true, tile, 8), 1);
}

static void alone_is_halved_then_fails(void **state)
{
	static const uint32_t counts[] = {4, 2, 1, 1, 1};
	struct fixture *f = *state;
	struct mq_tile_row tile[8];
	struct mq_recovery sum;
	struct mq_job_row row;
	int64_t poison, healthy;

	healthy = add_job(f, 2, 1);
	poison = add_job(f, 4, 4);
	next(f, false, tile, 8);
	/* Both in flight at first: two suspects, and the healthy one runs alone and is done. */
	begin(f, tile[0].id, false);
	begin(f, tile[2].id, false);
	sum = recover(f);
	assert_int_equal(sum.suspects, 2);
	assert_int_equal(next(f, true, tile, 8), 2);
	assert_int_equal(tile[0].job, healthy);
	done(f, begin(f, tile[0].id, true));
	for (size_t i = 0; i < 5; i++) {
		assert_true(next(f, false, tile, 8) >= 1);
		assert_true(tile[0].suspect);
		assert_int_equal(tile[0].job, poison);
		assert_int_equal(tile[0].span.first, 0);
		assert_int_equal(tile[0].span.count, counts[i]);
		assert_int_equal(tile[0].deaths, i);
		begin(f, tile[0].id, true);
		sum = recover(f);
		assert_int_equal(sum.suspects, 1);
		assert_int_equal(sum.halved, counts[i] > 1);
		assert_int_equal(sum.jobs_failed, i == 4);
	}
	assert_ok(mq_store_job_get(f->store, poison, &row, err));
	assert_int_equal(row.state, MQ_JOB_FAILED);
	assert_int_equal(row.tiles_split, 2);
	assert_int_equal(row.tiles_total, 3);
	assert_string_equal(row.error, "rendering strip 0 ended the worker 5 times in a row");
	mq_job_row_clear(&row);
	render_all(f);
	assert_int_equal(get(f, healthy).state, MQ_JOB_ASSEMBLING);
}

static void a_finished_tile_forgives(void **state)
{
	struct fixture *f = *state;
	struct mq_tile_row tile[8];

	add_job(f, 1, 1);
	add_job(f, 1, 1);
	for (int i = 0; i < MQ_DEATHS_MAX - 1; i++) {
		next(f, false, tile, 1);
		assert_int_equal(tile[0].job, 1);
		assert_int_equal(tile[0].deaths, i);
		begin(f, tile[0].id, true);
		recover(f);
	}
	/* Not the next by the rules, but finished all the same. */
	done(f, begin(f, 2, false));
	next(f, true, tile, 1);
	assert_int_equal(tile[0].deaths, 0);
	for (int i = 0; i < MQ_DEATHS_MAX; i++) {
		assert_int_equal(get(f, 1).state, MQ_JOB_RUNNING);
		begin(f, 1, true);
		recover(f);
	}
	assert_int_equal(get(f, 1).state, MQ_JOB_FAILED);
	assert_int_equal(get(f, 2).state, MQ_JOB_ASSEMBLING);
}

static void the_last_killer_goes_first(void **state)
{
	struct fixture *f = *state;
	struct mq_tile_row tile[8];

	add_job(f, 2, 1);
	next(f, false, tile, 2);
	begin(f, tile[0].id, false);
	begin(f, tile[1].id, false);
	recover(f);
	begin(f, tile[1].id, true);
	recover(f);
	assert_int_equal(next(f, false, tile, 8), 2);
	assert_int_equal(tile[0].span.first, 1);
	assert_int_equal(tile[0].deaths, 1);
	assert_int_equal(tile[1].span.first, 0);
	/* A suspect whose job is paused holds nobody up. */
	assert_ok(mq_store_job_move(f->store, 1, MQ_JOB_PAUSED, "p", NULL, 1, err));
	assert_int_equal(next(f, true, tile, 8), 0);
}

static void split_suspects_stay_suspects(void **state)
{
	struct fixture *f = *state;
	struct mq_tile_row tile[8];

	add_job(f, 4, 4);
	begin(f, 1, true);
	recover(f);
	assert_int_equal(next(f, true, tile, 8), 2);
	assert_ok(mq_store_tile_split(f->store, tile[1].id, "oom", err));
	assert_int_equal(next(f, true, tile, 8), 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(tile[i].deaths, 1);
	/* The halves of a suspect end with their job. */
	assert_ok(mq_store_job_move(f->store, 1, MQ_JOB_CANCELLED, NULL, NULL, 1, err));
	assert_int_equal(ask(f, "SELECT count(*) FROM tiles WHERE state = 'pending'"), 0);
}

static void assemble(struct fixture *f, int64_t job, bool alone)
{
	assert_ok(mq_store_assembly_begin(f->store, job, alone, err));
}

static int64_t assembly_suspect(struct fixture *f)
{
	int64_t job = 0;
	bool found;

	assert_ok(mq_store_assembly_suspect(f->store, &job, &found, err));
	return found ? job : 0;
}

static void an_assembly_that_kills_fails_its_job(void **state)
{
	struct fixture *f = *state;
	struct mq_job_row row;

	for (int i = 0; i < 3; i++)
		add_job(f, 1, 1);
	render_all(f);
	assemble(f, 2, false);
	recover(f);
	for (int i = 0; i < MQ_DEATHS_MAX; i++) {
		assert_int_equal(assembly_suspect(f), 2);
		assert_int_equal(get(f, 2).state, MQ_JOB_ASSEMBLING);
		assemble(f, 2, true);
		assert_int_equal(recover(f).jobs_failed, i == MQ_DEATHS_MAX - 1);
	}
	assert_ok(mq_store_job_get(f->store, 2, &row, err));
	assert_int_equal(row.state, MQ_JOB_FAILED);
	assert_string_equal(row.error, "assembling the picture ended the worker 5 times in a row");
	mq_job_row_clear(&row);
	assert_int_equal(assembly_suspect(f), 0);
	assert_int_equal(get(f, 1).state, MQ_JOB_ASSEMBLING);
	/* Tried again, it starts with a clean slate and all its tiles. */
	assert_ok(mq_store_job_retry(f->store, 2, err));
	assert_int_equal(get(f, 2).state, MQ_JOB_ASSEMBLING);
	assemble(f, 2, true);
	assert_int_equal(recover(f).jobs_failed, 0);
}

static void assemblies_are_not_blamed_for_others(void **state)
{
	struct fixture *f = *state;
	struct mq_tile_row tile[4];

	for (int i = 0; i < 2; i++)
		add_job(f, 1, 1);
	render_all(f);
	add_job(f, 1, 1);
	for (int i = 0; i < 2 * MQ_DEATHS_MAX; i++) {
		/* Beside another, beside a tile, and alone now but not from the beginning. */
		assemble(f, 1, true);
		if (i % 3 == 0)
			assemble(f, 2, false);
		else if (i % 3 == 1)
			begin(f, next(f, false, tile, 1) ? tile[0].id : 0, true);
		else
			assemble(f, 1, false);
		assert_int_equal(recover(f).jobs_failed, 0);
	}
	assert_int_equal(ask(f, "SELECT sum(deaths) FROM assemblies"), 0);
	assert_int_equal(ask(f, "SELECT sum(deaths) FROM tiles"), 0);
	/* A finished one, one given up by a stop, and one whose job is gone leave no suspect. */
	assemble(f, 1, true);
	recover(f);
	assemble(f, 1, true);
	assert_ok(mq_store_assembly_end(f->store, 1, err));
	assert_int_equal(assembly_suspect(f), 2);
	assemble(f, 2, true);
	assert_ok(mq_store_assemblies_end(f->store, err));
	assert_int_equal(assembly_suspect(f), 0);
	assemble(f, 1, false);
	assert_ok(mq_store_job_move(f->store, 1, MQ_JOB_CANCELLED, NULL, NULL, 1, err));
	recover(f);
	assert_int_equal(ask(f, "SELECT count(*) FROM assemblies"), 0);
}

/* The job before them was set aside as damaged: nobody told them. */
static void who_waits_for_a_job_set_aside_ends(void **state)
{
	struct fixture *f = *state;
	struct mq_new_job job = job_of(2, 1);

	add(f, &job);
	for (job.after = 1; job.after < 3; job.after++)
		add(f, &job);
	job.after = 2;
	add(f, &job);
	add_job(f, 2, 1);
	assert_ok(mq_store_job_pause(f->store, 4, "by hand", 1, err));
	commit(f);
	assert_int_equal(sqlite3_exec(f->store->db, "UPDATE jobs SET state = 'failed' WHERE id = 1", NULL, NULL,
	                              NULL), SQLITE_OK);
	recover(f);
	for (int64_t id = 2; id <= 4; id++)
		assert_int_equal(get(f, id).state, MQ_JOB_FAILED);
	assert_int_equal(get(f, 5).state, MQ_JOB_QUEUED);
	assert_int_equal(ask(f, "SELECT count(*) FROM jobs WHERE error LIKE 'job 1, which it waited for, failed'"), 1);
}

static void ids_are_skipped(void **state)
{
	struct fixture *f = *state;
	int64_t last = 5;

	assert_ok(mq_store_ids_last(f->store, &last, err));
	assert_int_equal(last, 0);
	assert_ok(mq_store_ids_skip(f->store, 41, err));
	commit(f);
	fixture_reopen(f);
	assert_int_equal(add_job(f, 1, 1), 42);
	assert_ok(mq_store_ids_skip(f->store, 40, err));
	assert_ok(mq_store_ids_skip(f->store, 50, err));
	assert_ok(mq_store_ids_last(f->store, &last, err));
	assert_int_equal(last, 50);
	assert_int_equal(add_job(f, 1, 1), 51);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_open, fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_to_recover),
		TEST(not_alone_is_not_blamed),
		TEST(alone_is_halved_then_fails),
		TEST(a_finished_tile_forgives),
		TEST(the_last_killer_goes_first),
		TEST(split_suspects_stay_suspects),
		TEST(an_assembly_that_kills_fails_its_job),
		TEST(assemblies_are_not_blamed_for_others),
		TEST(who_waits_for_a_job_set_aside_ends),
		TEST(ids_are_skipped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
