/* Names both ways, and the shape of the graph: terminal states are terminal, and everything
 * else can reach one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "src/state.h"

static void names_come_back(void **state)
{
	static const char *const names[] = { "queued",     "waiting", "running", "paused",
		                             "assembling", "done",    "failed",  "cancelled" };
	enum mq_job_state parsed;

	(void)state;
	assert_int_equal(MQ_JOB_STATE_COUNT, sizeof(names) / sizeof(names[0]));
	for (int i = 0; i < MQ_JOB_STATE_COUNT; i++) {
		assert_string_equal(mq_job_state_name((enum mq_job_state)i), names[i]);
		assert_true(mq_job_state_parse(names[i], &parsed));
		assert_int_equal(parsed, i);
	}
	assert_false(mq_job_state_parse("Done", &parsed));
	assert_false(mq_job_state_parse("", &parsed));
	assert_string_equal(mq_tile_state_name(MQ_TILE_SPLIT), "split");
	assert_string_equal(mq_tile_state_name(MQ_TILE_PENDING), "pending");
}

static void job_changes(void **state)
{
	(void)state;
	assert_true(mq_job_may(MQ_JOB_QUEUED, MQ_JOB_RUNNING));
	assert_true(mq_job_may(MQ_JOB_RUNNING, MQ_JOB_ASSEMBLING));
	assert_true(mq_job_may(MQ_JOB_ASSEMBLING, MQ_JOB_DONE));
	assert_true(mq_job_may(MQ_JOB_ASSEMBLING, MQ_JOB_RUNNING));
	assert_true(mq_job_may(MQ_JOB_PAUSED, MQ_JOB_DONE));
	assert_false(mq_job_may(MQ_JOB_WAITING, MQ_JOB_DONE));
	assert_false(mq_job_may(MQ_JOB_RUNNING, MQ_JOB_DONE));
	assert_false(mq_job_may(MQ_JOB_QUEUED, MQ_JOB_DONE));
	assert_false(mq_job_may(MQ_JOB_RUNNING, MQ_JOB_QUEUED));
	for (int from = 0; from < MQ_JOB_STATE_COUNT; from++) {
		bool terminal = mq_job_is_terminal((enum mq_job_state)from);

		for (int to = -1; to <= MQ_JOB_STATE_COUNT; to++)
			if (terminal || to < 0 || to == MQ_JOB_STATE_COUNT || to == from)
				assert_false(
					mq_job_may((enum mq_job_state)from, (enum mq_job_state)to));
		/* Whatever lives can be cancelled and can fail. */
		assert_int_equal(mq_job_may((enum mq_job_state)from, MQ_JOB_CANCELLED), !terminal);
		assert_int_equal(mq_job_may((enum mq_job_state)from, MQ_JOB_FAILED), !terminal);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_come_back),
		cmocka_unit_test(job_changes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
