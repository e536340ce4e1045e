/* tile: where strips and tiles lie in a picture. Pure arithmetic on 64-bit sizes.
 *
 * A strip is max(1, 2^20 / (width * channels)) rows on a grid that nothing moves: the unit of
 * encoding. A tile is a span of strips: the unit of rendering, retry and split. A tile aims at
 * MQ_TILE_BYTES of buffer, at least one strip; a picture starts with at least MQ_TILES_MIN tiles if it
 * has so many strips (a restart then loses little of a small picture that takes long), and with at most
 * MQ_TILES_MAX (larger pictures get larger tiles, which the scheduler halves until they fit a device). */
#ifndef MQ_TILE_H
#define MQ_TILE_H

#include <stdbool.h>
#include <stdint.h>

#define MQ_STRIP_BYTES (1u << 20)
#define MQ_TILE_BYTES (16u << 20)
#define MQ_TILES_MIN 16u
#define MQ_TILES_MAX 65536u

struct mq_layout {
	uint32_t width, height;
	unsigned channels;
	uint32_t pixel_bytes; /* in a backend's buffer, all planes */
	uint32_t strip_rows;  /* rows of every strip but perhaps the last */
	uint32_t strips;
	uint32_t tile_strips; /* strips of every tile but perhaps the last, before any split */
	uint32_t tiles;
};

struct mq_span {
	uint32_t first, count; /* strips */
};

/* width, height: 1 .. MQ_JOB_SIDE_MAX; channels 1 or 3. */
void mq_layout_init(struct mq_layout *layout, uint32_t width, uint32_t height, unsigned channels,
                    bool keep_counts);

/* Tile number index (0 .. tiles-1) as first laid out. The store does this in SQL; tests compare. */
struct mq_span mq_layout_tile(const struct mq_layout *layout, uint32_t index);

static inline uint32_t mq_strip_row0(const struct mq_layout *layout, uint32_t strip)
{
	return strip * layout->strip_rows;
}

/* Rows of a span: from mq_strip_row0(first) on. */
uint32_t mq_span_rows(const struct mq_layout *layout, struct mq_span span);

/* Bytes a span takes in a backend's buffer. */
uint64_t mq_span_bytes(const struct mq_layout *layout, struct mq_span span);

/* Halves a span of at least two strips: the upper part is the larger if they are odd. */
void mq_span_halve(struct mq_span span, struct mq_span *upper, struct mq_span *lower);

#endif
