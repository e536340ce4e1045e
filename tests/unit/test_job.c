/* A job's defaults, limits, canonical form and arithmetic. The grids were computed with exact
 * fractions by another program. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/job.h"

static enum mq_status make(const char *text, struct mq_job **job, struct mq_job_warnings *warnings,
                           struct mq_error *err)
{
	json_t *object = json_loads(text, JSON_DECODE_ANY, NULL);

	assert_non_null(object);
	enum mq_status status = mq_job_from_json(object, job, warnings, err);
	json_decref(object);
	return status;
}

static struct mq_job *made(const char *text)
{
	struct mq_job *job = NULL;
	struct mq_error err = { "" };

	if (make(text, &job, NULL, &err))
		fail_msg("%s: %s", text, err.text);
	return job;
}

static void expect_text(const char *text, const char *expected)
{
	struct mq_job *job = made(text);
	char *got = mq_job_picture_text(job);

	assert_non_null(got);
	assert_string_equal(got, expected);
	free(got);
	mq_job_free(job);
}

static void defaults_and_canonical_text(void **state)
{
	(void)state;
	expect_text(
		"{}",
		"{\"center\":[\"-0.75\",\"0\"],\"height\":1080,\"inside\":\"000000\","
		"\"iterations\":1000,\"mandelq\":1,\"palette\":\"ember\",\"palette_offset\":\"0\","
		"\"palette_period\":\"64\",\"ppm\":11811,\"supersample\":1,\"width\":1920,"
		"\"zoom\":\"1.6\"}");
	/* The default is left out, so that jobs from before there was a choice keep their text. */
	expect_text("{\"palette\":\"gray\",\"width\":8,\"height\":8,\"zoom\":\"1\",\"compression\":\"fast\"}",
	            "{\"center\":[\"-0.75\",\"0\"],\"height\":8,\"iterations\":1000,\"mandelq\":1,"
	            "\"palette\":\"gray\",\"ppm\":11811,\"supersample\":1,\"width\":8,\"zoom\":\"1\"}");
	expect_text("{\"palette\":\"gray\",\"width\":8,\"height\":8,\"zoom\":\"1\",\"compression\":\"small\"}",
	            "{\"center\":[\"-0.75\",\"0\"],\"compression\":\"small\",\"height\":8,\"iterations\":1000,"
	            "\"mandelq\":1,\"palette\":\"gray\",\"ppm\":11811,\"supersample\":1,\"width\":8,"
	            "\"zoom\":\"1\"}");
	expect_text("{\"view\":[\"-2.0\",\"2\",\"-20e-1\",\"+2\"],\"width\":64,\"height\":64,"
	            "\"iterations\":10000,\"palette\":\"gray\",\"keep_counts\":true}",
	            "{\"height\":64,\"iterations\":10000,\"mandelq\":1,\"palette\":\"gray\","
	            "\"ppm\":11811,"
	            "\"supersample\":1,\"view\":[\"-2\",\"2\",\"-2\",\"2\"],\"width\":64}");
	expect_text("{\"inside\":\"FFa0b1\",\"palette_period\":\"1e1\",\"palette_offset\":\"-.50\","
	            "\"supersample\":16,\"ppm\":1,\"zoom\":\"2\",\"iterations\":\"auto\"}",
	            "{\"center\":[\"-0.75\",\"0\"],\"height\":1080,\"inside\":\"ffa0b1\","
	            "\"iterations\":1032,\"mandelq\":1,\"palette\":\"ember\",\"palette_offset\":\"-"
	            "0.5\","
	            "\"palette_period\":\"10\",\"ppm\":1,\"supersample\":16,\"width\":1920,"
	            "\"zoom\":\"2\"}");
}

static void equal_jobs_come_back_from_their_own_text(void **state)
{
	static const char *const jobs[] = {
		"{}",
		"{\"width\":1,\"height\":16777216,\"palette\":\"gray\",\"compression\":\"small\"}",
		"{\"center\":[\"-0.743643887037151\",\"0.13182590420533\"],\"zoom\":\"51299.8\"}",
		"{\"view\":[\"-2\",\"1\",\"-1e-7\",\"1\"],\"palette\":\"ocean\",\"keep_counts\":true}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		struct mq_job *first = made(jobs[i]), *second = NULL, *third = NULL;
		char *text = mq_job_picture_text(first);
		json_t *object = mq_job_to_json(first);

		assert_int_equal(mq_job_from_json(object, &second, NULL, NULL), MQ_OK);
		json_t *again = mq_job_to_json(second);
		assert_true(json_equal(object, again));
		assert_int_equal(make(text, &third, NULL, NULL), MQ_OK);
		char *text3 = mq_job_picture_text(third);
		assert_string_equal(text, text3);
		free(text);
		free(text3);
		json_decref(object);
		json_decref(again);
		mq_job_free(first);
		mq_job_free(second);
		mq_job_free(third);
	}
}

static void grids(void **state)
{
	static const struct {
		const char *job;
		struct mq_grid grid;
	} cases[] = {
		{ "{\"view\":[\"-2\",\"2\",\"-2\",\"2\"],\"width\":65536,\"height\":65536}",
		  { -0x1p+1, 0x1p-14, 0x1p+1, 0x1p-14 } },
		{ "{\"view\":[\"-2.1\",\"0.7\",\"-1.1\",\"1.3\"],\"width\":1001,\"height\":777,"
		  "\"supersample\":3}",
		  { -0x1.0cccccccccccdp+1, 0x1.e8d8bc17645f0p-11, 0x1.4cccccccccccdp+0,
		    0x1.0de75b0010de7p-10 } },
		{ "{\"center\":[\"-0.743643887037151\",\"0.131825904205330\"],\"zoom\":\"51299."
		  "8\"}",
		  { -0x1.7cc7f9e02212ap-1, 0x1.3615b2f8f1d19p-24, 0x1.0e0f2e08caec6p-3,
		    0x1.3615b2f8f1d19p-24 } },
		{ "{\"center\":[\"-0.1011\",\"0.9563\"],\"zoom\":\"1.7e9\",\"width\":46341,"
		  "\"height\":46341}",
		  { -0x1.9e1b08eadb25ap-4, 0x1.c956078a3207cp-45, 0x1.e9a0275c6f76cp-1,
		    0x1.c956078a3207cp-45 } },
		{ "{\"center\":[\"0.1\",\"-0.3\"],\"zoom\":\"0.3\",\"width\":7,\"height\":5,"
		  "\"supersample\":16}",
		  { -0x1.2777777777777p+3, 0x1.5555555555555p-3, 0x1.9777777777777p+2,
		    0x1.5555555555555p-3 } },
		{ "{\"center\":[\"0\",\"0\"],\"zoom\":\"3e280\",\"width\":3,\"height\":2}",
		  { -0x1.d0b15a491eb84p-931, 0x1.35cb9186147aep-931, 0x1.35cb9186147aep-931,
		    0x1.35cb9186147aep-931 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mq_job *job = made(cases[i].job);
		struct mq_grid g;

		assert_int_equal(mq_job_grid(job, &g, NULL), MQ_OK);
		assert_memory_equal(&g, &cases[i].grid, sizeof(g));
		mq_job_free(job);
	}
}

static void refusals_name_option_and_limit(void **state)
{
	static const struct {
		const char *job, *option, *limit;
	} cases[] = {
		{ "[]", "object", "" },
		{ "3", "object", "" },
		{ "{\"colour\":1}", "colour", "see mandelq-job(5)" },
		{ "{\"heigth\":1}", "\"heigth\"", "did you mean \"height\"?" },
		{ "{\"palete\":1}", "\"palete\"", "did you mean \"palette\"?" },
		{ "{\"size\":400}", "\"size\"", "\"width\" and \"height\"" },
		{ "{\"width\":0}", "--size", "16777216" },
		{ "{\"width\":-5}", "--size", "-5" },
		{ "{\"height\":16777217}", "--size", "16777216" },
		{ "{\"height\":9007199254740993}", "--size", "16777216" },
		{ "{\"width\":\"640\"}", "--size", "integer" },
		{ "{\"width\":1.5}", "--size", "integer" },
		{ "{\"width\":null}", "--size", "integer" },
		{ "{\"view\":[\"-2\",\"-2\",\"-1\",\"1\"]}", "--view", "XMIN" },
		{ "{\"view\":[\"-2\",\"2\",\"1\",\"-1\"]}", "--view", "YMIN" },
		{ "{\"view\":[\"nan\",\"2\",\"-1\",\"1\"]}", "--view", "nan" },
		{ "{\"view\":[\"-2\",\"2\",\"-1\"]}", "--view", "4" },
		{ "{\"view\":[-2,2,-1,1]}", "--view", "string" },
		{ "{\"view\":\"-2,2,-1,1\"}", "--view", "4" },
		{ "{\"view\":[\"-2\",\"2\",\"-1\",\"1\"],\"zoom\":\"2\"}", "--view", "--zoom" },
		{ "{\"view\":[\"0\",\"1e99999999\",\"-1\",\"1\"]}", "--view", "100000" },
		{ "{\"view\":[\"0\",\"1e151\",\"0\",\"1e151\"]}", "--view", "1e+150" },
		{ "{\"center\":[\"1e151\",\"0\"]}", "--center", "1e+150" },
		{ "{\"center\":[\"0\"]}", "--center", "2" },
		{ "{\"zoom\":\"0\"}", "--zoom", "greater than 0" },
		{ "{\"zoom\":\"-1\"}", "--zoom", "greater than 0" },
		{ "{\"zoom\":\"-1e-400\"}", "--zoom", "greater than 0" },
		{ "{\"zoom\":3}", "--zoom", "string" },
		{ "{\"zoom\":\"1e-160\"}", "--zoom", "1e+150" },
		{ "{\"iterations\":0}", "--iterations", "4294967294" },
		{ "{\"iterations\":4294967295}", "--iterations", "4294967294" },
		{ "{\"iterations\":\"lots\"}", "--iterations", "4294967294" },
		{ "{\"palette\":\"mauve\"}", "--palette", "gray, ember" },
		{ "{\"palette\":7}", "--palette", "gray, ember" },
		{ "{\"palette_period\":\"0.0009\"}", "--palette-period", "0.001" },
		{ "{\"palette_period\":\"1000000001\"}", "--palette-period", "1000000000" },
		{ "{\"palette_offset\":\"-1000000.1\"}", "--palette-offset", "1000000" },
		{ "{\"palette\":\"gray\",\"palette_offset\":\"x\"}", "--palette-offset", "x" },
		{ "{\"inside\":\"red\"}", "--inside", "RRGGBB" },
		{ "{\"inside\":\"+12345\"}", "--inside", "RRGGBB" },
		{ "{\"inside\":16711680}", "--inside", "RRGGBB" },
		{ "{\"supersample\":17}", "--supersample", "16" },
		{ "{\"supersample\":0}", "--supersample", "16" },
		{ "{\"ppm\":1000001}", "--print", "1000000" },
		{ "{\"compression\":\"best\"}", "--compression", "fast or small" },
		{ "{\"compression\":6}", "--compression", "fast or small" },
		{ "{\"keep_counts\":1}", "--keep-counts", "true" },
		{ "{\"keep_counts\":true,\"supersample\":2}", "--keep-counts", "--supersample" },
		{ "{\"mandelq\":0}", "mandelq", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mq_job *job = NULL;
		struct mq_job_warnings warnings = { .count = 99 };
		struct mq_error err = { "" };

		if (make(cases[i].job, &job, &warnings, &err) != MQ_EINVAL)
			fail_msg("%s was taken", cases[i].job);
		if (!strstr(err.text, cases[i].option) || !strstr(err.text, cases[i].limit))
			fail_msg("%s: the error says \"%s\"", cases[i].job, err.text);
		assert_null(job);
		assert_int_equal(warnings.count, 99);
	}
	struct mq_job *job = NULL;
	assert_int_equal(make("{\"mandelq\":2}", &job, NULL, NULL), MQ_EVERSION);
	assert_int_equal(mq_job_from_json(NULL, &job, NULL, NULL), MQ_EINVAL);
}

static void limits_are_inclusive(void **state)
{
	static const char *const jobs[] = {
		"{\"width\":16777216,\"height\":16777216}",
		"{\"width\":1,\"height\":1}",
		"{\"iterations\":4294967294}",
		"{\"iterations\":1}",
		"{\"palette_period\":\"0.001\"}",
		"{\"palette_period\":\"1e9\"}",
		"{\"palette_offset\":\"-1e6\"}",
		"{\"ppm\":1000000}",
		"{\"supersample\":16}",
		"{\"view\":[\"-1e150\",\"1e150\",\"-1e150\",\"1e150\"]}",
		"{\"mandelq\":1}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
		mq_job_free(made(jobs[i]));
}

static void expect_iterations(const char *job, uint32_t expected)
{
	struct mq_job *j = made(job);

	assert_int_equal(j->iterations, expected);
	mq_job_free(j);
}

static void automatic_iterations(void **state)
{
	(void)state;
	expect_iterations("{\"zoom\":\"0.01\"}", 1000);
	expect_iterations("{\"zoom\":\"1\"}", 1000);
	expect_iterations("{\"zoom\":\"1.99999999999999999999999999999\"}", 1000);
	expect_iterations("{\"zoom\":\"2\"}", 1000 + 32);
	expect_iterations("{\"zoom\":\"1023.99999999999999999999999999\"}", 1000 + 32 * 81);
	expect_iterations("{\"zoom\":\"1024\"}", 1000 + 32 * 100);
	expect_iterations("{\"view\":[\"0\",\"1\",\"1\",\"1.00390625\"]}",
	                  1000 + 32 * 100); /* 4/1024 */
	/* 2^558 < 1e168 < 2^559 < 1e169 */
	expect_iterations("{\"center\":[\"0\",\"0\"],\"zoom\":\"1e168\"}", 1000 + 32 * 558 * 558);
	expect_iterations("{\"center\":[\"0\",\"0\"],\"zoom\":\"1e169\"}", 10000000);
}

/* Takes the zoom that a refusal proposes and sees that it is about the deepest. */
static void expect_deepest(const char *format)
{
	char text[300], zoom[64], deeper[64];
	struct mq_job *job = NULL;
	struct mq_error err = { "" };

	snprintf(text, sizeof(text), format, "1e60");
	assert_int_equal(make(text, &job, NULL, &err), MQ_EINVAL);
	const char *here = strstr(err.text, " here is ");
	assert_non_null(here);
	assert_int_equal(sscanf(here, " here is %63[0-9.e+-]", zoom), 1);
	snprintf(text, sizeof(text), format, zoom);
	mq_job_free(made(text));
	snprintf(deeper, sizeof(deeper), "%.6e", strtod(zoom, NULL) * 2.5);
	snprintf(text, sizeof(text), format, deeper);
	assert_int_equal(make(text, &job, NULL, &err), MQ_EINVAL);
}

static void too_deep_is_refused_with_the_deepest_zoom(void **state)
{
	struct mq_job *job = NULL;
	struct mq_error err = { "" };

	(void)state;
	expect_deepest("{\"center\":[\"-0.75\",\"0.1\"],\"zoom\":\"%s\"}");
	expect_deepest("{\"center\":[\"-0.75\",\"0.1\"],\"zoom\":\"%s\",\"supersample\":4}");
	expect_deepest("{\"center\":[\"-1.9999999999999999\",\"1e-30\"],\"zoom\":\"%s\",\"width\":"
	               "1,\"height\":1}");
	expect_deepest(
		"{\"center\":[\"0.25\",\"0.5\"],\"zoom\":\"%s\",\"width\":65536,\"height\":3}");
	expect_deepest("{\"center\":[\"1e-10\",\"-1e-20\"],\"zoom\":\"%s\",\"width\":3,\"height\":"
	               "16777216}");

	/* A step of exactly 4 ulp of 1 (2^-50, 16 samples) passes; a little less does not. */
	mq_job_free(made(
		"{\"width\":16,\"height\":16,\"view\":[\"1\",\"1."
	        "00000000000001421085471520200371742248"
		"5351562500\",\"1\",\"1.000000000000014210854715202003717422485351562500\"]}"));
	assert_int_equal(
		make("{\"width\":16,\"height\":16,\"view\":[\"1\",\"1.0000000000000142\",\"1\","
	             "\"1.0000000000000142\"]}",
	             &job, NULL, &err),
		MQ_EINVAL);
	assert_non_null(strstr(err.text, "--view"));
	assert_non_null(strstr(err.text, "zoom"));
	/* Nothing in this place is deep enough to show, and that is said without a number. */
	assert_int_equal(make("{\"view\":[\"0.5\",\"0."
	                      "5000000000000000000000000000000000000000000001\",\"-1e120\","
	                      "\"1e120\"]}",
	                      &job, NULL, &err),
	                 MQ_EINVAL);
	assert_non_null(strstr(err.text, "4 ulp"));
	assert_null(job);
}

static void warnings_say_what_to_do(void **state)
{
	static const struct {
		const char *job;
		unsigned count;
		const char *text;
	} cases[] = {
		{ "{}", 0, "" },
		{ "{\"view\":[\"-2\",\"2\",\"-2\",\"2\"]}", 1, "--size=1920x1920" },
		{ "{\"view\":[\"-2\",\"2\",\"-2\",\"2\"],\"width\":77,\"height\":77}", 0, "" },
		{ "{\"view\":[\"-2\",\"1\",\"-1\",\"1\"],\"width\":1000,\"height\":667}", 1,
		  "not square" },
		{ "{\"view\":[\"0\",\"1e-6\",\"0\",\"1e3\"],\"height\":100}", 1, "1x1000000000" },
		{ "{\"width\":1000000,\"height\":2}", 0, "" },
		{ "{\"width\":2,\"height\":1000001}", 1, "vips" },
		{ "{\"palette\":\"gray\",\"inside\":\"ffffff\"}", 1, "gray" },
		{ "{\"palette\":\"gray\",\"palette_period\":\"2\",\"width\":1048576,\"height\":2,"
		  "\"view\":[\"-2\",\"2\",\"-2\",\"2\"]}",
		  3, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mq_job *job = NULL;
		struct mq_job_warnings w = { 0 };
		struct mq_error err;

		if (make(cases[i].job, &job, &w, &err))
			fail_msg("%s: %s", cases[i].job, err.text);
		if (w.count != cases[i].count)
			fail_msg("%s: %u warnings", cases[i].job, w.count);
		/* That picture cannot be made square: no such size may be proposed. */
		if (!strcmp(cases[i].text, "1x1000000000"))
			assert_null(strstr(w.text[0], "--size="));
		else if (w.count)
			assert_non_null(strstr(w.text[0], cases[i].text));
		mq_job_free(job);
	}
}

/* Any JSON value under any key: an error or a job, never a crash; and a job comes back equal. */
static void any_json_is_survived(void **state)
{
	static const char *const keys[] = {
		"mandelq", "width",       "height",  "view",           "center",
		"zoom",    "iterations",  "palette", "palette_period", "palette_offset",
		"inside",  "supersample", "ppm",     "keep_counts",    "compression"
	};
	static const char *const values[] = {
		"null",
		"true",
		"false",
		"0",
		"-1",
		"1",
		"7",
		"1e308",
		"9223372036854775807",
		"\"\"",
		"\"1\"",
		"\"-0.5\"",
		"\"auto\"",
		"\"gray\"",
		"\"\\u20ac\"",
		"[]",
		"{}",
		"[[]]",
		"[\"1\",\"2\"]",
		"[\"0\",\"1\",\"0\",\"1\"]",
		"[\"0\",null]",
		"[\"1\",\"2\",\"3\",{}]",
		"\"1e-100000\"",
		"\"1e100000\"",
		"\"abcdef\"",
		"\"small\"",
	};
	const size_t nk = sizeof(keys) / sizeof(keys[0]), nv = sizeof(values) / sizeof(values[0]);
	unsigned taken = 0;

	(void)state;
	srand(3);
	for (int i = 0; i < 20000; i++) {
		char text[400];
		struct mq_job *job = NULL, *again = NULL;
		struct mq_error err = { "" };

		snprintf(text, sizeof(text), "{\"%s\":%s,\"%s\":%s}", keys[(size_t)rand() % nk],
		         values[(size_t)rand() % nv], keys[(size_t)rand() % nk],
		         values[(size_t)rand() % nv]);
		enum mq_status status = make(text, &job, NULL, &err);
		if (status) {
			assert_true(status == MQ_EINVAL || status == MQ_EVERSION);
			assert_true(err.text[0] && !job);
			continue;
		}
		taken++;
		json_t *object = mq_job_to_json(job);
		assert_int_equal(mq_job_from_json(object, &again, NULL, &err), MQ_OK);
		json_t *object2 = mq_job_to_json(again);
		assert_true(json_equal(object, object2));
		json_decref(object);
		json_decref(object2);
		mq_job_free(job);
		mq_job_free(again);
	}
	assert_true(taken > 100);
}

static void labels(void **state)
{
	static const struct {
		const char *text;
		enum mq_status status;
	} cases[] = {
		{ "poster", MQ_OK },
		{ "Gr\xc3\xb6\xc3\x9f"
		  "e \xe2\x82\xac \xf0\x9f\x8c\x80",
		  MQ_OK },
		{ "a\nb", MQ_EINVAL },
		{ "a\x7f", MQ_EINVAL },
		{ "\xc2\x85", MQ_EINVAL },
		{ "\xc2\xa0", MQ_OK },
		{ "\x80", MQ_EINVAL },
		{ "a\xc3", MQ_EINVAL },
		{ "\xc0\xaf", MQ_EINVAL },
		{ "\xe0\x80\x80", MQ_EINVAL },
		{ "\xed\xa0\x80", MQ_EINVAL },
		{ "\xed\x9f\xbf", MQ_OK },
		{ "\xf4\x90\x80\x80", MQ_EINVAL },
		{ "\xf4\x8f\xbf\xbf", MQ_OK },
		{ "\xf8\x88\x80\x80\x80", MQ_EINVAL },
		{ "\xff", MQ_EINVAL },
		{ "\xf0\x8f\xbf\xbf", MQ_EINVAL },
	};
	char longest[MQ_JOB_NAME_MAX + 1];
	struct mq_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (mq_job_check_label(cases[i].text, strlen(cases[i].text), MQ_JOB_NAME_MAX,
		                       "--name", NULL) != cases[i].status)
			fail_msg("label %zu", i);
	memset(longest, 'x', sizeof(longest));
	assert_int_equal(mq_job_check_label(longest, 200, 200, "--name", &err), MQ_OK);
	assert_int_equal(mq_job_check_label(longest, 201, 200, "--name", &err), MQ_EINVAL);
	assert_non_null(strstr(err.text, "--name"));
	assert_non_null(strstr(err.text, "200"));
	assert_int_equal(mq_job_check_label("", 0, 200, "--name", &err), MQ_OK);
	assert_int_equal(mq_job_check_label("", 0, 200, "--request-id", &err), MQ_EINVAL);
	assert_int_equal(mq_job_check_label("a\0b", 3, 200, "--name", &err), MQ_EINVAL);
}

/* The default shows the set, which lies within -2 .. 0.4712 and +-1.1225, at every shape of
 * picture. */
static void the_default_view_shows_the_whole_set(void **state)
{
	static const uint32_t sizes[][2] = { { 1920, 1080 }, { 1080, 1920 }, { 500, 500 },
		                             { 108, 100 },   { 107, 100 },   { 1, 100000 },
		                             { 100000, 1 },  { 7086, 10630 } };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char text[80];
		struct mq_grid g;

		snprintf(text, sizeof(text), "{\"width\":%u,\"height\":%u}", sizes[i][0],
		         sizes[i][1]);
		struct mq_job *job = made(text);
		assert_int_equal(mq_job_grid(job, &g, NULL), MQ_OK);
		assert_true(g.xmin < -2 && g.xmin + g.dx * sizes[i][0] > 0.4712);
		assert_true(g.ymax > 1.1225 && g.ymax - g.dy * sizes[i][1] < -1.1225);
		mq_job_free(job);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_and_canonical_text),
		cmocka_unit_test(equal_jobs_come_back_from_their_own_text),
		cmocka_unit_test(grids),
		cmocka_unit_test(refusals_name_option_and_limit),
		cmocka_unit_test(limits_are_inclusive),
		cmocka_unit_test(automatic_iterations),
		cmocka_unit_test(too_deep_is_refused_with_the_deepest_zoom),
		cmocka_unit_test(warnings_say_what_to_do),
		cmocka_unit_test(any_json_is_survived),
		cmocka_unit_test(labels),
		cmocka_unit_test(the_default_view_shows_the_whole_set),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
