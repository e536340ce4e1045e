/* image_util: what the image tests share: repeatable bytes, pictures, a directory of their own, and a
 * PNG read by libpng's own reader. */
#ifndef MQ_TEST_IMAGE_UTIL_H
#define MQ_TEST_IMAGE_UTIL_H

#include <fcntl.h>
#include <png.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h> /* needs those above */

static inline uint32_t util_random(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 32);
}

/* Kinds of pictures: 0 flat, 1 noise, 2 smooth with a flat part, like an escape-time picture. */
static inline uint8_t *util_picture(uint32_t width, uint32_t rows, unsigned channels, int kind)
{
	size_t n = (size_t)width * rows * channels, i;
	uint8_t *p = malloc(n);
	uint64_t state = 42;

	assert_non_null(p);
	for (i = 0; i < n; i++) {
		size_t x = i / channels % width, y = i / channels / width;

		if (kind == 0)
			p[i] = 7;
		else if (kind == 1)
			p[i] = (uint8_t)util_random(&state);
		else
			p[i] = (uint8_t)(x > width / 2
			                         ? 0
			                         : (x * x / 97 + y * y / 31 + i % channels * 40) /
			                                   16);
	}
	return p;
}

/* An empty directory below TMPDIR. */
static inline int util_dir(char path[128])
{
	const char *base = getenv("TMPDIR");
	int fd;

	snprintf(path, 128, "%s/mq-image-XXXXXX", base && strlen(base) < 64 ? base : "/tmp");
	assert_non_null(mkdtemp(path));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/* A file that nobody else sees. */
static inline int util_file(void)
{
	char path[128];
	int dir = util_dir(path),
	    fd = openat(dir, "f", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(unlinkat(dir, "f", 0), 0);
	close(dir);
	assert_int_equal(rmdir(path), 0);
	return fd;
}

static inline uint8_t *util_read(int fd, size_t *bytes)
{
	struct stat st;
	uint8_t *p;

	assert_int_equal(fstat(fd, &st), 0);
	p = malloc((size_t)st.st_size + 1);
	assert_non_null(p);
	assert_int_equal(pread(fd, p, (size_t)st.st_size, 0), st.st_size);
	*bytes = (size_t)st.st_size;
	return p;
}

struct util_png {
	uint32_t width, height, ppm_x, ppm_y;
	int type, intent, unit;
	char *text;
	uint8_t *pixels;
};

/* Reads a whole PNG with libpng; any error or warning of libpng fails the test. */
static inline void util_png_fail(png_structp png, png_const_charp text)
{
	(void)png;
	fail_msg("libpng: %s", text);
}

static inline void util_png_read(int fd, struct util_png *out)
{
	png_structp png =
		png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, util_png_fail, util_png_fail);
	png_infop info = png_create_info_struct(png);
	png_textp texts;
	size_t row_bytes;
	uint32_t y;
	int depth, count, copy = dup(fd);
	FILE *f;

	memset(out, 0, sizeof *out);
	assert_int_equal(lseek(copy, 0, SEEK_SET), 0);
	f = fdopen(copy, "rb");
	assert_non_null(f);
	png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
	png_init_io(png, f);
	png_read_info(png, info);
	png_get_IHDR(png, info, &out->width, &out->height, &depth, &out->type, NULL, NULL, NULL);
	assert_int_equal(depth, 8);
	assert_int_equal(png_get_sRGB(png, info, &out->intent), PNG_INFO_sRGB);
	assert_int_equal(png_get_pHYs(png, info, &out->ppm_x, &out->ppm_y, &out->unit),
	                 PNG_INFO_pHYs);
	row_bytes = png_get_rowbytes(png, info);
	out->pixels = malloc(row_bytes * out->height);
	assert_non_null(out->pixels);
	for (y = 0; y < out->height; y++)
		png_read_row(png, out->pixels + y * row_bytes, NULL);
	png_read_end(png, info);
	count = png_get_text(png, info, &texts, NULL);
	if (count) {
		assert_int_equal(count, 1);
		assert_string_equal(texts[0].key, "mandelq");
		assert_int_equal(texts[0].compression, PNG_ITXT_COMPRESSION_NONE);
		out->text = strdup(texts[0].text);
	}
	assert_int_equal(fgetc(f), EOF);
	png_destroy_read_struct(&png, &info, NULL);
	fclose(f);
}

static inline void util_png_free(struct util_png *png)
{
	free(png->text);
	free(png->pixels);
}

#endif
