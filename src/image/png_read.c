/* png_read: the reading half of png.h: proves that a finished picture lies on disk as it must.
 *
 * It knows the format by itself, without libpng, so that it also checks what libpng wrote: every byte
 * of the file is either compared with the byte that must be there or covered by a CRC-32. */
#include "config.h"

#include "src/image/png.h"

#include <isa-l/crc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "src/alive.h"
#include "src/failpoint.h"
#include "src/image/sink.h"
#include "src/image/strip.h"
#include "src/image/strip_work.h"
#include "src/pngtext.h"

#define CHUNK_BYTES 12u /* length, type, CRC */
#define ZLIB_HEADER 2u
#define ZLIB_ADLER 4u

struct idat {
	uint64_t offset; /* of its data */
	uint32_t bytes;
};

struct mq_png_reader {
	int fd;
	struct mq_layout layout;
	struct idat *idat; /* one a strip */
	uint32_t adler;
};

static void put32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static uint32_t get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Appends a chunk and returns the byte behind it. */
static uint8_t *put_chunk(uint8_t *p, const char type[4], const void *data, uint32_t bytes)
{
	put32(p, bytes);
	memcpy(p + 4, type, 4);
	if (bytes)
		memcpy(p + 8, data, bytes);
	put32(p + 8 + bytes, crc32_gzip_refl(0, p + 4, bytes + 4ull));
	return p + CHUNK_BYTES + bytes;
}

/* All that must lie before the first IDAT (W3C PNG, 5 and 11); NULL when memory is out. */
static uint8_t *make_head(const struct mq_png_header *h, size_t *bytes)
{
	static const uint8_t signature[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
	/* keyword, compression flag and method, language, translated keyword */
	static const char itxt_head[] = MQ_PNGTEXT_KEYWORD "\0\0\0\0";
	size_t text = strlen(h->job_text), itxt = sizeof itxt_head + text;
	uint8_t *head = itxt < INT32_MAX ? malloc(8 + 25 + 13 + 21 + CHUNK_BYTES + itxt) : NULL;
	uint8_t ihdr[13] = { 0 }, srgb = 0, phys[9], *p, *joined = head ? malloc(itxt) : NULL;

	if (!joined) {
		free(head);
		return NULL;
	}
	put32(ihdr, h->width);
	put32(ihdr + 4, h->height);
	ihdr[8] = 8;
	ihdr[9] = h->channels == 1 ? 0 : 2;
	put32(phys, h->ppm);
	put32(phys + 4, h->ppm);
	phys[8] = 1;
	memcpy(joined, itxt_head, sizeof itxt_head);
	memcpy(joined + sizeof itxt_head, h->job_text, text);
	memcpy(head, signature, sizeof signature);
	p = put_chunk(head + sizeof signature, "IHDR", ihdr, sizeof ihdr);
	p = put_chunk(p, "sRGB", &srgb, 1);
	p = put_chunk(p, "pHYs", phys, sizeof phys);
	p = put_chunk(p, "iTXt", joined, (uint32_t)itxt);
	free(joined);
	*bytes = (size_t)(p - head);
	return head;
}

static enum mq_status read_at(int fd, void *out, size_t bytes, uint64_t offset,
                              struct mq_error *err)
{
	int error = mq_failpoint("png-read");

	if (!error)
		error = mq_read_at(fd, out, bytes, offset);
	if (error < 0)
		return mq_fail(err, MQ_ECORRUPT, "the picture's file ends before byte %llu",
		               (unsigned long long)(offset + bytes));
	if (error)
		return mq_fail_errno(err, error, "cannot read the picture back");
	return MQ_OK;
}

/* Whether the file has these bytes at *offset; moves *offset past them. */
static enum mq_status expect(int fd, const uint8_t *wanted, size_t bytes, uint64_t *offset,
                             const char *what, struct mq_error *err)
{
	uint8_t *found = malloc(bytes);
	enum mq_status status;

	if (!found)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory to read a PNG back (%zu bytes)",
		               bytes);
	status = read_at(fd, found, bytes, *offset, err);
	if (status == MQ_OK && memcmp(found, wanted, bytes) != 0)
		status = mq_fail(err, MQ_ECORRUPT,
		                 "the picture's file has another %s than was written", what);
	*offset += bytes;
	free(found);
	return status;
}

static void strip_shape(const struct mq_png_reader *reader, uint32_t index,
                        struct mq_strip_shape *shape)
{
	const struct mq_span span = { index, 1 };

	shape->row_bytes = (size_t)reader->layout.width * reader->layout.channels;
	shape->rows = mq_span_rows(&reader->layout, span);
	shape->channels = reader->layout.channels;
	shape->last = index == reader->layout.strips - 1;
}

/* What a strip's IDAT has besides the strip. */
static uint32_t wrapping(const struct mq_strip_shape *shape, uint32_t index)
{
	return (index == 0 ? ZLIB_HEADER : 0) + (shape->last ? ZLIB_ADLER : 0);
}

static enum mq_status walk_idats(struct mq_png_reader *reader, uint64_t *offset,
                                 struct mq_error *err)
{
	struct mq_strip_shape shape;
	enum mq_status status;
	uint8_t chunk[8];
	uint32_t i, bytes, extra;

	for (i = 0; i < reader->layout.strips; i++) {
		mq_alive();
		strip_shape(reader, i, &shape);
		status = read_at(reader->fd, chunk, sizeof chunk, *offset, err);
		if (status)
			return status;
		bytes = get32(chunk);
		extra = wrapping(&shape, i);
		if (memcmp(chunk + 4, "IDAT", 4) != 0 || bytes <= extra ||
		    bytes - extra > mq_strip_bound(mq_strip_filtered(&shape)))
			return mq_fail(err, MQ_ECORRUPT,
			               "strip %u is not at byte %llu of the picture's file", i,
			               (unsigned long long)*offset);
		reader->idat[i].offset = *offset + sizeof chunk;
		reader->idat[i].bytes = bytes;
		*offset += CHUNK_BYTES + bytes;
	}
	return MQ_OK;
}

static enum mq_status walk(struct mq_png_reader *reader, const uint8_t *head, size_t head_bytes,
                           struct mq_error *err)
{
	uint8_t iend[CHUNK_BYTES], adler[ZLIB_ADLER], beyond;
	uint64_t offset = 0;
	const struct idat *last;
	enum mq_status status;
	int error;

	status = expect(reader->fd, head, head_bytes, &offset, "head", err);
	if (status == MQ_OK)
		status = walk_idats(reader, &offset, err);
	if (status)
		return status;
	put_chunk(iend, "IEND", NULL, 0);
	status = expect(reader->fd, iend, sizeof iend, &offset, "end", err);
	if (status)
		return status;
	error = mq_read_at(reader->fd, &beyond, 1, offset);
	if (error == 0)
		return mq_fail(err, MQ_ECORRUPT, "the picture's file goes on after its end");
	if (error > 0)
		return mq_fail_errno(err, error, "cannot read the picture back");
	last = &reader->idat[reader->layout.strips - 1];
	status = read_at(reader->fd, adler, sizeof adler, last->offset + last->bytes - sizeof adler,
	                 err);
	reader->adler = get32(adler);
	return status;
}

enum mq_status mq_png_open(int fd, const struct mq_png_header *expected,
                           const struct mq_layout *layout, struct mq_png_reader **out,
                           struct mq_error *err)
{
	struct mq_png_reader *reader = calloc(1, sizeof *reader);
	size_t head_bytes = 0;
	uint8_t *head = make_head(expected, &head_bytes);
	enum mq_status status;

	if (reader)
		reader->idat = calloc(layout->strips, sizeof *reader->idat);
	if (!head || !reader || !reader->idat) {
		status = mq_fail(err, MQ_ENOMEM_HOST, "no memory to read a PNG of %u strips back",
		                 layout->strips);
		goto out;
	}
	reader->fd = fd;
	reader->layout = *layout;
	status = walk(reader, head, head_bytes, err);
out:
	free(head);
	if (status)
		mq_png_close(reader);
	else
		*out = reader;
	return status;
}

void mq_png_close(struct mq_png_reader *reader)
{
	if (!reader)
		return;
	free(reader->idat);
	free(reader);
}

/* The deflate data within an IDAT, its CRC and wrapping checked; chunk: type, data, CRC. */
static enum mq_status unwrap(uint8_t *chunk, const struct idat *idat,
                             const struct mq_strip_shape *shape, uint32_t index,
                             uint8_t **data, struct mq_error *err)
{
	if (get32(chunk + 4 + idat->bytes) != crc32_gzip_refl(0, chunk, 4ull + idat->bytes))
		return mq_fail(err, MQ_ECORRUPT, "strip %u does not match its CRC-32", index);
	if (memcmp(chunk, "IDAT", 4) != 0 || idat->bytes < wrapping(shape, index))
		return mq_fail(err, MQ_ECORRUPT, "strip %u is no IDAT any more", index);
	*data = chunk + 4;
	if (index == 0) {
		if ((*data)[0] != 0x78 || (*data)[1] != 0x01)
			return mq_fail(err, MQ_ECORRUPT, "the picture has another zlib header");
		*data += ZLIB_HEADER;
	}
	return MQ_OK;
}

enum mq_status mq_png_strip(struct mq_png_reader *reader, struct mq_strip_encoder *work,
                            uint32_t index, uint8_t *pixels, uint32_t *adler_out,
                            struct mq_error *err)
{
	const struct idat *idat = &reader->idat[index];
	struct mq_strip_shape shape;
	uint8_t *data = NULL, *chunk;
	enum mq_status status;

	strip_shape(reader, index, &shape);
	status = mq_strip_input(work, (size_t)idat->bytes + 8, &chunk, err);
	if (status == MQ_OK)
		status = read_at(reader->fd, chunk, (size_t)idat->bytes + 8, idat->offset - 4, err);
	if (status == MQ_OK)
		status = unwrap(chunk, idat, &shape, index, &data, err);
	if (status == MQ_OK) /* the CRC, which has been looked at, is the tail */
		status = mq_strip_inflate(work, data, idat->bytes - wrapping(&shape, index), &shape,
		                          pixels, adler_out, err);
	return status;
}

uint32_t mq_png_adler(const struct mq_png_reader *reader)
{
	return reader->adler;
}
