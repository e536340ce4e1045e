/* test_preview: previews against means worked out from the definition with pow(). */
#include "tests/unit/image_util.h"

#include <math.h>
#include <pthread.h>

#include "src/image/palette.h"
#include "src/image/preview.h"

static struct mq_error err;
static struct mq_shade shade;

static int make_shade(void **state)
{
	struct mq_job job = { .palette = MQ_PALETTE_GRAY };

	(void)state;
	return mq_palette_shade(&job, &shade, &err);
}

struct part {
	struct mq_preview *preview;
	const uint8_t *pixels;
	uint32_t width, height, rows, first, step;
	unsigned channels;
};

/* Adds every step-th strip of `rows` rows, the last ones first. */
static void *add_part(void *arg)
{
	const struct part *p = arg;
	uint32_t strips = (p->height + p->rows - 1) / p->rows, i;

	for (i = strips; i-- > 0;) {
		uint32_t row0 = i * p->rows,
			 rows = p->height - row0 < p->rows ? p->height - row0 : p->rows;

		if (i % p->step == p->first)
			mq_preview_add(p->preview, row0, rows,
			               p->pixels + (size_t)row0 * p->width * p->channels);
	}
	return NULL;
}

static void make(const uint8_t *pixels, uint32_t width, uint32_t height, unsigned channels,
                 uint32_t rows, struct util_png *out)
{
	struct mq_preview *preview;
	pthread_t thread[3];
	struct part part[3];
	uint64_t bytes;
	size_t size;
	int fd = util_file();
	unsigned i;

	assert_int_equal(mq_preview_open(width, height, channels, &shade, &preview, &err), MQ_OK);
	for (i = 0; i < 3; i++) {
		part[i] = (struct part){ preview, pixels, width, height, rows, i, 3, channels };
		assert_int_equal(pthread_create(&thread[i], NULL, add_part, &part[i]), 0);
	}
	for (i = 0; i < 3; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	assert_int_equal(mq_preview_write(preview, fd, 11811, &bytes, &err), MQ_OK);
	free(util_read(fd, &size));
	assert_int_equal(size, bytes);
	util_png_read(fd, out);
	mq_preview_close(preview);
	close(fd);
}

static void test_identity(void **state)
{
	uint8_t *pixels = util_picture(50, 40, 3, 1);
	struct util_png png;

	(void)state;
	make(pixels, 50, 40, 3, 7, &png);
	assert_true(png.width == 50 && png.height == 40);
	assert_memory_equal(png.pixels, pixels, 50 * 40 * 3);
	util_png_free(&png);
	free(pixels);
}

static double to_linear(unsigned v)
{
	double s = v / 255.0;

	return s <= 0.04045 ? s / 12.92 : pow((s + 0.055) / 1.055, 2.4);
}

/* No other byte is nearer to a linear value, but for the roundings on the way: of the
 * samples, their mean and the middle between two bytes, half a 65535th each, on both sides. */
static void assert_nearest(uint8_t v, double linear)
{
	double off = fabs(to_linear(v) - linear), slack = 3.0 / 65535;

	assert_true(v == 0 || off <= fabs(to_linear(v - 1u) - linear) + slack);
	assert_true(v == 255 || off <= fabs(to_linear(v + 1u) - linear) + slack);
}

/* Blocks of at most 4 x 4 pixels: the mean is that of all pixels. */
static void check_mean(uint32_t width, uint32_t height, unsigned channels, uint32_t f)
{
	uint8_t *pixels = util_picture(width, height, channels, 1);
	struct util_png png;
	uint32_t x, y, i, j;
	unsigned c;

	make(pixels, width, height, channels, 5, &png);
	assert_int_equal(png.width, (width + f - 1) / f);
	assert_int_equal(png.height, (height + f - 1) / f);
	for (y = 0; y < png.height; y++)
		for (x = 0; x < png.width; x++)
			for (c = 0; c < channels; c++) {
				double sum = 0, n = 0;

				for (j = y * f; j < (y + 1) * f && j < height; j++)
					for (i = x * f; i < (x + 1) * f && i < width; i++, n++)
						sum += to_linear(
							pixels[((size_t)j * width + i) * channels +
						               c]);
				assert_nearest(
					png.pixels[((size_t)y * png.width + x) * channels + c],
					sum / n);
			}
	util_png_free(&png);
	free(pixels);
}

static void test_means(void **state)
{
	(void)state;
	check_mean(2049, 9, 1, 2);
	check_mean(11, 4097, 3, 3);
	check_mean(8191, 6, 1, 4);
}

/* Larger blocks: 16 samples, evenly spread, all within the block; at the edge those that there are. */
static void test_large_blocks(void **state)
{
	const uint32_t width = 2048 * 8 + 1, height = 20, f = 9;
	uint8_t *pixels = util_picture(width, height, 1, 0);
	struct util_png png;
	uint32_t x, y;

	(void)state;
	for (y = 0; y < height; y++)
		for (x = 0; x < width; x++)
			pixels[(size_t)y * width + x] = (uint8_t)(x / f * 7 + y / f * 50);
	make(pixels, width, height, 1, 1, &png);
	assert_true(png.width == (width + f - 1) / f && png.height == 3);
	for (y = 0; y < png.height; y++)
		for (x = 0; x < png.width; x++)
			assert_int_equal(png.pixels[y * png.width + x], (uint8_t)(x * 7 + y * 50));
	util_png_free(&png);
	/* Half of every block white: half of the samples, whose mean is (4*4*65535/2)/16. */
	for (y = 0; y < height; y++)
		for (x = 0; x < width; x++)
			pixels[(size_t)y * width + x] = x % 9 < 4 ? 255 : 0;
	make(pixels, width, 18, 1, 4, &png);
	assert_int_equal(png.pixels[0], 188); /* sRGB of linear 1/2 is 187.5 */
	util_png_free(&png);
	free(pixels);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identity),
		cmocka_unit_test(test_means),
		cmocka_unit_test(test_large_blocks),
	};

	return cmocka_run_group_tests(tests, make_shade, NULL);
}
