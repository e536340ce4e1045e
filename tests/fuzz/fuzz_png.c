/* fuzz_png: any file as a picture: for the text that it carries, and read back as the picture of a job.
 * CRCs are put right first, as far as chunks go; the first byte says whether to. */
#include <sys/mman.h>
#include <zlib.h>

#include "src/image/png.h"
#include "src/image/strip.h"
#include "src/pngtext.h"
#include "tests/fuzz/fuzz.h"

#define SIDE 8u

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void put_crcs_right(uint8_t *file, size_t size)
{
	size_t at = 8;

	while (at < size && size - at >= 12) {
		size_t bytes = get32(file + at);
		uint32_t crc;

		if (bytes > size - at - 12)
			return;
		crc = (uint32_t)crc32(0, file + at + 4, (uInt)bytes + 4);
		for (int i = 0; i < 4; i++)
			file[at + 8 + bytes + i] = (uint8_t)(crc >> (24 - 8 * i));
		at += bytes + 12;
	}
}

static void read_back(int fd, const char *text, unsigned channels)
{
	static struct mq_strip_encoder *work;
	const struct mq_png_header head = {SIDE, SIDE, channels, 11811, text};
	uint8_t pixels[SIDE * SIDE * 3];
	struct mq_png_reader *reader = NULL;
	struct mq_error err = {""};
	struct mq_layout layout;
	uint32_t adler = 0;

	if (!work)
		FUZZ_CHECK(mq_strip_encoder_open(SIDE * (1 + SIDE * 3), &work, &err) == MQ_OK);
	mq_layout_init(&layout, SIDE, SIDE, channels, false);
	if (mq_png_open(fd, &head, &layout, &reader, &err)) {
		FUZZ_CHECK(!reader && err.text[0]);
		return;
	}
	if (mq_png_strip(reader, work, 0, pixels, &adler, &err) == MQ_OK)
		fuzz_touch(pixels, (size_t)SIDE * SIDE * channels);
	mq_png_close(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct mq_error err = {""};
	char *text = NULL;
	uint8_t *file;

	if (fd < 0)
		fd = memfd_create("picture", MFD_CLOEXEC);
	FUZZ_CHECK(fd >= 0);
	if (size < 1)
		return 0;
	file = malloc(size);
	FUZZ_CHECK(file);
	memcpy(file, data + 1, size - 1);
	if (data[0] & 1)
		put_crcs_right(file, size - 1);
	fuzz_fill(fd, file, size - 1);
	if (mq_pngtext_find(file, size - 1, &text, &err) == MQ_OK)
		FUZZ_CHECK(strlen(text) < size);
	else
		FUZZ_CHECK(err.text[0] && !text);
	/* With the file's own text the head can be right. */
	read_back(fd, text ? text : "{}", data[0] & 2 ? 1 : 3);
	free(text);
	free(file);
	return 0;
}
