/* pngtext: walks the chunks at the beginning of a PNG (W3C PNG, 5.3 and 11.3.4.5). Called by the
 * client for `submit PICTURE.png` and --like; the file may be anything, and of any length. */
#include "src/pngtext.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define SIGNATURE "\x89PNG\r\n\x1a\n"
#define SIGNATURE_BYTES 8
#define CHUNK_BYTES 12 /* length, type and CRC around the data */

struct chunk {
	const uint8_t *type; /* 4 bytes, and the data behind them */
	const uint8_t *data;
	size_t len;
};

static uint32_t big_endian(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The chunk at *at, which moves behind it. False: it is not whole, or its CRC is wrong. */
static bool next_chunk(const uint8_t *bytes, size_t len, size_t *at, struct chunk *out)
{
	size_t left = len - *at;

	if (left < CHUNK_BYTES)
		return false;
	const uint8_t *p = bytes + *at;
	size_t data = big_endian(p);
	if (data > left - CHUNK_BYTES)
		return false;
	*out = (struct chunk){ p + 4, p + 8, data };
	*at += data + CHUNK_BYTES;
	return crc32(0, out->type, (uInt)(data + 4)) == big_endian(p + 8 + data);
}

static bool is_type(const struct chunk *c, const char *type)
{
	return !memcmp(c->type, type, 4);
}

/* Is c an iTXt chunk with our keyword? */
static bool is_ours(const struct chunk *c)
{
	return is_type(c, "iTXt") && c->len >= sizeof(MQ_PNGTEXT_KEYWORD) &&
	       !memcmp(c->data, MQ_PNGTEXT_KEYWORD, sizeof(MQ_PNGTEXT_KEYWORD));
}

/* keyword 0, compressed or not, method, language 0, translated keyword 0, text; ours is plain. */
static enum mq_status copy_text(const struct chunk *c, char **out, struct mq_error *err)
{
	const uint8_t *p = c->data + sizeof(MQ_PNGTEXT_KEYWORD);
	const uint8_t *end = c->data + c->len;

	if (end - p < 4 || p[0] != 0)
		goto damaged;
	p += 2;
	for (int field = 0; field < 2; field++) {
		p = memchr(p, 0, (size_t)(end - p));
		if (!p)
			goto damaged;
		p++;
	}
	size_t len = (size_t)(end - p);
	if (!len || memchr(p, 0, len))
		goto damaged;
	char *text = malloc(len + 1);
	if (!text)
		return mq_fail(err, MQ_ENOMEM_HOST,
		               "no memory for the %zu bytes of a picture's job", len);
	memcpy(text, p, len);
	text[len] = '\0';
	*out = text;
	return MQ_OK;
damaged:
	return mq_fail(err, MQ_EINVAL, "the job in this PNG is damaged");
}

enum mq_status mq_pngtext_find(const void *bytes, size_t len, char **out, struct mq_error *err)
{
	size_t at = SIGNATURE_BYTES;
	struct chunk c;

	if (len < SIGNATURE_BYTES || memcmp(bytes, SIGNATURE, SIGNATURE_BYTES))
		return mq_fail(err, MQ_EINVAL, "this is no PNG file");
	if (len > MQ_PNGTEXT_SCAN)
		len = MQ_PNGTEXT_SCAN;
	if (!next_chunk(bytes, len, &at, &c) || !is_type(&c, "IHDR"))
		return mq_fail(err, MQ_EINVAL, "this PNG is damaged: it has no proper IHDR");
	/* An IDAT of any length ends the search, so it need not be whole. */
	while (len - at < CHUNK_BYTES || memcmp((const uint8_t *)bytes + at + 4, "IDAT", 4)) {
		if (!next_chunk(bytes, len, &at, &c))
			return mq_fail(err, MQ_EINVAL,
			               "this PNG is damaged, or has more than %u bytes before "
			               "its picture",
			               MQ_PNGTEXT_SCAN);
		if (is_ours(&c))
			return copy_text(&c, out, err);
	}
	return mq_fail(err, MQ_EINVAL, "this PNG carries no mandelq job");
}

/* Reads at most max bytes from the beginning of path. */
static enum mq_status read_head(const char *path, uint8_t *bytes, size_t max, size_t *len,
                                struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	size_t got = 0;
	ssize_t n;

	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return mq_fail_errno(err, errno, "cannot open %s", path);
	do {
		n = read(fd, bytes + got, max - got);
		if (n > 0)
			got += (size_t)n;
	} while ((n > 0 && got < max) || (n < 0 && errno == EINTR));
	if (n < 0)
		status = mq_fail_errno(err, errno, "cannot read %s", path);
	else
		*len = got;
	close(fd); /* only read from */
	return status;
}

enum mq_status mq_pngtext_read(const char *path, char **out, struct mq_error *err)
{
	struct mq_error why;
	size_t len = 0;

	uint8_t *bytes = malloc(MQ_PNGTEXT_SCAN);
	if (!bytes)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory to read %s", path);
	enum mq_status status = read_head(path, bytes, MQ_PNGTEXT_SCAN, &len, err);
	if (!status) {
		status = mq_pngtext_find(bytes, len, out, &why);
		if (status)
			mq_fail(err, status, "%s: %s", path, why.text);
	}
	free(bytes);
	return status;
}
