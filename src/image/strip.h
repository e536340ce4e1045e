/* strip: one strip of a picture to compressed bytes; strip_work.h has the way back.
 *
 * A strip's first row has PNG filter Sub, the others Up; so no strip looks at another. Its deflate
 * stream starts from fresh state and ends in a sync flush, or, for the picture's last strip, in the
 * final block. Raw deflate: the zlib header and the joined Adler-32 belong to png. */
#ifndef MQ_STRIP_H
#define MQ_STRIP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/status.h"

/* An encoder's work memory, for strips up to a size; one a thread, reused. */
struct mq_strip_encoder;
/* filtered_max: rows * (1 + width * channels) of the largest strip. MQ_ENOMEM_HOST. */
enum mq_status mq_strip_encoder_open(size_t filtered_max, struct mq_strip_encoder **out,
                                     struct mq_error *err);
void mq_strip_encoder_close(struct mq_strip_encoder *encoder);

/* From now on: smaller (matches are searched), or faster (runs only; how an encoder starts). Either way
 * the bytes depend on the pixels alone, and mq_strip_inflate reads both. */
void mq_strip_encoder_small(struct mq_strip_encoder *encoder, bool small);

/* Bytes behind a strip's that mq_strip_inflate writes to. */
#define MQ_STRIP_TAIL 2u

/* An upper bound of what mq_strip_encode writes for so many filtered bytes. */
size_t mq_strip_bound(size_t filtered);

struct mq_strip_result {
	size_t bytes;      /* written to out */
	uint32_t adler;    /* of the filtered bytes (RFC 1950) */
	uint64_t filtered; /* how many of them */
};
/* pixels: rows * row_bytes, contiguous. out has room for mq_strip_bound of the filtered size. */
enum mq_status mq_strip_encode(struct mq_strip_encoder *encoder, const uint8_t *pixels, size_t row_bytes,
                               uint32_t rows, unsigned channels, bool last, uint8_t *out, size_t room,
                               struct mq_strip_result *result, struct mq_error *err);

/* A plane of 32-bit little-endian numbers (counts, smooth) to one zstd frame, and back. The frame holds
 * the lowest bytes of all numbers, then the second ones, the third and the highest (25 to 50 % smaller
 * than number by number). bound: as above. */
size_t mq_plane_bound(size_t bytes);
enum mq_status mq_plane_encode(struct mq_strip_encoder *encoder, const void *plane, size_t bytes,
                               uint8_t *out, size_t room, size_t *written, struct mq_error *err);
/* MQ_ECORRUPT unless the frame holds exactly `bytes` bytes. */
enum mq_status mq_plane_decode(const uint8_t *in, size_t len, void *plane, size_t bytes,
                               struct mq_error *err);

#endif
