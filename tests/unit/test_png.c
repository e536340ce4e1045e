/* test_png: pictures made of strips, read by libpng's own reader; read back by png_read; and every bit
 * of one damaged. */
#include "tests/unit/image_util.h"

#include <openssl/sha.h>
#include <zlib.h>

#include "src/image/png.h"
#include "src/image/strip.h"

static struct mq_error err;
static const char job_text[] = "{\"palette\":\"ember\",\"name\":\"\xc3\xa9\"}";

static struct mq_layout small_layout(uint32_t width, uint32_t height, unsigned channels,
                                     uint32_t strip_rows)
{
	return (struct mq_layout){ .width = width,
		                   .height = height,
		                   .channels = channels,
		                   .strip_rows = strip_rows,
		                   .strips = (height + strip_rows - 1) / strip_rows };
}

static struct mq_strip_encoder *encoder_for(const struct mq_layout *l)
{
	struct mq_strip_encoder *e;

	assert_int_equal(mq_strip_encoder_open(l->strip_rows * (1 + (size_t)l->width * l->channels),
	                                       &e, &err),
	                 MQ_OK);
	return e;
}

static struct mq_png_header header_of(const struct mq_layout *l)
{
	return (struct mq_png_header){ l->width, l->height, l->channels, 11811, job_text };
}

/* Writes pixels to fd strip by strip; checks size and SHA-256. */
static void write_picture(int fd, const struct mq_layout *l, const uint8_t *pixels)
{
	const struct mq_png_header header = header_of(l);
	size_t row_bytes = (size_t)l->width * l->channels;
	size_t room = mq_strip_bound(l->strip_rows * (1 + row_bytes)), size;
	struct mq_strip_encoder *e = encoder_for(l);
	uint8_t *out = malloc(room), sha[32], found[32], *all;
	struct mq_strip_result r;
	struct mq_png_writer *w;
	uint64_t bytes, offset;
	uint32_t i;

	assert_int_equal(mq_png_create(fd, &header, &w, &err), MQ_OK);
	for (i = 0; i < l->strips; i++) {
		uint32_t row0 = i * l->strip_rows;
		uint32_t rows = l->height - row0 < l->strip_rows ? l->height - row0 : l->strip_rows;
		bool last = i == l->strips - 1;

		assert_int_equal(mq_strip_encode(e, pixels + row0 * row_bytes, row_bytes, rows,
		                                 l->channels, last, out, room, &r, &err),
		                 MQ_OK);
		assert_int_equal(
			mq_png_add(w, out, r.bytes, r.adler, r.filtered, last, &offset, &err),
			MQ_OK);
		if (i == 0)
			assert_int_equal(offset,
			                 8 + 25 + 13 + 21 + 12 + 12 + strlen(job_text) + 8 + 2);
	}
	assert_int_equal(mq_png_finish(w, &bytes, sha, &err), MQ_OK);
	all = util_read(fd, &size);
	assert_int_equal(size, bytes);
	SHA256(all, size, found);
	assert_memory_equal(sha, found, 32);
	mq_strip_encoder_close(e);
	free(all);
	free(out);
}

/* Reads all strips back, with their joined Adler-32; pixels may be NULL. */
static enum mq_status read_picture(int fd, const struct mq_layout *l, const uint8_t *pixels)
{
	const struct mq_png_header header = header_of(l);
	size_t row_bytes = (size_t)l->width * l->channels;
	struct mq_strip_encoder *e = encoder_for(l);
	uint8_t *back = malloc(l->strip_rows * row_bytes);
	struct mq_png_reader *reader = NULL;
	uint32_t i, adler = 1, part = 0;
	enum mq_status status = mq_png_open(fd, &header, l, &reader, &err);

	for (i = 0; i < l->strips && status == MQ_OK; i++) {
		uint32_t row0 = i * l->strip_rows;
		uint32_t rows = l->height - row0 < l->strip_rows ? l->height - row0 : l->strip_rows;

		status = mq_png_strip(reader, e, i, back, &part, &err);
		if (status == MQ_OK && pixels)
			assert_memory_equal(back, pixels + row0 * row_bytes, rows * row_bytes);
		adler = mq_adler_join(adler, part, rows * (1 + (uint64_t)row_bytes));
	}
	if (status == MQ_OK)
		assert_int_equal(adler, mq_png_adler(reader));
	if (reader)
		mq_png_close(reader);
	mq_strip_encoder_close(e);
	free(back);
	return status;
}

static void check_picture(const struct mq_layout *l, int kind)
{
	uint8_t *pixels = util_picture(l->width, l->height, l->channels, kind);
	struct util_png png;
	int fd = util_file();

	write_picture(fd, l, pixels);
	util_png_read(fd, &png);
	assert_int_equal(png.width, l->width);
	assert_int_equal(png.height, l->height);
	assert_int_equal(png.type, l->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB);
	assert_int_equal(png.intent, PNG_sRGB_INTENT_PERCEPTUAL);
	assert_true(png.ppm_x == 11811 && png.ppm_y == 11811 && png.unit == PNG_RESOLUTION_METER);
	assert_string_equal(png.text, job_text);
	assert_memory_equal(png.pixels, pixels, (size_t)l->width * l->height * l->channels);
	util_png_free(&png);
	assert_int_equal(read_picture(fd, l, pixels), MQ_OK);
	close(fd);
	free(pixels);
}

static void test_pictures(void **state)
{
	static const struct {
		uint32_t width, height, strip_rows;
	} sizes[] = {
		{ 1, 1, 1 },    { 7, 5, 2 },    { 64, 64, 64 },
		{ 33, 100, 7 }, { 100, 30, 1 }, { 600, 400, 90 },
	};
	size_t i;
	int kind;

	(void)state;
	for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (kind = 0; kind < 3; kind++) {
			struct mq_layout l = small_layout(sizes[i].width, sizes[i].height, 1,
			                                  sizes[i].strip_rows);

			check_picture(&l, kind);
			l.channels = 3;
			check_picture(&l, kind);
		}
}

/* Long and wide, also past libpng's default limit of 1,000,000 a side. */
static void test_extremes(void **state)
{
	static const struct {
		uint32_t width, height;
		unsigned channels;
	} sizes[] = {
		{ 1, 100000, 1 },
		{ 100000, 1, 3 },
		{ 1, 1200000, 1 },
		{ 1200000, 2, 3 },
	};
	struct mq_layout l;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		mq_layout_init(&l, sizes[i].width, sizes[i].height, sizes[i].channels, false);
		check_picture(&l, 2);
	}
}

static void put(int fd, const uint8_t *bytes, size_t n)
{
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(pwrite(fd, bytes, n, 0), n);
}

static void check_damage(unsigned channels)
{
	struct mq_layout l = small_layout(7, 9, channels, 4);
	uint8_t *pixels = util_picture(7, 9, channels, 2), *all;
	int fd = util_file(), bit;
	size_t size, i;

	write_picture(fd, &l, pixels);
	all = util_read(fd, &size);
	for (i = 0; i < size; i++)
		for (bit = 0; bit < 9; bit++) {
			uint8_t mask = bit < 8 ? (uint8_t)(1 << bit) : 0xff;

			all[i] ^= mask;
			put(fd, all, size);
			assert_int_equal(read_picture(fd, &l, NULL), MQ_ECORRUPT);
			all[i] ^= mask;
		}
	for (i = 0; i < size; i++) {
		put(fd, all, i);
		assert_int_equal(read_picture(fd, &l, NULL), MQ_ECORRUPT);
	}
	put(fd, all, size);
	assert_int_equal(read_picture(fd, &l, pixels), MQ_OK);
	all[size] = 0;
	put(fd, all, size + 1);
	assert_int_equal(read_picture(fd, &l, NULL), MQ_ECORRUPT);
	close(fd);
	free(all);
	free(pixels);
}

static void test_damage(void **state)
{
	(void)state;
	check_damage(1);
	check_damage(3);
}

/* A good file of another picture is not the one that was written. */
static void test_another(void **state)
{
	struct mq_layout l = small_layout(7, 9, 3, 4), other;
	uint8_t *pixels = util_picture(7, 9, 3, 2);
	struct mq_png_header header = header_of(&l);
	struct mq_png_reader *reader;
	int fd = util_file();

	(void)state;
	write_picture(fd, &l, pixels);
	other = small_layout(7, 8, 3, 4);
	assert_int_equal(read_picture(fd, &other, NULL), MQ_ECORRUPT);
	other = small_layout(7, 9, 3, 5);
	assert_int_equal(read_picture(fd, &other, NULL), MQ_ECORRUPT);
	header.job_text = "{\"palette\":\"ember\",\"name\":\"e\xcc\x81\"}";
	assert_int_equal(mq_png_open(fd, &header, &l, &reader, &err), MQ_ECORRUPT);
	header = header_of(&l);
	header.ppm = 3937;
	assert_int_equal(mq_png_open(fd, &header, &l, &reader, &err), MQ_ECORRUPT);
	close(fd);
	free(pixels);
}

static void test_adler_join(void **state)
{
	uint8_t *p = util_picture(100000, 1, 1, 1);
	size_t cut;

	(void)state;
	for (cut = 0; cut <= 100000; cut += 3333)
		assert_int_equal(mq_adler_join((uint32_t)adler32(1, p, (uInt)cut),
		                               (uint32_t)adler32(1, p + cut, (uInt)(100000 - cut)),
		                               100000 - cut),
		                 adler32(1, p, 100000));
	/* n zero bytes on the empty sum: a = 1, b = n mod 65521; past 32 bits */
	assert_int_equal(mq_adler_join(1, (uint32_t)((65521ull * 200000 + 5) % 65521 << 16 | 1),
	                               65521ull * 200000 + 5),
	                 5u << 16 | 1);
	assert_int_equal(mq_adler_join(2, 1, 65521ull * 200000 + 5), 5u << 16 | 2);
	free(p);
}

/* A full disk is MQ_ENOSPC, and strips that do not make up the picture are our own fault. */
static void test_failures(void **state)
{
	struct mq_layout l = small_layout(3, 4, 1, 2);
	struct mq_png_header header = header_of(&l);
	struct mq_png_writer *w;
	uint8_t sha[32], data[4] = { 0 };
	uint64_t bytes;
	int full = open("/dev/full", O_WRONLY), fd = util_file();

	(void)state;
	assert_true(full >= 0);
	assert_int_equal(mq_png_create(full, &header, &w, &err), MQ_OK);
	assert_int_equal(mq_png_add(w, data, 4, 1, 16, true, NULL, &err), MQ_OK);
	assert_int_equal(mq_png_finish(w, &bytes, sha, &err), MQ_ENOSPC);
	assert_int_equal(mq_png_create(fd, &header, &w, &err), MQ_OK);
	assert_int_equal(mq_png_add(w, data, 4, 1, 8, true, NULL, &err), MQ_EINTERNAL);
	assert_int_equal(mq_png_add(w, data, 4, 1, 17, true, NULL, &err), MQ_EINTERNAL);
	assert_int_equal(mq_png_add(w, data, 4, 1, 8, false, NULL, &err), MQ_OK);
	assert_int_equal(mq_png_finish(w, &bytes, sha, &err), MQ_EINTERNAL);
	header.width = 0;
	assert_int_equal(mq_png_create(fd, &header, &w, &err), MQ_EINTERNAL);
	close(full);
	close(fd);
}

static enum mq_status give_row(void *arg, uint32_t y, uint8_t *out, struct mq_error *e)
{
	if (y == 40)
		return mq_fail(e, MQ_ECANCELLED, "row 40");
	memcpy(out, (uint8_t *)arg + y * 90, 90);
	return MQ_OK;
}

static void test_rows(void **state)
{
	uint8_t *pixels = util_picture(30, 40, 3, 2);
	struct util_png png;
	int fd = util_file(), full = open("/dev/full", O_WRONLY);

	(void)state;
	assert_int_equal(mq_png_write_rows(fd, 30, 40, 3, 3937, give_row, pixels, &err), MQ_OK);
	util_png_read(fd, &png);
	assert_true(png.width == 30 && png.height == 40 && png.ppm_x == 3937 && !png.text);
	assert_memory_equal(png.pixels, pixels, 30 * 40 * 3);
	util_png_free(&png);
	assert_int_equal(mq_png_write_rows(fd, 30, 41, 3, 3937, give_row, pixels, &err),
	                 MQ_ECANCELLED);
	assert_int_equal(mq_png_write_rows(full, 30, 40, 3, 3937, give_row, pixels, &err),
	                 MQ_ENOSPC);
	close(full);
	close(fd);
	free(pixels);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pictures),   cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_damage),     cmocka_unit_test(test_another),
		cmocka_unit_test(test_adler_join), cmocka_unit_test(test_failures),
		cmocka_unit_test(test_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
