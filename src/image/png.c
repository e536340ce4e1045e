/* png: the writing half of png.h: strips, already compressed, become the IDATs of one PNG. Called by
 * the worker's assembly, one writer a picture, one thread. */
#include "src/image/png.h"

#include <stdbool.h>
#include <isa-l/crc.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "src/image/png_out.h"

static const png_byte zlib_header[2] = { 0x78, 0x01 }; /* deflate, 32 KiB window, fastest */
static const png_byte idat[5] = "IDAT", iend[5] = "IEND";

struct mq_png_writer {
	struct mq_png_out out;
	uint64_t expected; /* filtered bytes of the whole picture */
	uint64_t filtered; /* of the strips so far */
	uint32_t adler;    /* likewise */
	bool complete;     /* the last strip is there */
};

/* What one IDAT is made of. */
struct piece {
	bool first, last;
	const uint8_t *deflated;
	size_t bytes;
	png_byte adler[4];
};

uint32_t mq_adler_join(uint32_t first, uint32_t second, uint64_t second_bytes)
{
	return (uint32_t)adler32_combine(first, second, (z_off_t)second_bytes);
}

enum mq_status mq_png_create(int fd, const struct mq_png_header *header, struct mq_png_writer **out,
                             struct mq_error *err)
{
	struct mq_png_writer *writer = calloc(1, sizeof *writer);
	enum mq_status status;

	if (!writer)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory to write a PNG");
	writer->expected = header->height * (1 + (uint64_t)header->width * header->channels);
	writer->adler = 1;
	status = mq_png_out_open(&writer->out, fd, header, true, err);
	if (status) {
		free(writer);
		return status;
	}
	*out = writer;
	return MQ_OK;
}

static size_t piece_bytes(const struct piece *piece)
{
	return piece->bytes + (piece->first ? sizeof zlib_header : 0) +
	       (piece->last ? sizeof piece->adler : 0);
}

/* One chunk, without libpng: its CRC is zlib's, at a tenth of ISA-L's speed, and strips are all of the
 * file but some hundred bytes (PNG specification, 5.3). */
static enum mq_status put_piece(struct mq_sink *sink, const struct piece *piece, struct mq_error *err)
{
	png_byte head[8], tail[4];
	uint32_t crc = crc32_gzip_refl(0, idat, 4);
	enum mq_status status;

	png_save_uint_32(head, (png_uint_32)piece_bytes(piece));
	memcpy(head + 4, idat, 4);
	status = mq_sink_put(sink, head, sizeof head, err);
	if (!status && piece->first) {
		crc = crc32_gzip_refl(crc, zlib_header, sizeof zlib_header);
		status = mq_sink_put(sink, zlib_header, sizeof zlib_header, err);
	}
	if (!status) {
		crc = crc32_gzip_refl(crc, piece->deflated, piece->bytes);
		status = mq_sink_put(sink, piece->deflated, piece->bytes, err);
	}
	if (!status && piece->last) {
		crc = crc32_gzip_refl(crc, piece->adler, sizeof piece->adler);
		status = mq_sink_put(sink, piece->adler, sizeof piece->adler, err);
	}
	png_save_uint_32(tail, crc);
	return status ? status : mq_sink_put(sink, tail, sizeof tail, err);
}

enum mq_status mq_png_add(struct mq_png_writer *writer, const uint8_t *deflated, size_t bytes,
                          uint32_t adler, uint64_t filtered, bool last, uint64_t *offset,
                          struct mq_error *err)
{
	struct piece piece = { writer->filtered == 0, last, deflated, bytes, { 0 } };
	uint64_t at =
		mq_sink_offset(&writer->out.sink) + 8 + (piece.first ? sizeof zlib_header : 0);
	enum mq_status status;

	if (writer->complete || filtered == 0 || filtered > writer->expected - writer->filtered ||
	    last != (writer->filtered + filtered == writer->expected))
		return mq_fail(err, MQ_EINTERNAL, "a strip of %llu bytes does not fit its picture",
		               (unsigned long long)filtered);
	if (piece_bytes(&piece) > PNG_UINT_31_MAX)
		return mq_fail(err, MQ_EINTERNAL, "a strip of %zu bytes is too long for a chunk",
		               bytes);
	adler = mq_adler_join(writer->adler, adler, filtered);
	png_save_uint_32(piece.adler, adler);
	status = put_piece(&writer->out.sink, &piece, err);
	if (status)
		return status;
	writer->adler = adler;
	writer->filtered += filtered;
	writer->complete = last;
	if (offset)
		*offset = at;
	return MQ_OK;
}

static void put_end(struct mq_png_out *out, void *arg)
{
	(void)arg;
	/* Not png_write_end: it refuses a file whose IDATs it did not write itself. */
	png_write_chunk(out->png, iend, NULL, 0);
}

enum mq_status mq_png_finish(struct mq_png_writer *writer, uint64_t *bytes, uint8_t sha256[32],
                             struct mq_error *err)
{
	enum mq_status status;

	if (writer->complete)
		status = mq_png_out_run(&writer->out, put_end, NULL, err);
	else
		status = mq_fail(err, MQ_EINTERNAL, "a picture without its last strip");
	if (status == MQ_OK)
		status = mq_sink_finish(&writer->out.sink, sha256, err);
	if (status == MQ_OK)
		*bytes = mq_sink_offset(&writer->out.sink);
	mq_png_abort(writer);
	return status;
}

void mq_png_abort(struct mq_png_writer *writer)
{
	if (!writer)
		return;
	mq_png_out_close(&writer->out);
	free(writer);
}
