/* The log: what a sink gets, and what standard error gets without one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "src/log.h"

static struct {
	int calls, priority;
	struct mq_log_about about;
	char text[4096];
	bool taken;
} got;

static bool sink(int priority, const struct mq_log_about *about, const char *text)
{
	got.calls++;
	got.priority = priority;
	got.about = *about;
	strcpy(got.text, text);
	return got.taken;
}

/* What is written to standard error between begin and end. */
static int saved, ends[2];

static void begin(void)
{
	assert_int_equal(pipe(ends), 0);
	saved = dup(STDERR_FILENO);
	assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
}

static size_t end(char *text, size_t size)
{
	ssize_t n;

	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	close(ends[1]);
	n = read(ends[0], text, size - 1);
	close(ends[0]);
	assert_true(n >= 0);
	text[n] = '\0';
	return (size_t)n;
}

static void test_sink_gets_the_fields(void **state)
{
	char text[4096];

	(void)state;
	memset(&got, 0, sizeof(got));
	got.taken = true;
	mq_log_set_sink(sink);
	begin();
	mq_log_about(MQ_LOG_WARN, (struct mq_log_about){ 1, 23, 456, "cuda:0" }, "job %d\nfailed", 1);
	assert_int_equal(end(text, sizeof(text)), 0);
	assert_int_equal(got.calls, 1);
	assert_int_equal(got.priority, 4);
	assert_int_equal(got.about.job, 1);
	assert_int_equal(got.about.tile, 23);
	assert_int_equal(got.about.attempt, 456);
	assert_string_equal(got.about.device, "cuda:0");
	assert_string_equal(got.text, "job 1 failed");

	mq_log(MQ_LOG_ERROR, "plain");
	assert_int_equal(got.priority, 3);
	assert_true(!got.about.job && !got.about.tile && !got.about.attempt && !got.about.device);
	mq_log_job(MQ_LOG_INFO, 7, "seven");
	assert_int_equal(got.about.job, 7);
	mq_log_device(MQ_LOG_INFO, "cpu", "device");
	assert_true(!got.about.job);
	assert_string_equal(got.about.device, "cpu");

	got.calls = 0;
	mq_log_job(MQ_LOG_DEBUG, 7, "above the level");
	assert_int_equal(got.calls, 0);
	mq_log_set_sink(NULL);
}

static void test_what_the_sink_refuses_goes_to_standard_error(void **state)
{
	char text[4096];

	(void)state;
	memset(&got, 0, sizeof(got));
	mq_log_set_sink(sink);
	begin();
	mq_log_job(MQ_LOG_INFO, 7, "seven");
	end(text, sizeof(text));
	assert_int_equal(got.calls, 1);
	assert_non_null(strstr(text, "Z info: seven\n"));
	mq_log_set_sink(NULL);
}

static void test_long_lines_are_cut(void **state)
{
	char text[8192], x[4000];
	size_t n;

	(void)state;
	memset(x, 'x', sizeof(x));
	x[sizeof(x) - 1] = '\0';
	begin();
	mq_log(MQ_LOG_INFO, "%s", x);
	n = end(text, sizeof(text));
	assert_true(n <= 2048);
	assert_string_equal(text + n - 4, "...\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sink_gets_the_fields),
		cmocka_unit_test(test_what_the_sink_refuses_goes_to_standard_error),
		cmocka_unit_test(test_long_lines_are_cut),
	};

	unsetenv("JOURNAL_STREAM");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
