/* strip: see strip.h. Called by the worker's encoder threads, and by png to read a picture back.
 *
 * What always holds: the same pixels give the same bytes, whatever the encoder did before and wherever
 * it and its buffers lie. So every strip starts from a new stream state, is deflated from one buffer (by
 * igzip in two fixed pieces), and neither igzip nor zlib sees more output room than mq_strip_bound. */
#include "config.h"

#include "src/image/strip.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "src/failpoint.h"
#include "src/image/filter.h"
#include "src/image/strip_work.h"

/* Level 1: levels 0 and 1 give the same bytes with every instruction set, level 3 does not. */
#define DEFLATE_LEVEL 1
#define LEVEL_BYTES ISAL_DEF_LVL1_LARGE

/* The first bytes go alone. Where igzip's fast loop meets a stream's first byte (icf_body, at
 * .write_first_byte, in 2.30 and later) it hashes a register that still holds the stream's address
 * instead of the next bytes, and a match far behind may come out differently. The slow loop, which
 * takes whatever is shorter than 16 bytes, does not; and after it the fast one begins elsewhere. */
#define HEAD_BYTES 8

/* Small: what the filters leave is mostly runs, so matches at distance 1 are all that is looked for
 * (Z_RLE): smaller than zlib's own searches up to level 4, and three times as fast as that one. */
#define SMALL_LEVEL 1
#define SMALL_MEMORY 8

/* So that a strip that inflates to too much is seen, and igzip's wide stores have room. */
#define INFLATE_SLACK 512

struct mq_strip_encoder {
	size_t filtered_max;
	uint8_t *filtered; /* filtered_max + INFLATE_SLACK */
	uint8_t *input;    /* mq_strip_input; grows to the largest asked for */
	size_t input_size;
	struct mq_plane_work *planes;
	struct isal_zstream deflate;
	z_stream *small; /* NULL until a strip is to be small */
	bool be_small;
	struct inflate_state inflate;
	uint8_t level[LEVEL_BYTES];
};

enum mq_status mq_strip_encoder_open(size_t filtered_max, struct mq_strip_encoder **out,
                                     struct mq_error *err)
{
	struct mq_strip_encoder *e;

	if (filtered_max == 0 || filtered_max > UINT32_MAX / 2)
		return mq_fail(err, MQ_EINTERNAL, "a strip of %zu bytes", filtered_max);
	e = mq_failpoint("strip-alloc") ? NULL : calloc(1, sizeof *e);
	if (!e)
		goto nomem;
	e->filtered_max = filtered_max;
	e->filtered = malloc(filtered_max + INFLATE_SLACK);
	if (!e->filtered)
		goto nomem;
	*out = e;
	return MQ_OK;
nomem:
	free(e);
	return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a strip encoder (%zu bytes)",
	               sizeof *e + filtered_max + INFLATE_SLACK);
}

void mq_strip_encoder_close(struct mq_strip_encoder *encoder)
{
	if (!encoder)
		return;
	if (encoder->small)
		(void)deflateEnd(encoder->small); /* it complains of streams that are not finished */
	free(encoder->small);
	mq_plane_work_free(encoder->planes);
	free(encoder->input);
	free(encoder->filtered);
	free(encoder);
}

void mq_strip_encoder_small(struct mq_strip_encoder *encoder, bool small)
{
	encoder->be_small = small;
}

struct mq_plane_work **mq_strip_plane_work(struct mq_strip_encoder *encoder)
{
	return &encoder->planes;
}

/* igzip stores what it cannot make smaller, 5 bytes a block of at most 65535; a dynamic block that it
 * keeps instead is smaller than that. The rest is margin. */
size_t mq_strip_bound(size_t filtered)
{
	return filtered + filtered / 16 + 4096;
}

/* The next bytes of the buffer, with a sync flush behind them or the stream's end. */
static bool deflate_piece(struct isal_zstream *s, size_t bytes, bool last)
{
	s->end_of_stream = last;
	s->flush = last ? NO_FLUSH : SYNC_FLUSH;
	s->avail_in = (uint32_t)bytes;
	return isal_deflate(s) == COMP_OK && s->avail_in == 0 && s->avail_out > 0 &&
	       s->internal_state.state == (last ? ZSTATE_END : ZSTATE_NEW_HDR);
}

/* Deflates the first `filtered` bytes of the encoder's buffer. False if igzip does not end as it must. */
static bool deflate_all(struct mq_strip_encoder *e, size_t filtered, bool last, uint8_t *out,
                        size_t *bytes)
{
	struct isal_zstream *s = &e->deflate;
	size_t head = filtered > HEAD_BYTES ? HEAD_BYTES : 0;

	isal_deflate_init(s);
	s->level = DEFLATE_LEVEL;
	s->level_buf = e->level;
	s->level_buf_size = sizeof e->level;
	s->next_in = e->filtered;
	s->next_out = out;
	s->avail_out = (uint32_t)mq_strip_bound(filtered);
	if ((head && !deflate_piece(s, head, false)) || !deflate_piece(s, filtered - head, last))
		return false;
	*bytes = s->total_out;
	return true;
}

static enum mq_status small_ready(struct mq_strip_encoder *e, struct mq_error *err)
{
	z_stream *z = e->small;

	if (z)
		return deflateReset(z) == Z_OK ? MQ_OK : mq_fail(err, MQ_EINTERNAL, "zlib does not start");
	z = mq_failpoint("strip-alloc") ? NULL : calloc(1, sizeof *z);
	if (!z || deflateInit2(z, SMALL_LEVEL, Z_DEFLATED, -MAX_WBITS, SMALL_MEMORY, Z_RLE) != Z_OK) {
		free(z);
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory to deflate a strip");
	}
	e->small = z;
	return MQ_OK;
}

/* As deflate_all, with zlib. */
static bool deflate_small(struct mq_strip_encoder *e, size_t filtered, bool last, uint8_t *out,
                          size_t *bytes)
{
	z_stream *z = e->small;
	int end;

	z->next_in = e->filtered;
	z->avail_in = (uInt)filtered;
	z->next_out = out;
	z->avail_out = (uInt)mq_strip_bound(filtered);
	end = deflate(z, last ? Z_FINISH : Z_SYNC_FLUSH);
	*bytes = z->total_out;
	return end == (last ? Z_STREAM_END : Z_OK) && z->avail_in == 0 && z->avail_out != 0;
}

enum mq_status mq_strip_encode(struct mq_strip_encoder *encoder, const uint8_t *pixels,
                               size_t row_bytes, uint32_t rows, unsigned channels, bool last,
                               uint8_t *out, size_t room, struct mq_strip_result *result,
                               struct mq_error *err)
{
	const struct mq_strip_shape shape = { row_bytes, rows, channels, last };
	size_t filtered = mq_strip_filtered(&shape), bytes;
	enum mq_status status;
	bool ended;

	if (rows == 0 || row_bytes < channels || filtered > encoder->filtered_max ||
	    room < mq_strip_bound(filtered))
		return mq_fail(err, MQ_EINTERNAL,
		               "a strip of %u rows of %zu bytes does not fit its encoder", rows,
		               row_bytes);
	status = encoder->be_small ? small_ready(encoder, err) : MQ_OK;
	if (status)
		return status;
	mq_filter_apply(pixels, row_bytes, rows, channels, encoder->filtered);
	ended = encoder->be_small ? deflate_small(encoder, filtered, last, out, &bytes)
	                          : deflate_all(encoder, filtered, last, out, &bytes);
	if (!ended)
		return mq_fail(err, MQ_EINTERNAL, "a strip of %zu bytes was not deflated to its end",
		               filtered);
	result->bytes = bytes;
	result->adler = isal_adler32(1, encoder->filtered, filtered);
	result->filtered = filtered;
	return MQ_OK;
}

enum mq_status mq_strip_input(struct mq_strip_encoder *encoder, size_t bytes, uint8_t **out,
                              struct mq_error *err)
{
	if (bytes > encoder->input_size) {
		uint8_t *grown = mq_failpoint("strip-alloc") ? NULL : malloc(bytes);

		if (!grown)
			return mq_fail(err, MQ_ENOMEM_HOST, "no memory to read a strip (%zu bytes)",
			               bytes);
		free(encoder->input);
		encoder->input = grown;
		encoder->input_size = bytes;
	}
	*out = encoder->input;
	return MQ_OK;
}

/* Inflates into the encoder's buffer. True if the stream holds exactly `filtered` bytes and ends with
 * its last byte: in the final block, or in a sync flush. */
static bool inflate_all(struct mq_strip_encoder *e, const uint8_t *bytes, size_t len,
                        size_t filtered, bool last)
{
	static const uint8_t flush[4] = { 0, 0, 0xff, 0xff };
	static const uint8_t final[2] = { 3, 0 }; /* an empty final block */
	struct inflate_state *s = &e->inflate;
	uint8_t ending[2];

	if (len > UINT32_MAX || len < sizeof flush)
		return false;
	isal_inflate_init(s);
	s->next_in = (uint8_t *)bytes; /* not written to */
	s->avail_in = (uint32_t)len;
	s->next_out = e->filtered;
	s->avail_out = (uint32_t)(filtered + INFLATE_SLACK);
	if (isal_inflate(s) != ISAL_DECOMP_OK || s->avail_in != 0 || s->total_out != filtered)
		return false;
	if (last)
		return s->block_state == ISAL_BLOCK_FINISH && s->read_in_length < 8;
	if (memcmp(bytes + len - sizeof flush, flush, sizeof flush) != 0 || s->bfinal ||
	    (s->block_state != ISAL_BLOCK_NEW_HDR && s->block_state != ISAL_BLOCK_HDR) ||
	    s->tmp_in_size != 0 || s->read_in_length != 0)
		return false;
	/* Nothing is left over if the next block may begin here. */
	memcpy(ending, final, sizeof ending);
	s->next_in = ending;
	s->avail_in = sizeof ending;
	return isal_inflate(s) == ISAL_DECOMP_OK && s->block_state == ISAL_BLOCK_FINISH &&
	       s->avail_in == 0 && s->read_in_length < 8 && s->total_out == filtered;
}

enum mq_status mq_strip_inflate(struct mq_strip_encoder *encoder, const uint8_t *bytes, size_t len,
                                const struct mq_strip_shape *shape, uint8_t *pixels,
                                uint32_t *adler, struct mq_error *err)
{
	size_t filtered = mq_strip_filtered(shape);

	if (shape->rows == 0 || shape->row_bytes < shape->channels ||
	    filtered > encoder->filtered_max)
		return mq_fail(err, MQ_EINTERNAL,
		               "a strip of %u rows of %zu bytes does not fit its encoder",
		               shape->rows, shape->row_bytes);
	if (!inflate_all(encoder, bytes, len, filtered, shape->last))
		return mq_fail(err, MQ_ECORRUPT, "a strip's deflate stream is damaged");
	if (!mq_filter_undo(encoder->filtered, shape->row_bytes, shape->rows, shape->channels,
	                    pixels))
		return mq_fail(err, MQ_ECORRUPT, "a strip has a filter that strips do not use");
	*adler = isal_adler32(1, encoder->filtered, filtered);
	return MQ_OK;
}

enum mq_status mq_strip_decode(struct mq_strip_encoder *encoder, const uint8_t *bytes, size_t len,
                               size_t row_bytes, uint32_t rows, unsigned channels, bool last,
                               uint32_t adler, uint8_t *pixels, struct mq_error *err)
{
	const struct mq_strip_shape shape = { row_bytes, rows, channels, last };
	uint32_t found = 0;
	enum mq_status status = mq_strip_inflate(encoder, bytes, len, &shape, pixels, &found, err);

	if (status == MQ_OK && found != adler)
		status = mq_fail(err, MQ_ECORRUPT,
		                 "a strip's Adler-32 is %08x, and %08x is expected", found, adler);
	return status;
}
