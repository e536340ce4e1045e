/* test_strip: strips against zlib and the definition of the filters; the same bytes every time; and
 * damage. */
#include "tests/unit/image_util.h"

#include <zlib.h>

#include "src/image/strip_work.h"

static struct mq_error err;

static struct mq_strip_encoder *encoder_for(size_t filtered)
{
	struct mq_strip_encoder *e;

	assert_int_equal(mq_strip_encoder_open(filtered, &e, &err), MQ_OK);
	return e;
}

/* By the definition of Sub and Up (W3C PNG 9.2), one byte at a time. */
static void unfilter(const uint8_t *f, size_t row_bytes, uint32_t rows, unsigned channels,
                     uint8_t *out)
{
	uint32_t y;
	size_t x;

	for (y = 0; y < rows; y++, f += 1 + row_bytes) {
		assert_int_equal(f[0], y == 0 ? 1 : 2);
		for (x = 0; x < row_bytes; x++) {
			uint8_t from = 0;

			if (y > 0)
				from = out[(y - 1) * row_bytes + x];
			else if (x >= channels)
				from = out[x - channels];
			out[y * row_bytes + x] = (uint8_t)(f[1 + x] + from);
		}
	}
}

/* As png reads a strip back: its Adler-32 is part of it. */
static enum mq_status decode(struct mq_strip_encoder *e, uint8_t *bytes, size_t len, size_t row_bytes,
                             uint32_t rows, unsigned channels, bool last, uint32_t adler, uint8_t *pixels)
{
	const struct mq_strip_shape shape = { row_bytes, rows, channels, last };
	uint32_t found = 0;
	enum mq_status status = mq_strip_inflate(e, bytes, len, &shape, pixels, &found, &err);

	return status == MQ_OK && found != adler ? MQ_ECORRUPT : status;
}

/* Encodes, checks the result with zlib, and decodes. */
static void check_strip(uint32_t width, uint32_t rows, unsigned channels, int kind, bool last, bool small)
{
	size_t row_bytes = (size_t)width * channels, filtered = rows * (1 + row_bytes);
	size_t room = mq_strip_bound(filtered);
	struct mq_strip_encoder *e = encoder_for(filtered);
	uint8_t *pixels = util_picture(width, rows, channels, kind), *out = malloc(room);
	uint8_t *raw = malloc(filtered + 1), *back = malloc(row_bytes * rows);
	struct mq_strip_result r;
	z_stream z = { 0 };

	mq_strip_encoder_small(e, small);
	assert_int_equal(
		mq_strip_encode(e, pixels, row_bytes, rows, channels, last, out, room, &r, &err),
		MQ_OK);
	assert_int_equal(r.filtered, filtered);
	assert_true(r.bytes <= room);
	assert_int_equal(inflateInit2(&z, -15), Z_OK);
	z.next_in = out;
	z.avail_in = (uInt)r.bytes;
	z.next_out = raw;
	z.avail_out = (uInt)filtered + 1;
	assert_int_equal(inflate(&z, Z_SYNC_FLUSH), last ? Z_STREAM_END : Z_OK);
	assert_int_equal(z.avail_in, 0);
	assert_int_equal(z.total_out, filtered);
	if (!last) {
		assert_int_equal(z.data_type & 0xff, 128); /* between blocks, at a whole byte */
		assert_memory_equal(out + r.bytes - 4, "\0\0\xff\xff", 4);
	}
	inflateEnd(&z);
	assert_int_equal(r.adler, adler32(1, raw, (uInt)filtered));
	unfilter(raw, row_bytes, rows, channels, back);
	assert_memory_equal(back, pixels, row_bytes * rows);
	memset(back, 0xa5, row_bytes * rows);
	assert_int_equal(decode(e, out, r.bytes, row_bytes, rows, channels, last, r.adler, back), MQ_OK);
	assert_memory_equal(back, pixels, row_bytes * rows);
	assert_int_equal(decode(e, out, r.bytes, row_bytes, rows, channels, last, r.adler + 1, back),
	                 MQ_ECORRUPT);
	assert_int_equal(decode(e, out, r.bytes, row_bytes, rows, channels, !last, r.adler, back),
	                 MQ_ECORRUPT);
	mq_strip_encoder_close(e);
	free(pixels);
	free(out);
	free(raw);
	free(back);
}

static void test_shapes(void **state)
{
	static const struct {
		uint32_t width, rows;
	} shapes[] = {
		{ 1, 1 },  { 1, 2 },      { 2, 1 },      { 15, 3 },    { 16, 3 },     { 31, 2 },
		{ 33, 5 }, { 1, 100000 }, { 100000, 1 }, { 333, 500 }, { 700001, 1 }, { 1024, 341 },
	};
	size_t i;
	int kind;

	(void)state;
	for (i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		for (kind = 0; kind < 3; kind++) {
			check_strip(shapes[i].width, shapes[i].rows, 1, kind, i % 2, false);
			check_strip(shapes[i].width, shapes[i].rows, 3, kind, !(i % 2), false);
			check_strip(shapes[i].width, shapes[i].rows, 1, kind, i % 2, true);
			check_strip(shapes[i].width, shapes[i].rows, 3, kind, !(i % 2), true);
		}
}

/* The same strip gives the same bytes whatever lay between, wherever the buffers are, in whichever
 * encoder, and however much room there is. */
static void same_bytes(bool small)
{
	const size_t row_bytes = 999, rows = 700, filtered = rows * (1 + row_bytes);
	size_t room = mq_strip_bound(filtered);
	struct mq_strip_encoder *used = encoder_for(filtered + 12345),
				*fresh = encoder_for(filtered);
	uint8_t *pixels = util_picture(333, rows, 3, 2), *noise = util_picture(333, rows, 3, 1);
	uint8_t *first = malloc(room), *again = malloc(room + 5000),
		*moved = malloc(row_bytes * rows + 64);
	struct mq_strip_result a, b;
	unsigned shift;

	mq_strip_encoder_small(fresh, small);
	memcpy(noise, pixels, row_bytes * rows / 2);
	assert_int_equal(
		mq_strip_encode(fresh, pixels, row_bytes, rows, 3, false, first, room, &a, &err),
		MQ_OK);
	for (shift = 0; shift < 40; shift += 3) {
		mq_strip_encoder_small(used, shift % 4 == 0);
		assert_int_equal(mq_strip_encode(used, noise, row_bytes, rows - shift, 3, shift & 1,
		                                 again, room, &b, &err),
		                 MQ_OK);
		mq_strip_encoder_small(used, small);
		memcpy(moved + shift, pixels, row_bytes * rows);
		memset(again, 0xee, room + 5000);
		assert_int_equal(mq_strip_encode(used, moved + shift, row_bytes, rows, 3, false,
		                                 again + shift, room + 4000, &b, &err),
		                 MQ_OK);
		assert_int_equal(a.bytes, b.bytes);
		assert_int_equal(a.adler, b.adler);
		assert_memory_equal(first, again + shift, a.bytes);
	}
	mq_strip_encoder_close(used);
	mq_strip_encoder_close(fresh);
	free(pixels);
	free(noise);
	free(first);
	free(again);
	free(moved);
}

static void test_same_bytes(void **state)
{
	(void)state;
	same_bytes(false);
	same_bytes(true);
}

/* Damage is found, or was in bits that no decoder looks at and changes nothing. */
static void check_damaged(struct mq_strip_encoder *e, const uint8_t *bytes, size_t len, bool last,
                          uint32_t adler, const uint8_t *pixels, bool may_pass)
{
	uint8_t back[20 * 60], *exact = malloc(len + (last ? 0 : MQ_STRIP_TAIL)); /* so that reading past the end shows */
	enum mq_status status;

	assert_non_null(exact);
	memcpy(exact, bytes, len);
	status = decode(e, exact, len, 60, 20, 3, last, adler, back);
	free(exact);
	if (status == MQ_OK && may_pass)
		assert_memory_equal(back, pixels, sizeof back);
	else
		assert_int_equal(status, MQ_ECORRUPT);
}

static void test_damage(void **state)
{
	const size_t filtered = 20 * 61;
	struct mq_strip_encoder *e = encoder_for(filtered);
	uint8_t *pixels = util_picture(20, 20, 3, 2), out[16384];
	struct mq_strip_result r;
	size_t i;
	int bit, last;

	(void)state;
	for (last = 0; last < 2; last++) {
		assert_int_equal(
			mq_strip_encode(e, pixels, 60, 20, 3, last, out, sizeof out - 8, &r, &err),
			MQ_OK);
		for (i = 0; i < r.bytes; i++)
			for (bit = 0; bit < 8; bit++) {
				out[i] ^= (uint8_t)(1 << bit);
				check_damaged(e, out, r.bytes, last, r.adler, pixels, true);
				out[i] ^= (uint8_t)(1 << bit);
			}
		for (i = 1; i < r.bytes; i++)
			check_damaged(e, out, i, last, r.adler, pixels, false);
		for (i = 0; i < 256; i++) {
			out[r.bytes] = (uint8_t)i;
			check_damaged(e, out, r.bytes + 1, last, r.adler, pixels, false);
		}
	}
	mq_strip_encoder_close(e);
	free(pixels);
}

/* Strips of a picture, one behind the other, are one zlib stream. */
static void test_stream(void **state)
{
	const size_t row_bytes = 300, filtered = 10 * 301;
	struct mq_strip_encoder *e = encoder_for(filtered);
	uint8_t *pixels = util_picture(300, 30, 1, 2), stream[65536], raw[3 * 10 * 301];
	struct mq_strip_result r;
	size_t at = 0, i;
	z_stream z = { 0 };

	(void)state;
	for (i = 0; i < 3; i++) {
		assert_int_equal(mq_strip_encode(e, pixels + i * 10 * row_bytes, row_bytes, 10, 1,
		                                 i == 2, stream + at, sizeof stream - at, &r, &err),
		                 MQ_OK);
		at += r.bytes;
	}
	assert_int_equal(inflateInit2(&z, -15), Z_OK);
	z.next_in = stream;
	z.avail_in = (uInt)at;
	z.next_out = raw;
	z.avail_out = sizeof raw;
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.total_out, sizeof raw);
	assert_int_equal(z.avail_in, 0);
	inflateEnd(&z);
	mq_strip_encoder_close(e);
	free(pixels);
}

static void test_limits(void **state)
{
	struct mq_strip_encoder *e = encoder_for(100);
	uint8_t pixels[200] = { 0 }, out[8192];
	struct mq_strip_result r;

	(void)state;
	assert_int_equal(
		mq_strip_encode(e, pixels, 99, 1, 1, true, out, mq_strip_bound(100), &r, &err),
		MQ_OK);
	assert_int_equal(mq_strip_encode(e, pixels, 100, 1, 1, true, out, sizeof out, &r, &err),
	                 MQ_EINTERNAL);
	assert_int_equal(
		mq_strip_encode(e, pixels, 99, 1, 1, true, out, mq_strip_bound(100) - 1, &r, &err),
		MQ_EINTERNAL);
	mq_strip_encoder_close(e);
}

static void test_planes(void **state)
{
	const size_t n = 5000, bytes = n * 4;
	struct mq_strip_encoder *e = encoder_for(10);
	uint32_t *plane = malloc(bytes), *back = malloc(bytes);
	size_t room = mq_plane_bound(bytes), written, again, i;
	uint8_t *out = malloc(room), *second = malloc(room);

	(void)state;
	for (i = 0; i < n; i++)
		plane[i] = (uint32_t)(i * i / 1000 + (i % 50 == 0 ? 0xdeadbeef : 0));
	assert_int_equal(mq_plane_encode(e, plane, bytes, out, room, &written, &err), MQ_OK);
	assert_true(written < bytes / 2);
	assert_int_equal(mq_plane_decode(out, written, back, bytes, &err), MQ_OK);
	assert_memory_equal(plane, back, bytes);
	assert_int_equal(mq_plane_encode(e, back, 400, second, room, &again, &err), MQ_OK);
	assert_int_equal(mq_plane_encode(e, plane, bytes, second, room, &again, &err), MQ_OK);
	assert_int_equal(again, written);
	assert_memory_equal(out, second, written);
	assert_int_equal(mq_plane_decode(out, written, back, bytes - 4, &err), MQ_ECORRUPT);
	assert_int_equal(mq_plane_decode(out, written - 1, back, bytes, &err), MQ_ECORRUPT);
	assert_int_equal(mq_plane_decode(out, 0, back, bytes, &err), MQ_ECORRUPT);
	for (i = 0; i < written; i++) {
		out[i] ^= 0x80;
		if (mq_plane_decode(out, written, back, bytes, &err) == MQ_OK)
			assert_memory_equal(plane, back, bytes);
		out[i] ^= 0x80;
	}
	mq_strip_encoder_close(e);
	free(plane);
	free(back);
	free(out);
	free(second);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes), cmocka_unit_test(test_same_bytes),
		cmocka_unit_test(test_damage), cmocka_unit_test(test_stream),
		cmocka_unit_test(test_limits), cmocka_unit_test(test_planes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
