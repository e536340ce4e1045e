/* strip_work: what png needs of an encoder beyond strip.h: its input buffer, and a strip inflated
 * before its Adler-32 is known. Used inside src/image and by its tests only. */
#ifndef MQ_STRIP_WORK_H
#define MQ_STRIP_WORK_H

#include "src/image/strip.h"

/* How a strip lies in memory. */
struct mq_strip_shape {
	size_t row_bytes;
	uint32_t rows;
	unsigned channels;
	bool last; /* of its picture: ends in the final block */
};

static inline size_t mq_strip_filtered(const struct mq_strip_shape *shape)
{
	return (size_t)shape->rows * (1 + shape->row_bytes);
}

/* Work memory of at least `bytes` for a strip's compressed form; it lives until the next call.
 * NULL and MQ_ENOMEM_HOST when there is none. */
enum mq_status mq_strip_input(struct mq_strip_encoder *encoder, size_t bytes, uint8_t **out,
                              struct mq_error *err);

/* Inflates one strip and undoes its filters into pixels (rows * row_bytes). bytes has MQ_STRIP_TAIL more,
 * which are written to. *adler is that of what it held: the caller compares. MQ_ECORRUPT: the stream is
 * damaged, has another length, or a filter that strips do not use. */
enum mq_status mq_strip_inflate(struct mq_strip_encoder *encoder, uint8_t *bytes, size_t len,
                                const struct mq_strip_shape *shape, uint8_t *pixels,
                                uint32_t *adler, struct mq_error *err);

/* The plane scratch memory of an encoder, and its zstd context (made at first use). */
struct mq_plane_work;
void mq_plane_work_free(struct mq_plane_work *work);
/* Where the encoder keeps its own; starts as NULL. */
struct mq_plane_work **mq_strip_plane_work(struct mq_strip_encoder *encoder);

#endif
