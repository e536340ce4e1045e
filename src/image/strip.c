/* strip: see strip.h. Called by the worker's encoder threads, and by png to read a picture back.
 *
 * What always holds: the same pixels give the same bytes, whatever the encoder did before and wherever
 * it and its buffers lie, for deflate looks at nothing else. */
#include "config.h"

#include "src/image/strip.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>
#include <string.h>

#include "src/failpoint.h"
#include "src/image/deflate.h"
#include "src/image/filter.h"
#include "src/image/inflate.h"
#include "src/image/strip_work.h"
#include "src/spare.h"

_Static_assert(MQ_STRIP_TAIL == MQ_INFLATE_TAIL, "what a strip has behind it");

struct mq_strip_encoder {
	size_t filtered_max;
	uint8_t *filtered; /* filtered_max */
	uint8_t *input;    /* mq_strip_input; grows to the largest asked for */
	size_t input_size;
	struct mq_plane_work *planes;
	struct mq_deflate *deflate;
	bool be_small;
	struct libdeflate_decompressor *inflate;
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
	e->filtered = malloc(filtered_max);
	e->deflate = mq_deflate_open();
	e->inflate = libdeflate_alloc_decompressor();
	if (!e->filtered || !e->deflate || !e->inflate || !mq_spare_left())
		goto nomem;
	*out = e;
	return MQ_OK;
nomem:
	mq_strip_encoder_close(e);
	return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a strip encoder (%zu bytes)",
	               sizeof *e + filtered_max);
}

void mq_strip_encoder_close(struct mq_strip_encoder *encoder)
{
	if (!encoder)
		return;
	if (encoder->inflate)
		libdeflate_free_decompressor(encoder->inflate);
	mq_deflate_close(encoder->deflate);
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

size_t mq_strip_bound(size_t filtered)
{
	return mq_deflate_bound(filtered);
}

enum mq_status mq_strip_encode(struct mq_strip_encoder *encoder, const uint8_t *pixels,
                               size_t row_bytes, uint32_t rows, unsigned channels, bool last,
                               uint8_t *out, size_t room, struct mq_strip_result *result,
                               struct mq_error *err)
{
	const struct mq_strip_shape shape = { row_bytes, rows, channels, last };
	size_t filtered = mq_strip_filtered(&shape);

	if (rows == 0 || row_bytes < channels || filtered > encoder->filtered_max ||
	    room < mq_strip_bound(filtered))
		return mq_fail(err, MQ_EINTERNAL,
		               "a strip of %u rows of %zu bytes does not fit its encoder", rows,
		               row_bytes);
	if (encoder->be_small && !mq_deflate_prepare_small(encoder->deflate))
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory to deflate a strip");
	mq_filter_apply(pixels, row_bytes, rows, channels, encoder->filtered);
	result->bytes = mq_deflate(encoder->deflate, encoder->filtered, filtered, encoder->be_small,
	                           last, out);
	result->adler = isal_adler32(1, encoder->filtered, filtered);
	result->filtered = filtered;
	return MQ_OK;
}

enum mq_status mq_strip_input(struct mq_strip_encoder *encoder, size_t bytes, uint8_t **out,
                              struct mq_error *err)
{
	if (bytes > encoder->input_size) {
		uint8_t *grown = mq_failpoint("strip-alloc") ? NULL : mq_spare_malloc(bytes);

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

enum mq_status mq_strip_inflate(struct mq_strip_encoder *encoder, uint8_t *bytes, size_t len,
                                const struct mq_strip_shape *shape, uint8_t *pixels,
                                uint32_t *adler, struct mq_error *err)
{
	size_t filtered = mq_strip_filtered(shape);

	if (shape->rows == 0 || shape->row_bytes < shape->channels ||
	    filtered > encoder->filtered_max)
		return mq_fail(err, MQ_EINTERNAL,
		               "a strip of %u rows of %zu bytes does not fit its encoder",
		               shape->rows, shape->row_bytes);
	if (!mq_inflate(encoder->inflate, bytes, len, shape->last, encoder->filtered, filtered))
		return mq_fail(err, MQ_ECORRUPT, "a strip's deflate stream is damaged");
	if (!mq_filter_undo(encoder->filtered, shape->row_bytes, shape->rows, shape->channels,
	                    pixels))
		return mq_fail(err, MQ_ECORRUPT, "a strip has a filter that strips do not use");
	*adler = isal_adler32(1, encoder->filtered, filtered);
	return MQ_OK;
}
