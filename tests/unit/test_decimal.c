/* Decimals against GMP's own fractions, canonical texts by hand, and rounding against strtod, which
 * glibc rounds correctly. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/decimal.h"

static void parse_is_exact(void **state)
{
	static const struct {
		const char *text, *fraction;
	} cases[] = {
		{ "0", "0" },
		{ "-0.000e5", "0" },
		{ "1", "1" },
		{ "-2", "-2" },
		{ "+2.50", "5/2" },
		{ ".5", "1/2" },
		{ "5.", "5" },
		{ "0.1", "1/10" },
		{ "-0.75", "-3/4" },
		{ "1e3", "1000" },
		{ "12.5E-1", "5/4" },
		{ "00012e+02", "1200" },
		{ "1e-8", "1/100000000" },
		{ "100e-2", "1" },
		{ "123456789012345678901234567890.25", "493827156049382715604938271561/4" },
	};
	mpq_t got, expected;

	(void)state;
	mpq_inits(got, expected, NULL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(mq_decimal_parse(got, cases[i].text, "--view", NULL), MQ_OK);
		assert_int_equal(mpq_set_str(expected, cases[i].fraction, 10), 0);
		if (!mpq_equal(got, expected))
			fail_msg("%s is not %s", cases[i].text, cases[i].fraction);
	}
	mpq_clears(got, expected, NULL);
}

static void canonical_texts(void **state)
{
	static const struct {
		const char *text, *canonical;
	} cases[] = {
		{ "0", "0" },
		{ "-0", "0" },
		{ "+0.00e7", "0" },
		{ "0e-99999", "0" },
		{ "-2", "-2" },
		{ "-2.000", "-2" },
		{ "+02", "2" },
		{ ".50", "0.5" },
		{ "5e-1", "0.5" },
		{ "0.05e1", "0.5" },
		{ "1e-6", "0.000001" },
		{ "0.00000123", "0.00000123" },
		{ "1e-7", "1e-7" },
		{ "0.000000123", "1.23e-7" },
		{ "1e20", "100000000000000000000" },
		{ "1e21", "1e21" },
		{ "123.4560e19", "1.23456e21" },
		{ "123.4560e18", "123456000000000000000" },
		{ "-12.5", "-12.5" },
		{ "1200", "1200" },
		{ "12e+1", "120" },
		{ "1E-30", "1e-30" },
		{ "100e-32", "1e-30" },
		{ "99e-9", "9.9e-8" },
	};
	char *out;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(mq_decimal_canonical(cases[i].text, "x", &out, NULL), MQ_OK);
		assert_string_equal(out, cases[i].canonical);
		free(out);
	}
}

static void what_is_no_number_is_refused(void **state)
{
	static const char *const cases[] = {
		"",    "+",     "-",   ".",     "-.",   "e5",  "1e",       "1e+",
		"1e-", "1.2.3", "1 ",  " 1",    "0x10", "nan", "inf",      "-inf",
		"1,5", "--1",   "+-1", "1e5.0", "1e 5", "1f",  "\xc2\xb2", "1e5e5",
	};
	struct mq_error err;
	mpq_t q;
	char *out = NULL;

	(void)state;
	mpq_init(q);
	mpq_set_ui(q, 77, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (mq_decimal_parse(q, cases[i], "--zoom", &err) != MQ_EINVAL)
			fail_msg("\"%s\" was taken", cases[i]);
		assert_non_null(strstr(err.text, "--zoom"));
		assert_int_equal(mq_decimal_canonical(cases[i], "--zoom", &out, &err), MQ_EINVAL);
		assert_null(out);
		assert_int_equal(mpq_cmp_ui(q, 77, 1), 0);
	}
	mpq_clear(q);
}

static char *filled(const char *before, char c, size_t n, const char *after)
{
	char *text = malloc(strlen(before) + n + strlen(after) + 1);

	assert_non_null(text);
	strcpy(text, before);
	memset(text + strlen(before), c, n);
	strcpy(text + strlen(before) + n, after);
	return text;
}

static void expect_limit(char *text, bool taken, const char *limit)
{
	struct mq_error err = { "" };
	mpq_t q;
	char *canonical = NULL;

	mpq_init(q);
	assert_int_equal(mq_decimal_parse(q, text, "--view", &err), taken ? MQ_OK : MQ_EINVAL);
	if (!taken)
		assert_non_null(strstr(err.text, limit));
	assert_int_equal(mq_decimal_canonical(text, "--view", &canonical, &err),
	                 taken ? MQ_OK : MQ_EINVAL);
	if (taken) {
		/* The canonical text obeys the limits itself and has the same value. */
		mpq_t again;
		mpq_init(again);
		assert_int_equal(mq_decimal_parse(again, canonical, "--view", &err), MQ_OK);
		assert_true(mpq_equal(q, again));
		mpq_clear(again);
	}
	free(canonical);
	mpq_clear(q);
	free(text);
}

static void limits(void **state)
{
	(void)state;
	expect_limit(filled("", '7', 20000, ""), true, NULL);
	expect_limit(filled("", '7', 20001, ""), false, "20000");
	expect_limit(filled("0.", '7', 19999, ""), true, NULL);
	expect_limit(filled("0.", '7', 20000, ""), false, "20000");
	expect_limit(filled("", '0', 20001, ""), false, "20000");
	expect_limit(filled("1.", '7', 19999, "e-6"), true, NULL);
	expect_limit(filled("1.", '7', 19999, "e-100000"), true, NULL);
	expect_limit(strdup("1e100000"), true, NULL);
	expect_limit(strdup("1e100001"), false, "100000");
	expect_limit(strdup("-1e-100000"), true, NULL);
	expect_limit(strdup("1e-100001"), false, "100000");
	expect_limit(strdup("10e100000"), false, "100000");
	expect_limit(strdup("0.1e-100000"), false, "100000");
	expect_limit(strdup("0e100001"), false, "100000");
	expect_limit(filled("1e", '9', 100000, ""), false, "100000");
	expect_limit(filled("1e-", '9', 100000, ""), false, "100000");
	expect_limit(filled("1e", '0', 100000, "5"), true, NULL);
}

static void expect_double(const char *text)
{
	mpq_t q;

	mpq_init(q);
	assert_int_equal(mq_decimal_parse(q, text, "x", NULL), MQ_OK);
	double got = mq_rational_to_double(q), expected = strtod(text, NULL);
	if (memcmp(&got, &expected, sizeof(got)) && !(got == 0 && expected == 0))
		fail_msg("%s gives %a, not %a", text, got, expected);
	mpq_clear(q);
}

static void rounding_is_that_of_strtod(void **state)
{
	/* Ties, the border of subnormals, the smallest subnormal, half of it, overflow. */
	static const char *const edges[] = {
		"9007199254740993",
		"9007199254740995",
		"-9007199254740993",
		"0.1",
		"2.2250738585072014e-308",
		"2.2250738585072011e-308",
		"4.9406564584124654e-324",
		"2.4703282292062327e-324",
		"2.4703282292062328e-324",
		"7.4109846876186982e-324",
		"1.7976931348623157e308",
		"1.7976931348623158e308",
		"1.7976931348623159e308",
		"-1e400",
		"1e-400",
		"1e-99999",
	};
	char text[80];

	(void)state;
	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++)
		expect_double(edges[i]);
	srand(1);
	for (int i = 0; i < 20000; i++) {
		snprintf(text, sizeof(text), "%s%d.%09d%09de%d", rand() % 2 ? "-" : "", rand() % 10,
		         rand() % 1000000000, rand() % 1000000000, rand() % 660 - 340);
		expect_double(text);
	}
}

static void fractions_round_once(void **state)
{
	mpq_t q;

	(void)state;
	mpq_init(q);
	mpq_set_ui(q, 1, 3);
	assert_true(mq_rational_to_double(q) == 0x1.5555555555555p-2);
	/* 2^-1075 is a tie that goes to the even 0; anything more goes up. */
	mpq_set_ui(q, 1, 1);
	mpq_div_2exp(q, q, 1075);
	assert_true(mq_rational_to_double(q) == 0);
	mpz_mul_2exp(mpq_numref(q), mpq_numref(q), 100);
	mpz_add_ui(mpq_numref(q), mpq_numref(q), 1);
	mpz_mul_2exp(mpq_denref(q), mpq_denref(q), 100);
	mpq_canonicalize(q);
	assert_true(mq_rational_to_double(q) == 0x1p-1074);
	/* Rounding to 53 bits first, then to a subnormal, would give 0x1p-1073: 1.5 ulp less a bit.
	 */
	mpq_set_str(q, "3/2", 10);
	mpz_mul_2exp(mpq_numref(q), mpq_numref(q), 200);
	mpz_sub_ui(mpq_numref(q), mpq_numref(q), 1);
	mpz_mul_2exp(mpq_denref(q), mpq_denref(q), 200 + 1074);
	mpq_canonicalize(q);
	assert_true(mq_rational_to_double(q) == 0x1p-1074);
	mpq_clear(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_is_exact),
		cmocka_unit_test(canonical_texts),
		cmocka_unit_test(what_is_no_number_is_refused),
		cmocka_unit_test(limits),
		cmocka_unit_test(rounding_is_that_of_strtod),
		cmocka_unit_test(fractions_round_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
