/* test_palette: the curves against IEC 61966-2-1, the gradients against their stops and the circle. */
#include "tests/unit/image_util.h"

#include <math.h>

#include "src/image/palette.h"

static struct mq_shade shade;

static struct mq_job job_of(enum mq_palette palette)
{
	static char period[] = "40", offset[] = "0";

	return (struct mq_job){ .palette = palette, .period = period, .offset = offset };
}

static void make(enum mq_palette palette)
{
	struct mq_job job = job_of(palette);
	struct mq_error err;

	if (palette == MQ_PALETTE_GRAY)
		job.period = job.offset = NULL;
	assert_int_equal(mq_palette_shade(&job, &shade, &err), MQ_OK);
}

static double to_linear(unsigned v)
{
	double s = v / 255.0;

	return s <= 0.04045 ? s / 12.92 : pow((s + 0.055) / 1.055, 2.4);
}

static void test_decode(void **state)
{
	unsigned v;

	(void)state;
	make(MQ_PALETTE_EMBER);
	for (v = 0; v < 256; v++)
		assert_true(fabs(shade.decode[v] - 65535 * to_linear(v)) <= 0.5 + 1e-6);
}

static void test_encode(void **state)
{
	unsigned v, linear;

	(void)state;
	make(MQ_PALETTE_GRAY);
	for (v = 0; v < 256; v++)
		assert_int_equal(shade.encode[shade.decode[v]], v);
	for (linear = 0; linear < 65536; linear++) {
		v = shade.encode[linear];
		/* No neighbour is nearer. */
		if (v > 0)
			assert_true(abs((int)linear - shade.decode[v]) <=
			            abs((int)linear - shade.decode[v - 1]));
		if (v < 255)
			assert_true(abs((int)linear - shade.decode[v]) <=
			            abs((int)linear - shade.decode[v + 1]));
	}
}

static int channel(uint32_t colour, int c)
{
	return (int)(colour >> (8 * c) & 0xff);
}

/* As a gradient on a circle must be: no jump anywhere, not at its end either, and from dark to light. */
static void test_gradients(void **state)
{
	enum mq_palette palette;
	unsigned i;
	int c;

	(void)state;
	for (palette = MQ_PALETTE_EMBER; palette < MQ_PALETTE_COUNT; palette++) {
		double darkest = 1, lightest = 0;

		make(palette);
		assert_int_equal(shade.channels, 3);
		for (i = 0; i < MQ_LUT_SIZE; i++) {
			uint32_t a = shade.lut[i], b = shade.lut[(i + 1) % MQ_LUT_SIZE];
			double y = 0.2126 * to_linear(a & 0xff) +
			           0.7152 * to_linear(a >> 8 & 0xff) + 0.0722 * to_linear(a >> 16);

			assert_true(a >> 24 == 0);
			for (c = 0; c < 3; c++)
				assert_true(abs(channel(a, c) - channel(b, c)) <= 2);
			darkest = fmin(darkest, y);
			lightest = fmax(lightest, y);
		}
		assert_true(darkest < 0.03);
		assert_true(lightest > 0.75);
	}
}

static void test_differ(void **state)
{
	static uint32_t all[MQ_PALETTE_COUNT][MQ_LUT_SIZE];
	unsigned a, b;

	(void)state;
	for (a = MQ_PALETTE_EMBER; a < MQ_PALETTE_COUNT; a++) {
		make(a);
		memcpy(all[a], shade.lut, sizeof all[a]);
		for (b = MQ_PALETTE_EMBER; b < a; b++)
			assert_memory_not_equal(all[a], all[b], sizeof all[a]);
	}
}

/* The colours that the stops were chosen as, red in the low byte. */
static void test_stops(void **state)
{
	static const struct {
		enum mq_palette palette;
		double at;
		int rgb[3];
	} stops[] = {
		{ MQ_PALETTE_EMBER, 0, { 0x07, 0x06, 0x0f } },
		{ MQ_PALETTE_EMBER, 0.40, { 0xdd, 0x4a, 0x16 } },
		{ MQ_PALETTE_EMBER, 0.62, { 0xff, 0xf2, 0xd2 } },
		{ MQ_PALETTE_OCEAN, 0.32, { 0x0c, 0x7f, 0xa6 } },
		{ MQ_PALETTE_PORCELAIN, 0.46, { 0x1f, 0x4a, 0x9b } },
		{ MQ_PALETTE_SPECTRUM, 0.60, { 0x5f, 0xd3, 0x6a } },
	};
	size_t i;
	int c;

	(void)state;
	for (i = 0; i < sizeof stops / sizeof stops[0]; i++) {
		make(stops[i].palette);
		for (c = 0; c < 3; c++)
			assert_true(
				abs(channel(shade.lut[(unsigned)(stops[i].at * MQ_LUT_SIZE)], c) -
			            stops[i].rgb[c]) <= 2);
	}
}

static void test_settings(void **state)
{
	char period[] = "0.1", offset[] = "0.25", third[] = "3", zero[] = "0";
	struct mq_job job = job_of(MQ_PALETTE_EMBER);
	struct mq_error err;

	(void)state;
	job.period = period;
	job.offset = offset;
	job.inside = 0x123456;
	assert_int_equal(mq_palette_shade(&job, &shade, &err), MQ_OK);
	assert_true(shade.inv_period == 10.0); /* 1/0.1 exactly, not 1 / (double)0.1 by luck */
	assert_true(shade.offset == 0.25);
	assert_int_equal(shade.inside, 0x563412);
	job.period = third;
	assert_int_equal(mq_palette_shade(&job, &shade, &err), MQ_OK);
	assert_true(shade.inv_period == 1.0 / 3.0);
	job.period = zero;
	assert_int_equal(mq_palette_shade(&job, &shade, &err), MQ_EINVAL);
}

static void test_gray(void **state)
{
	(void)state;
	make(MQ_PALETTE_GRAY);
	assert_int_equal(shade.channels, 1);
	assert_int_equal(shade.encode[65535], 255);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decode),    cmocka_unit_test(test_encode),
		cmocka_unit_test(test_gradients), cmocka_unit_test(test_differ),
		cmocka_unit_test(test_stops),     cmocka_unit_test(test_settings),
		cmocka_unit_test(test_gray),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
