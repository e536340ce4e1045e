/* Names and exit codes as the manual lists them, and error texts that stay one whole line. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "src/status.h"

static void every_status_has_a_name_and_comes_back(void **state)
{
	(void)state;
	for (int i = 0; i < MQ_STATUS_COUNT; i++) {
		const char *name = mq_status_name((enum mq_status)i);
		assert_non_null(name);
		assert_int_equal(mq_status_from_name(name), i);
	}
	assert_int_equal(mq_status_from_name("no such name"), MQ_EPROTO);
	assert_int_equal(mq_status_from_name(""), MQ_EPROTO);
	assert_string_equal(mq_status_name(MQ_ENOENT), "no-such-job");
	assert_string_equal(mq_status_name(MQ_ENOMEM_DEVICE), "device-memory");
}

static void exit_codes_are_those_of_the_manual(void **state)
{
	static const int expected[MQ_STATUS_COUNT] = {
		[MQ_OK] = 0,          [MQ_EINVAL] = 2,        [MQ_ENOENT] = 3,   [MQ_ECONFLICT] = 5,
		[MQ_EPERM] = 8,       [MQ_ESTATE] = 1,        [MQ_EUNREACH] = 4, [MQ_ETIMEOUT] = 6,
		[MQ_ESTOPPED] = 7,    [MQ_EBUSY] = 1,         [MQ_EIO] = 1,      [MQ_ENOSPC] = 1,
		[MQ_ESYNC] = 1,
		[MQ_ENOMEM_HOST] = 1, [MQ_ENOMEM_DEVICE] = 1, [MQ_EDEVICE] = 1,  [MQ_ECORRUPT] = 1,
		[MQ_ECANCELLED] = 1,  [MQ_ESTALE] = 1,        [MQ_EPROTO] = 4,   [MQ_EVERSION] = 4,
		[MQ_EINTERNAL] = 1,
	};

	(void)state;
	for (int i = 0; i < MQ_STATUS_COUNT; i++)
		assert_int_equal(mq_status_exit_code((enum mq_status)i), expected[i]);
	assert_int_equal(mq_status_exit_code((enum mq_status) - 1), 1);
}

static void fail_formats_and_returns(void **state)
{
	struct mq_error err = { "before" };

	(void)state;
	assert_int_equal(mq_fail(&err, MQ_EINVAL, "--size: %d", 7), MQ_EINVAL);
	assert_string_equal(err.text, "--size: 7");
	assert_int_equal(mq_fail(&err, MQ_EIO, "again: %s", err.text), MQ_EIO);
	assert_string_equal(err.text, "again: --size: 7");
	assert_int_equal(mq_fail(NULL, MQ_ENOSPC, "%s", "x"), MQ_ENOSPC);
	mq_fail(&err, MQ_EINVAL, "two\nlines\x1b[31m");
	assert_string_equal(err.text, "two?lines?[31m");
}

static void long_texts_are_cut_between_characters(void **state)
{
	struct mq_error err;
	char text[600];

	(void)state;
	for (size_t before = 505; before < 512; before++) {
		memset(text, 'a', before);
		strcpy(text + before, "\xe2\x82\xac tail to cut");
		mq_fail(&err, MQ_EINVAL, "%s", text);
		size_t len = strlen(err.text);
		assert_true(len <= 511 && len >= 508);
		/* The euro sign is there whole or not at all. */
		size_t bytes = 0;
		for (size_t i = 0; i < len; i++)
			bytes += (unsigned char)err.text[i] >= 0x80;
		assert_int_equal(bytes, before + 3 <= 511 ? 3 : 0);
	}
}

static void errno_gives_status_and_reason(void **state)
{
	static const struct {
		int errnum;
		enum mq_status status;
	} cases[] = {
		{ ENOSPC, MQ_ENOSPC }, { EDQUOT, MQ_ENOSPC }, { ENOMEM, MQ_ENOMEM_HOST },
		{ ENOENT, MQ_ENOENT }, { EIO, MQ_EIO },       { EACCES, MQ_EIO },
	};
	struct mq_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(mq_fail_errno(&err, cases[i].errnum, "x"), cases[i].status);
	mq_fail_errno(&err, ENOENT, "cannot open %s", "f");
	assert_string_equal(err.text, "cannot open f: No such file or directory");
	assert_int_equal(mq_fail_errno(NULL, EDQUOT, "x"), MQ_ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_status_has_a_name_and_comes_back),
		cmocka_unit_test(exit_codes_are_those_of_the_manual),
		cmocka_unit_test(fail_formats_and_returns),
		cmocka_unit_test(long_texts_are_cut_between_characters),
		cmocka_unit_test(errno_gives_status_and_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
