/* Strips and tiles cover every row exactly once, at every size; tiny pictures exhaustively. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "src/tile.h"

#define SIDE_MAX (1u << 24)

/* Tiles follow each other without gap or overlap, and keep the promises of the header. */
static void check_cover(uint32_t width, uint32_t height, unsigned channels, bool keep)
{
	struct mq_layout l;
	uint64_t rows = 0;
	uint32_t strip = 0;

	mq_layout_init(&l, width, height, channels, keep);
	assert_int_equal(l.pixel_bytes, channels + (keep ? 8 : 0));
	assert_true(l.strips >= 1 && l.tiles >= 1 && l.tiles <= MQ_TILES_MAX && l.tile_strips >= 1);
	/* A strip has at most MQ_STRIP_BYTES, or one row; one row more would not fit. */
	uint64_t row = (uint64_t)width * channels;
	assert_true(l.strip_rows == 1 || l.strip_rows * row <= MQ_STRIP_BYTES);
	assert_true((l.strip_rows + 1) * row > MQ_STRIP_BYTES);
	for (uint32_t i = 0; i < l.tiles; i++) {
		struct mq_span span = mq_layout_tile(&l, i);

		assert_int_equal(span.first, strip);
		assert_true(span.count >= 1 && span.count <= l.tile_strips);
		assert_int_equal(mq_strip_row0(&l, span.first), rows);
		rows += mq_span_rows(&l, span);
		strip += span.count;
		assert_int_equal(mq_span_bytes(&l, span),
		                 (uint64_t)mq_span_rows(&l, span) * width * l.pixel_bytes);
	}
	assert_int_equal(rows, height);
	assert_int_equal(strip, l.strips);
}

static void small_pictures_exhaustively(void **state)
{
	(void)state;
	for (uint32_t width = 1; width <= 12; width++)
		for (uint32_t height = 1; height <= 12; height++)
			for (unsigned kind = 0; kind < 4; kind++)
				check_cover(width, height, kind & 1 ? 3 : 1, kind & 2);
}

static void sizes_at_the_edges(void **state)
{
	static const uint32_t sides[] = { 1,       2,      46340,   46341,   65536,   100000,
		                          349525,  349526, 1048575, 1048576, 1048577, SIDE_MAX - 1,
		                          SIDE_MAX };
	const size_t n = sizeof(sides) / sizeof(sides[0]);

	(void)state;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			for (unsigned kind = 0; kind < 4; kind++)
				check_cover(sides[i], sides[j], kind & 1 ? 3 : 1, kind & 2);
}

static void the_reference_job(void **state)
{
	struct mq_layout l;

	(void)state;
	mq_layout_init(&l, 65536, 65536, 1, false);
	assert_int_equal(l.strip_rows, 16); /* 1 MiB / 64 KiB */
	assert_int_equal(l.strips, 4096);
	assert_int_equal(l.tile_strips, 16); /* 16 MiB of 1 MiB strips */
	assert_int_equal(l.tiles, 256);
	mq_layout_init(&l, 46341, 46341, 1, false);
	assert_int_equal(l.strip_rows, 22);
	assert_int_equal(l.strips, 2107);
	struct mq_span last = { 2106, 1 };
	assert_int_equal(mq_span_rows(&l, last), 46341 - 2106 * 22);
	/* A small picture: 1920 * 3 bytes a row, 182 rows a strip, six strips, a tile each. */
	mq_layout_init(&l, 1920, 1080, 3, false);
	assert_int_equal(l.strips, 6);
	assert_int_equal(l.tiles, 6);
}

static void sizes_are_64_bit(void **state)
{
	struct mq_layout l;

	(void)state;
	mq_layout_init(&l, SIDE_MAX, SIDE_MAX, 3, true);
	assert_int_equal(l.strips, SIDE_MAX);
	assert_int_equal(l.tiles, MQ_TILES_MAX);
	struct mq_span all = { 0, l.strips };
	assert_int_equal(mq_span_bytes(&l, all), 11ull << 48);
}

static void halves(void **state)
{
	struct mq_span upper, lower;

	(void)state;
	for (uint32_t count = 2; count < 40; count++) {
		mq_span_halve((struct mq_span){ 7, count }, &upper, &lower);
		assert_int_equal(upper.first, 7);
		assert_int_equal(lower.first, 7 + upper.count);
		assert_int_equal(upper.count + lower.count, count);
		assert_int_equal(upper.count - lower.count, count % 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_pictures_exhaustively),
		cmocka_unit_test(sizes_at_the_edges),
		cmocka_unit_test(the_reference_job),
		cmocka_unit_test(sizes_are_64_bit),
		cmocka_unit_test(halves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
