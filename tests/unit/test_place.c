/* Where the state directory and the socket are, for every setting of the environment. Works in a
 * directory of its own below the present one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/place.h"

static char base[PATH_MAX]; /* absolute, without links */

static int enter(void **state)
{
	char name[] = "test-place-XXXXXX";

	(void)state;
	if (!mkdtemp(name) || chdir(name) || !getcwd(base, sizeof(base)))
		return -1;
	return 0;
}

static int leave(void **state)
{
	(void)state;
	return chdir("/") || rmdir(base);
}

static void forget_environment(void)
{
	unsetenv("MANDELQ_STATE_DIR");
	unsetenv("XDG_STATE_HOME");
	setenv("HOME", "/home/nobody-here", 1);
}

static void expect_dir(const char *given, const char *expected)
{
	struct mq_error err = { "" };
	char *out = NULL;

	if (mq_place_state_dir(given, &out, &err))
		fail_msg("%s", err.text);
	assert_string_equal(out, expected);
	free(out);
}

static void expect_dir_here(const char *given, const char *rest)
{
	char expected[PATH_MAX + 100];

	snprintf(expected, sizeof(expected), "%s%s", base, rest);
	expect_dir(given, expected);
}

static void the_first_that_is_set_wins(void **state)
{
	char *out = NULL;

	(void)state;
	forget_environment();
	expect_dir(NULL, "/home/nobody-here/.local/state/mandelq");
	setenv("XDG_STATE_HOME", "relative", 1); /* to be ignored, says the specification */
	expect_dir(NULL, "/home/nobody-here/.local/state/mandelq");
	setenv("XDG_STATE_HOME", "/xdg-nowhere/state/", 1);
	expect_dir(NULL, "/xdg-nowhere/state/mandelq");
	setenv("MANDELQ_STATE_DIR", "", 1); /* as if not set */
	expect_dir(NULL, "/xdg-nowhere/state/mandelq");
	setenv("MANDELQ_STATE_DIR", "/env-nowhere/x", 1);
	expect_dir(NULL, "/env-nowhere/x");
	expect_dir("/given-nowhere/x", "/given-nowhere/x");
	forget_environment();
	assert_int_equal(mq_place_state_dir("", &out, NULL), MQ_EINVAL);
	setenv("HOME", "not/absolute", 1);
	assert_int_equal(mq_place_state_dir(NULL, &out, NULL), MQ_EINVAL);
	assert_null(out);
	forget_environment();
}

static void paths_become_absolute(void **state)
{
	(void)state;
	forget_environment();
	expect_dir_here("s", "/s");
	expect_dir_here("./s/", "/s");
	expect_dir_here("a//b/./c", "/a/b/c");
	expect_dir_here(".", "");
	assert_int_equal(mkdir("real", 0700), 0);
	assert_int_equal(symlink("real", "link"), 0);
	expect_dir_here("link", "/real");
	expect_dir_here("link/new/er", "/real/new/er");
	expect_dir_here("real/../new", "/new");
	setenv("MANDELQ_STATE_DIR", "link", 1);
	expect_dir_here(NULL, "/real");
	forget_environment();
	assert_int_equal(unlink("link"), 0);
	assert_int_equal(rmdir("real"), 0);
	expect_dir("/", "/");
}

static void the_systems_worker(void **state)
{
	(void)state;
	forget_environment();
	unsetenv("STATE_DIRECTORY");
	assert_false(mq_place_for_system(NULL));
	assert_false(mq_place_for_system("/srv/x"));
	assert_true(mq_place_for_system(MQ_SYSTEM_STATE_DIR "/"));
	setenv("MANDELQ_STATE_DIR", MQ_SYSTEM_STATE_DIR, 1);
	assert_true(mq_place_for_system(NULL));
	assert_false(mq_place_for_system("/srv/x"));
	forget_environment();
	setenv("STATE_DIRECTORY", MQ_SYSTEM_STATE_DIR "x", 1);
	assert_false(mq_place_for_system(NULL));
	setenv("STATE_DIRECTORY", "/var/lib/x:" MQ_SYSTEM_STATE_DIR, 1);
	assert_true(mq_place_for_system(NULL));
	assert_true(mq_place_for_system("/srv/x"));
	/* nothing is known of a home, and nothing is said */
	setenv("STATE_DIRECTORY", "", 1);
	setenv("HOME", "relative", 1);
	assert_false(mq_place_for_system(NULL));
}

static void endpoints(void **state)
{
	char dir[200], expected[300];
	struct mq_error err;
	char *out = NULL;

	(void)state;
	assert_int_equal(mq_place_endpoint("/nowhere/s", &out, NULL), MQ_OK);
	assert_string_equal(out, "ipc:///nowhere/s/mandelqd.sock");
	free(out);
	assert_int_equal(mq_place_endpoint(MQ_SYSTEM_STATE_DIR, &out, NULL), MQ_OK);
	assert_string_equal(out, MQ_SYSTEM_ENDPOINT);
	free(out);
	/* 107 bytes are the most that a socket's path may have; "/mandelqd.sock" takes 14. */
	memset(dir, 'd', sizeof(dir));
	dir[0] = '/';
	dir[93] = '\0';
	snprintf(expected, sizeof(expected), "ipc://%s/mandelqd.sock", dir);
	assert_int_equal(mq_place_endpoint(dir, &out, &err), MQ_OK);
	assert_string_equal(out, expected);
	free(out);
	out = NULL;
	dir[93] = 'd';
	dir[94] = '\0';
	assert_int_equal(mq_place_endpoint(dir, &out, &err), MQ_EINVAL);
	assert_non_null(strstr(err.text, "107"));
	assert_non_null(strstr(err.text, "--endpoint"));
	assert_null(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_that_is_set_wins),
		cmocka_unit_test(paths_become_absolute),
		cmocka_unit_test(the_systems_worker), cmocka_unit_test(endpoints),
	};

	return cmocka_run_group_tests(tests, enter, leave);
}
