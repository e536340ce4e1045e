/* The job in a picture: in a PNG that another program wrote, in ones made here, and in damaged
 * ones. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "src/pngtext.h"

/* 1 x 1, gray, written by Pillow: IHDR, tEXt, iTXt "mandelq", IDAT, IEND. */
static const uint8_t pillow[] = {
	0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
	0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00,
	0x00, 0x3a, 0x7e, 0x9b, 0x55, 0x00, 0x00, 0x00, 0x0a, 0x74, 0x45, 0x58, 0x74, 0x53,
	0x6f, 0x66, 0x74, 0x77, 0x61, 0x72, 0x65, 0x00, 0x78, 0x4a, 0x8d, 0xbf, 0xce, 0x00,
	0x00, 0x00, 0x17, 0x69, 0x54, 0x58, 0x74, 0x6d, 0x61, 0x6e, 0x64, 0x65, 0x6c, 0x71,
	0x00, 0x00, 0x00, 0x00, 0x00, 0x7b, 0x22, 0x77, 0x69, 0x64, 0x74, 0x68, 0x22, 0x3a,
	0x31, 0x7d, 0xf8, 0xf6, 0x13, 0x48, 0x00, 0x00, 0x00, 0x0a, 0x49, 0x44, 0x41, 0x54,
	0x78, 0x9c, 0x63, 0x60, 0x00, 0x00, 0x00, 0x02, 0x00, 0x01, 0x48, 0xaf, 0xa4, 0x71,
	0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
};
#define PILLOW_IDAT 0x5a /* where the length of IDAT stands */

struct png {
	uint8_t *bytes;
	size_t len;
};

static void add_word(struct png *png, size_t word)
{
	for (int shift = 24; shift >= 0; shift -= 8)
		png->bytes[png->len++] = (uint8_t)(word >> shift);
}

static void add_chunk(struct png *png, const char *type, const void *data, size_t len)
{
	png->bytes = realloc(png->bytes, png->len + len + 12);
	assert_non_null(png->bytes);
	add_word(png, len);
	uint8_t *begin = png->bytes + png->len;
	memcpy(begin, type, 4);
	if (len)
		memcpy(begin + 4, data, len);
	png->len += 4 + len;
	add_word(png, crc32(0, begin, (uInt)(4 + len)));
}

static struct png begin_png(void)
{
	static const uint8_t ihdr[13] = { 0, 0, 0, 1, 0, 0, 0, 1, 8 };
	struct png png = { malloc(8), 8 };

	assert_non_null(png.bytes);
	memcpy(png.bytes, "\x89PNG\r\n\x1a\n", 8);
	add_chunk(&png, "IHDR", ihdr, sizeof(ihdr));
	return png;
}

/* The text found in a PNG whose one iTXt chunk has this data; NULL: refused. */
static char *find_in(const void *itxt, size_t len)
{
	struct png png = begin_png();
	struct mq_error err = { "" };
	char *text = NULL;

	add_chunk(&png, "iTXt", itxt, len);
	add_chunk(&png, "IDAT", "xx", 2);
	enum mq_status status = mq_pngtext_find(png.bytes, png.len, &text, &err);
	assert_true(status == MQ_OK || (status == MQ_EINVAL && err.text[0] && !text));
	free(png.bytes);
	return text;
}

#define FIND_IN(literal) find_in(literal, sizeof(literal) - 1)

static void finds_what_another_program_wrote(void **state)
{
	char *text = NULL;

	(void)state;
	assert_int_equal(mq_pngtext_find(pillow, sizeof(pillow), &text, NULL), MQ_OK);
	assert_string_equal(text, "{\"width\":1}");
	free(text);
	/* What follows the text is of no interest. */
	assert_int_equal(mq_pngtext_find(pillow, PILLOW_IDAT, &text, NULL), MQ_OK);
	free(text);
}

static void reads_every_form_of_the_chunk(void **state)
{
	char *text;

	(void)state;
	text = FIND_IN("mandelq\0\0\0\0\0{}");
	assert_string_equal(text, "{}");
	free(text);
	text = FIND_IN("mandelq\0\0\0en\0Auftrag\0{\"a\":\"\xe2\x82\xac\"}");
	assert_string_equal(text, "{\"a\":\"\xe2\x82\xac\"}");
	free(text);
	assert_null(FIND_IN("mandelq\0\1\0\0\0{}")); /* compressed: not by us */
	assert_null(FIND_IN("mandelq\0\0\0\0\0"));
	assert_null(FIND_IN("mandelq\0\0\0\0"));
	assert_null(FIND_IN("mandelq\0\0\0en"));
	assert_null(FIND_IN("mandelq\0"));
	assert_null(FIND_IN("mandelq"));
	assert_null(FIND_IN("mandelqX\0\0\0\0\0{}"));
	assert_null(FIND_IN("Mandelq\0\0\0\0\0{}"));
	assert_null(FIND_IN("mandelq\0\0\0\0\0{\0}"));
	assert_null(FIND_IN(""));
}

static void text_behind_the_picture_is_not_read(void **state)
{
	struct png png = begin_png();
	char *text = NULL;
	struct mq_error err;

	(void)state;
	add_chunk(&png, "IDAT", "xx", 2);
	add_chunk(&png, "iTXt", "mandelq\0\0\0\0\0{}", 14);
	assert_int_equal(mq_pngtext_find(png.bytes, png.len, &text, &err), MQ_EINVAL);
	assert_non_null(strstr(err.text, "no mandelq job"));
	free(png.bytes);
}

static void the_search_is_bounded(void **state)
{
	struct png png = begin_png();
	uint8_t *filler = calloc(1, MQ_PNGTEXT_SCAN);
	char *text = NULL;
	struct mq_error err;

	(void)state;
	assert_non_null(filler);
	add_chunk(&png, "prVt", filler,
	          MQ_PNGTEXT_SCAN - 33 - 12 - 26); /* so that ours ends at the limit */
	add_chunk(&png, "iTXt", "mandelq\0\0\0\0\0{}", 14);
	assert_int_equal(png.len, MQ_PNGTEXT_SCAN);
	add_chunk(&png, "IDAT", "xx", 2);
	assert_int_equal(mq_pngtext_find(png.bytes, png.len, &text, &err), MQ_OK);
	free(text);
	text = NULL;
	free(png.bytes);
	png = begin_png();
	add_chunk(&png, "prVt", filler, MQ_PNGTEXT_SCAN - 33 - 12 - 25);
	add_chunk(&png, "iTXt", "mandelq\0\0\0\0\0{}", 14);
	add_chunk(&png, "IDAT", "xx", 2);
	assert_int_equal(mq_pngtext_find(png.bytes, png.len, &text, &err), MQ_EINVAL);
	assert_non_null(strstr(err.text, "1048576"));
	free(png.bytes);
	free(filler);
}

/* Every byte up to the end of the text damaged in turn, and every length: nothing wrong comes. */
static void damage_is_noticed(void **state)
{
	uint8_t bytes[sizeof(pillow)];
	char *text = NULL;

	(void)state;
	for (size_t i = 0; i < PILLOW_IDAT; i++) {
		memcpy(bytes, pillow, sizeof(bytes));
		bytes[i] ^= 0x01;
		assert_int_equal(mq_pngtext_find(bytes, sizeof(bytes), &text, NULL), MQ_EINVAL);
	}
	for (size_t len = 0; len < PILLOW_IDAT; len++) {
		uint8_t *part = malloc(len ? len : 1); /* so that reading past the end is noticed */
		assert_non_null(part);
		memcpy(part, pillow, len);
		assert_int_equal(mq_pngtext_find(part, len, &text, NULL), MQ_EINVAL);
		free(part);
	}
	assert_null(text);
}

static void reads_files(void **state)
{
	char path[] = "test-pngtext-XXXXXX";
	struct mq_error err;
	char *text = NULL;

	(void)state;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, pillow, sizeof(pillow)), sizeof(pillow));
	assert_int_equal(mq_pngtext_read(path, &text, &err), MQ_OK);
	assert_string_equal(text, "{\"width\":1}");
	free(text);
	text = NULL;
	assert_int_equal(ftruncate(fd, 4), 0);
	assert_int_equal(mq_pngtext_read(path, &text, &err), MQ_EINVAL);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mq_pngtext_read(path, &text, &err), MQ_ENOENT);
	assert_non_null(strstr(err.text, path));
	assert_int_equal(mq_pngtext_read(".", &text, &err), MQ_EIO);
	assert_null(text);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_another_program_wrote),
		cmocka_unit_test(reads_every_form_of_the_chunk),
		cmocka_unit_test(text_behind_the_picture_is_not_read),
		cmocka_unit_test(the_search_is_bounded),
		cmocka_unit_test(damage_is_noticed),
		cmocka_unit_test(reads_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
