/* Tests of src/option.h: the table, command lines, configuration files, values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/option.h"

#define SUBMIT (MQ_SCOPE_CLIENT | MQ_SCOPE_SUBMIT)

static struct mq_options options;
static struct mq_error error;

static enum mq_status parse(unsigned scope, ...)
{
	static char *argv[64];
	int argc = 0;
	va_list ap;

	mq_options_clear(&options);
	memset(&error, 0, sizeof(error));
	va_start(ap, scope);
	while ((argv[argc] = va_arg(ap, char *)))
		argc++;
	va_end(ap);
	return mq_options_parse(&options, scope, argc, argv, &error);
}

#define PARSE(scope, ...) parse(scope, __VA_ARGS__, (char *)NULL)

static void assert_says(const char *part)
{
	if (!strstr(error.text, part))
		fail_msg("\"%s\" is not in \"%s\"", part, error.text);
	assert_null(strchr(error.text, '\n'));
}

static void table_is_in_order(void **state)
{
	(void)state;
	for (int i = 0; i < MQ_OPT_COUNT; i++) {
		const struct mq_option *o = &mq_option_table[i];

		assert_int_equal(o->id, i);
		assert_non_null(o->name);
		assert_non_null(o->help);
		assert_int_not_equal(o->scopes, 0);
		for (int j = 0; j < i; j++) {
			assert_string_not_equal(o->name, mq_option_table[j].name);
			assert_true(!o->letter || o->letter != mq_option_table[j].letter);
		}
	}
}

static void help_lines_fit(void **state)
{
	char *text = NULL, *line, *rest;
	size_t len = 0;
	FILE *f;

	(void)state;
	for (unsigned scope = 1; scope < MQ_SCOPE_END; scope <<= 1) {
		f = open_memstream(&text, &len);
		mq_options_help(f, scope);
		fclose(f);
		if (scope == MQ_SCOPE_FETCH)
			assert_non_null(strstr(text, "-o, --output=FILE"));
		for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
			assert_in_range(strlen(line), 10, 100);
		free(text);
	}
}

static void both_forms_and_negative_values(void **state)
{
	(void)state;
	assert_int_equal(PARSE(SUBMIT, "--size=65536", "--view", "-2,2,-2,2", "--center",
			       "-0.5,-1e-3", "--priority", "-5", "pic.png", "--keep-counts"),
			 MQ_OK);
	assert_string_equal(options.value[MQ_OPT_SIZE], "65536");
	assert_string_equal(options.value[MQ_OPT_VIEW], "-2,2,-2,2");
	assert_string_equal(options.value[MQ_OPT_CENTER], "-0.5,-1e-3");
	assert_string_equal(options.value[MQ_OPT_PRIORITY], "-5");
	assert_string_equal(options.value[MQ_OPT_KEEP_COUNTS], "");
	assert_int_equal(options.count[MQ_OPT_WAIT], 0);
	assert_null(options.value[MQ_OPT_WAIT]);
	assert_int_equal(options.operands, 1);
	assert_string_equal(options.operand[0], "pic.png");

	assert_int_equal(PARSE(SUBMIT, "--name=", "--palette=a=b"), MQ_OK);
	assert_string_equal(options.value[MQ_OPT_NAME], "");
	assert_string_equal(options.value[MQ_OPT_PALETTE], "a=b");
}

static void letters_dashes_and_the_end(void **state)
{
	unsigned fetch = MQ_SCOPE_CLIENT | MQ_SCOPE_FETCH;

	(void)state;
	assert_int_equal(PARSE(fetch, "3", "-o", "-", "--", "--force", "-o"), MQ_OK);
	assert_string_equal(options.value[MQ_OPT_OUTPUT], "-");
	assert_int_equal(options.count[MQ_OPT_FORCE], 0);
	assert_int_equal(options.operands, 3);
	assert_string_equal(options.operand[1], "--force");
	assert_int_equal(PARSE(fetch, "-oa.png", "-h", "-"), MQ_OK);
	assert_string_equal(options.value[MQ_OPT_OUTPUT], "a.png");
	assert_int_equal(options.count[MQ_OPT_HELP], 1);
	assert_string_equal(options.operand[0], "-");

	assert_int_equal(PARSE(fetch, "-o"), MQ_EINVAL);
	assert_says("-o needs a value: -o FILE");
	assert_int_equal(PARSE(fetch, "-hx"), MQ_EINVAL);
	assert_int_equal(PARSE(fetch, "-x"), MQ_EINVAL);
	assert_says("unknown option -x");
	assert_int_equal(PARSE(SUBMIT, "-o", "x"), MQ_EINVAL);
}

static void last_wins_and_repeats(void **state)
{
	(void)state;
	assert_int_equal(PARSE(SUBMIT, "--size=1", "--size=2"), MQ_OK);
	assert_int_equal(options.count[MQ_OPT_SIZE], 2);
	assert_string_equal(options.value[MQ_OPT_SIZE], "2");

	assert_int_equal(PARSE(MQ_SCOPE_DAEMON, "--device=cuda:0", "--device", "cpu"), MQ_OK);
	assert_int_equal(options.count[MQ_OPT_DEVICE], 2);
	assert_string_equal(options.repeated[0], "cuda:0");
	assert_string_equal(options.repeated[1], "cpu");

#define D "--device=cpu"
	assert_int_equal(PARSE(MQ_SCOPE_DAEMON, D, D, D, D, D, D, D, D, D, D, D, D, D, D, D, D),
			 MQ_OK);
	assert_int_equal(PARSE(MQ_SCOPE_DAEMON, D, D, D, D, D, D, D, D, D, D, D, D, D, D, D, D, D),
			 MQ_EINVAL);
	assert_says("--device may be given 16 times");
}

static void mistakes_are_named(void **state)
{
	char longest[5000];

	(void)state;
	assert_int_equal(PARSE(SUBMIT, "--siz", "3"), MQ_EINVAL);
	assert_says("unknown option --siz; did you mean --size?");
	assert_int_equal(PARSE(SUBMIT, "--szie=3"), MQ_EINVAL);
	assert_says("did you mean --size?");
	assert_int_equal(PARSE(SUBMIT, "--iter=3"), MQ_EINVAL);
	assert_says("did you mean --iterations?");
	assert_int_equal(PARSE(SUBMIT, "--qwertyuiop"), MQ_EINVAL);
	assert_says("unknown option --qwertyuiop; see --help");
	assert_int_equal(PARSE(SUBMIT, "--region=1,2,3,4"), MQ_EINVAL);
	assert_says("option --region is not for this command");
	assert_int_equal(PARSE(SUBMIT, "--wait=yes"), MQ_EINVAL);
	assert_says("--wait takes no value");
	assert_int_equal(PARSE(SUBMIT, "--size"), MQ_EINVAL);
	assert_says("--size needs a value: --size=N|WxH");
	assert_int_equal(PARSE(SUBMIT, "--=3"), MQ_EINVAL);
	assert_int_equal(PARSE(SUBMIT, "--a\nb\033[31m"), MQ_EINVAL);
	assert_says("--a?b?[31m");

	memset(longest, 'x', sizeof(longest) - 1);
	memcpy(longest, "--", 2);
	longest[sizeof(longest) - 1] = '\0';
	assert_int_equal(PARSE(SUBMIT, longest), MQ_EINVAL);
	assert_says("unknown option --xxx");
}

/* What newcomers type. */
static void mistakes_lead_to_what_is_meant(void **state)
{
	static const struct {
		unsigned scope;
		const char *arg, *says;
	} cases[] = {
		{ MQ_SCOPE_SUBMIT, "-size=400", "unknown option -size; did you mean --size?" },
		{ MQ_SCOPE_SUBMIT, "-iter=400", "unknown option -iter; did you mean --iterations?" },
		{ MQ_SCOPE_FETCH, "-output=x.png", "unknown option -output; did you mean --output?" },
		{ MQ_SCOPE_SUBMIT, "-x", "unknown option -x; see --help" },
		{ MQ_SCOPE_SUBMIT, "-o", "option -o is not for this command; mandelq render and fetch have it" },
		{ MQ_SCOPE_SUBMIT, "-ox.png", "option -o is not for this command; " },
		{ MQ_SCOPE_FETCH, "--size=10",
		  "option --size is not for this command; mandelq submit and render have it" },
		{ MQ_SCOPE_WATCH, "--timeout=2", "; mandelq submit and wait have it" },
		{ MQ_SCOPE_FETCH, "--check", "; mandelqd has it" },
		{ MQ_SCOPE_FETCH, "--threads=2", "; mandelqd and mandelq render have it" },
		{ MQ_SCOPE_KEYGEN, "--endpoint=x", "option --endpoint is not for this command; " },
		{ MQ_SCOPE_STATUS, "--log", "option --log is not for this command; mandelq info has it" },
		{ MQ_SCOPE_DAEMON, "--size=2", "; mandelq submit and render have it" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(PARSE(cases[i].scope, (char *)cases[i].arg, "x"), MQ_EINVAL);
		assert_says(cases[i].says);
	}
	/* none but that of every command is cut */
	for (int i = 0; i < MQ_OPT_COUNT; i++) {
		char arg[64];

		snprintf(arg, sizeof(arg), "--%s", mq_option_table[i].name);
		if (mq_option_table[i].scopes & MQ_SCOPE_METRICS)
			continue;
		assert_int_equal(PARSE(MQ_SCOPE_METRICS, arg, "x"), MQ_EINVAL);
		assert_true(strcmp(error.text + strlen(error.text) - 3, " it") == 0);
	}
}

static void help_is_that_of_the_command(void **state)
{
	static const struct {
		unsigned scope;
		enum mq_option_id id;
		const char *has;
	} cases[] = {
		{ MQ_SCOPE_FETCH, MQ_OPT_FORCE, "FILE" },      { MQ_SCOPE_RENDER, MQ_OPT_FORCE, "FILE" },
		{ MQ_SCOPE_KEYGEN, MQ_OPT_FORCE, "keys" },     { MQ_SCOPE_DAEMON, MQ_OPT_FORCE, "keys" },
		{ MQ_SCOPE_CLEAN, MQ_OPT_FORCE, "pictures" },  { MQ_SCOPE_REMOVE, MQ_OPT_FORCE, "pictures" },
		{ MQ_SCOPE_SUBMIT, MQ_OPT_NAME, "the job's" }, { MQ_SCOPE_WATCH, MQ_OPT_NAME, "only jobs" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *help = mq_option_help(&mq_option_table[cases[i].id], cases[i].scope);

		assert_non_null(strstr(help, cases[i].has));
		assert_null(strstr(help, " or "));
	}
}

/* --- configuration --- */

static char path[64];

static enum mq_status config(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	memset(&error, 0, sizeof(error));
	return mq_options_read_config(&options, MQ_SCOPE_DAEMON, path, &error);
}

static void config_gives_what_the_line_did_not(void **state)
{
	(void)state;
	assert_int_equal(PARSE(MQ_SCOPE_DAEMON, "--threads=2", "--device=cpu"), MQ_OK);
	assert_int_equal(config("# a comment\n\n  threads = 4\n\tdevice-memory=4G ; why\n"
				"   idle-release = 5\ndevice = cuda:1\nlog-level: debug"),
			 MQ_OK);
	assert_string_equal(options.value[MQ_OPT_THREADS], "2");
	assert_string_equal(options.value[MQ_OPT_DEVICE_MEMORY], "4G");
	assert_string_equal(options.value[MQ_OPT_IDLE_RELEASE], "5");
	assert_string_equal(options.value[MQ_OPT_LOG_LEVEL], "debug");
	assert_int_equal(options.count[MQ_OPT_DEVICE], 1);
	assert_string_equal(options.repeated[0], "cpu");
	/* a comment is a semicolon behind a blank, and nothing else */
	assert_int_equal(PARSE(MQ_SCOPE_DAEMON, "--"), MQ_OK);
	assert_int_equal(config("state-dir = /a;b #c\t;d\nendpoint = ipc:///x ;y"), MQ_OK);
	assert_string_equal(options.value[MQ_OPT_STATE_DIR], "/a;b #c");
	assert_string_equal(options.value[MQ_OPT_ENDPOINT], "ipc:///x");
	mq_options_clear(&options);

	assert_int_equal(PARSE(MQ_SCOPE_DAEMON, "--"), MQ_OK);
	assert_int_equal(config("device = cuda:1\r\ndevice = cpu\r\n"), MQ_OK);
	assert_int_equal(options.count[MQ_OPT_DEVICE], 2);
	assert_string_equal(options.repeated[0], "cuda:1");
	assert_string_equal(options.repeated[1], "cpu");
	assert_string_equal(strrchr(options.repeated_origin[0], ':'), ":1");
	assert_string_equal(strrchr(options.repeated_origin[1], ':'), ":2");
}

static void a_value_is_blamed_where_it_stands(void **state)
{
	struct mq_error err = { "too much" };

	(void)state;
	assert_int_equal(mq_option_blame("a.conf:3", MQ_OK, &err), MQ_OK);
	assert_int_equal(mq_option_blame(NULL, MQ_EINVAL, &err), MQ_EINVAL);
	assert_string_equal(err.text, "too much");
	assert_int_equal(mq_option_blame("a.conf:3", MQ_EINVAL, &err), MQ_EINVAL);
	assert_string_equal(err.text, "a.conf:3: too much");
}

static void config_mistakes_name_the_line(void **state)
{
	char text[1024];

	(void)state;
	PARSE(MQ_SCOPE_DAEMON, "--");
	assert_int_equal(config("threads = 1\nthread = 4\n"), MQ_EINVAL);
	assert_says(":2: unknown option thread; did you mean threads?");
	assert_int_equal(config("\nsize = 4\n"), MQ_EINVAL);
	assert_says(":2: unknown option size");
	assert_int_equal(config("config = x\n"), MQ_EINVAL);
	assert_says(":1: config is for the command line only");
	assert_int_equal(config("threads = 1\n\nnonsense\nthread = 4\n"), MQ_EINVAL);
	assert_says(":3: not a line");
	assert_int_equal(config("[worker]\nthreads = 1\n"), MQ_EINVAL);
	assert_says(":2: there are no sections");
	assert_int_equal(config("threads =\n"), MQ_EINVAL);
	assert_says(":1: threads has no value");
	assert_int_equal(config("threads = 1\ndevice = cpu\n\nthreads = 1\n"), MQ_EINVAL);
	assert_says(":4: threads stands in line 1 already");
	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "endpoint = ", 11);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(config(text), MQ_EINVAL);
	assert_says(":1: the line has over 190 bytes");
	assert_int_equal(
		mq_options_read_config(&options, MQ_SCOPE_DAEMON, "/nonexistent/x", &error),
		MQ_ENOENT);
	assert_says("/nonexistent/x");
}

/* --- values --- */

static void whole_numbers(void **state)
{
	static const char *const bad[] = { "",
					   "-1",
					   "+1",
					   " 1",
					   "1 ",
					   "0x10",
					   "1.0",
					   "1e3",
					   "0",
					   "1025",
					   "18446744073709551617",
					   "nan" };
	unsigned long long n = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(mq_option_u64(bad[i], MQ_OPT_THREADS, 1, 1024, &n, &error),
				 MQ_EINVAL);
		assert_says("--threads=");
		assert_says("from 1 to 1024");
		assert_int_equal(n, 7);
	}
	assert_int_equal(mq_option_u64("1024", MQ_OPT_THREADS, 1, 1024, &n, &error), MQ_OK);
	assert_int_equal(n, 1024);
	assert_int_equal(
		mq_option_u64("18446744073709551615", MQ_OPT_SIZE, 0, UINT64_MAX, &n, &error),
		MQ_OK);
	assert_true(n == UINT64_MAX);
}

static void sizes_in_bytes(void **state)
{
	static const struct {
		const char *text;
		unsigned long long bytes;
	} good[] = {
		{ "0", 0 },
		{ "1073741824", 1073741824 },
		{ "12B", 12 },
		{ "1K", 1024 },
		{ "256M", 268435456 },
		{ "4G", 4294967296 },
		{ "4g", 4294967296 },
		{ "4GB", 4294967296 },
		{ "4GiB", 4294967296 },
		{ "2T", 2199023255552 },
		{ "16777215T", 18446742974197923840u },
	};
	static const char *const bad[] = { "",
					   "G",
					   "-1G",
					   "1.5G",
					   "4 G",
					   "4Gi",
					   "4GBB",
					   "4X",
					   "1BB",
					   "16777216T",
					   "99999999999999999999" };
	unsigned long long n = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(mq_option_bytes(good[i].text, MQ_OPT_DEVICE_MEMORY, &n, &error),
				 MQ_OK);
		assert_true(n == good[i].bytes);
	}
	n = 7;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(mq_option_bytes(bad[i], MQ_OPT_DEVICE_MEMORY, &n, &error),
				 MQ_EINVAL);
		assert_says("--device-memory=");
		assert_int_equal(n, 7);
	}
}

static void seconds(void **state)
{
	static const struct {
		const char *text;
		unsigned long long ms;
	} good[] = {
		{ "0", 0 },
		{ "5", 5000 },
		{ "0.25", 250 },
		{ "1.0019", 1001 },
		{ "1000000000", 1000000000000 },
	};
	static const char *const bad[] = {
		"", "-1", ".5", "5.", "1e3", "inf", "nan", "5s", "1000000000.001", "1000000001"
	};
	unsigned long long n = 7;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(mq_option_seconds(good[i].text, MQ_OPT_TIMEOUT, &n, &error),
				 MQ_OK);
		assert_true(n == good[i].ms);
	}
	n = 7;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(mq_option_seconds(bad[i], MQ_OPT_TIMEOUT, &n, &error), MQ_EINVAL);
		assert_says("--timeout=");
		assert_int_equal(n, 7);
	}
}

static int make_path(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "test_option.XXXXXX");
	fd = mkstemp(path);
	return fd < 0 || close(fd) != 0;
}

static int remove_path(void **state)
{
	(void)state;
	mq_options_clear(&options);
	return unlink(path);
}

static void ages(void **state)
{
	static const struct {
		const char *text;
		unsigned long long ms;
	} good[] = { { "90s", 90000 }, { "45m", 2700000 }, { "12h", 43200000 }, { "7d", 604800000 },
		     { "2w", 1209600000 }, { "0s", 0 }, { "0", 0 }, { "1000000000s", 1000000000000 } };
	static const char *const bad[] = { "", "d", "7x", "7dd", "-1d", "1.5h", "7", "30", "1000000001s", "1653w1",
					   "99999999999999999999d", " 7d" };
	unsigned long long ms;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(mq_option_age(good[i].text, MQ_OPT_KEEP_FOR, &ms, &error), MQ_OK);
		assert_int_equal(ms, good[i].ms);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(mq_option_age(bad[i], MQ_OPT_KEEP_FOR, &ms, &error), MQ_EINVAL);
		assert_says("--keep-for=");
	}
}

static void a_negative_number_is_an_operand(void **state)
{
	(void)state;
	assert_int_equal(PARSE(MQ_SCOPE_PRIORITY, "3", "-5"), MQ_OK);
	assert_int_equal(options.operands, 2);
	assert_string_equal(options.operand[1], "-5");
	assert_int_equal(PARSE(MQ_SCOPE_PRIORITY, "3", "-x"), MQ_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_is_in_order),
		cmocka_unit_test(ages),
		cmocka_unit_test(a_negative_number_is_an_operand),
		cmocka_unit_test(help_lines_fit),
		cmocka_unit_test(both_forms_and_negative_values),
		cmocka_unit_test(letters_dashes_and_the_end),
		cmocka_unit_test(last_wins_and_repeats),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(mistakes_lead_to_what_is_meant),
		cmocka_unit_test(help_is_that_of_the_command),
		cmocka_unit_test(config_gives_what_the_line_did_not),
		cmocka_unit_test(config_mistakes_name_the_line),
		cmocka_unit_test(a_value_is_blamed_where_it_stands),
		cmocka_unit_test(whole_numbers),
		cmocka_unit_test(sizes_in_bytes),
		cmocka_unit_test(seconds),
	};

	return cmocka_run_group_tests(tests, make_path, remove_path);
}
