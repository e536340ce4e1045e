/* tile: strips and tiles as numbers. Called by the worker and the image layer; pure. */
#include "src/tile.h"

#include "src/scene.h"

static uint64_t ceil_div(uint64_t a, uint64_t b)
{
	return (a + b - 1) / b;
}

void mq_layout_init(struct mq_layout *layout, uint32_t width, uint32_t height, unsigned channels,
                    bool keep_counts)
{
	uint32_t rows = (uint32_t)(MQ_STRIP_BYTES / ((uint64_t)width * channels));

	if (rows == 0)
		rows = 1;
	layout->width = width;
	layout->height = height;
	layout->channels = channels;
	layout->pixel_bytes = mq_pixel_bytes(channels, keep_counts);
	layout->strip_rows = rows;
	layout->strips = (uint32_t)ceil_div(height, rows);

	uint64_t strip_bytes = (uint64_t)width * rows * layout->pixel_bytes;
	uint64_t fit = MQ_TILE_BYTES / strip_bytes;
	uint64_t least = ceil_div(layout->strips, MQ_TILES_MAX);
	uint64_t most = ceil_div(layout->strips, MQ_TILES_MIN);

	if (fit > most)
		fit = most;
	if (fit < least)
		fit = least; /* strips >= 1, so this is also the floor of one strip */
	layout->tile_strips = (uint32_t)fit;
	layout->tiles = (uint32_t)ceil_div(layout->strips, fit);
}

struct mq_span mq_layout_tile(const struct mq_layout *layout, uint32_t index)
{
	uint32_t first = index * layout->tile_strips;
	uint32_t left = layout->strips - first;

	return (struct mq_span){ first, left < layout->tile_strips ? left : layout->tile_strips };
}

uint32_t mq_span_rows(const struct mq_layout *layout, struct mq_span span)
{
	uint64_t begin = (uint64_t)span.first * layout->strip_rows;
	uint64_t end = begin + (uint64_t)span.count * layout->strip_rows;

	if (end > layout->height)
		end = layout->height;
	return end > begin ? (uint32_t)(end - begin) : 0;
}

uint64_t mq_span_bytes(const struct mq_layout *layout, struct mq_span span)
{
	return (uint64_t)mq_span_rows(layout, span) * layout->width * layout->pixel_bytes;
}

void mq_span_halve(struct mq_span span, struct mq_span *upper, struct mq_span *lower)
{
	uint32_t half = span.count - span.count / 2;

	*upper = (struct mq_span){ span.first, half };
	*lower = (struct mq_span){ span.first + half, span.count - half };
}
