/* Tests of client/print.h. The expected sizes are worked out by hand: centimetres / 2.54 * dots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "client/print.h"

static void sizes_on_paper(void **state)
{
	static const struct {
		const char *text;
		uint32_t width, height, ppm;
	} good[] = {
		{ "90x60cm@300", 10630, 7087, 11811 }, /* 10629.92, 7086.61; 11811.02 */
		{ "900x600mm@300", 10630, 7087, 11811 },
		{ "90x60cm", 10630, 7087, 11811 },
		{ "36x24in@300", 10800, 7200, 11811 },
		{ "29.7x42cm@150", 1754, 2480, 5906 }, /* 1753.94, 2480.31; 5905.51 */
		{ "2.54x5.08cm@1", 1, 2, 39 },
		{ "0.5x1in@72.5", 36, 73, 2854 }, /* 36.25, 72.5 (away from 0); 2854.33 */
		{ "1x1in@25400", 25400, 25400, 1000000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		struct mq_print print = { 0 };

		assert_int_equal(mq_print_parse(good[i].text, &print, NULL), MQ_OK);
		assert_int_equal(print.width, good[i].width);
		assert_int_equal(print.height, good[i].height);
		assert_int_equal(print.ppm, good[i].ppm);
	}
}

static void mistakes_name_print(void **state)
{
	static const char *const bad[] = {
		"",
		"90cm",
		"90x60",
		"x60cm",
		"90xcm",
		"90x60km",
		"90x60cm@",
		"90x60cm@300dpi",
		"-90x60cm",
		"90x-60cm",
		"1e2x1cm",
		"90x60cm@0",
		"90x60cm@25401",
		"0x60cm",
		"0.001x60cm",
		"nanx1cm",
		"1..5x1cm",
		".5x1cm",
		"60x1in@1000000",
		"1000000x1in@300",
		"90 x 60cm",
		"1234567890123456x1cm",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct mq_print print = { 0 };
		struct mq_error err = { "" };

		assert_int_equal(mq_print_parse(bad[i], &print, &err), MQ_EINVAL);
		assert_non_null(strstr(err.text, "--print="));
	}
}

static void sizes_in_pixels(void **state)
{
	static const char *const bad[] = {
		"",      "0",     "-1",  "3x",       "x3",
		"3x0",   "3x4x5", "1e3", "16777217", "1x99999999999999999999",
		"3 x 4", "3X4",   "nan"
	};
	struct mq_print print = { .ppm = 7 };
	struct mq_error err;

	(void)state;
	assert_int_equal(mq_print_parse_size("16777216", &print, NULL), MQ_OK);
	assert_int_equal(print.width, 16777216);
	assert_int_equal(print.height, 16777216);
	assert_int_equal(mq_print_parse_size("1920x1080", &print, NULL), MQ_OK);
	assert_int_equal(print.width, 1920);
	assert_int_equal(print.height, 1080);
	assert_int_equal(print.ppm, 7);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(mq_print_parse_size(bad[i], &print, &err), MQ_EINVAL);
		assert_non_null(strstr(err.text, "--size="));
		assert_non_null(strstr(err.text, "16777216"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_on_paper),
		cmocka_unit_test(mistakes_name_print),
		cmocka_unit_test(sizes_in_pixels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
