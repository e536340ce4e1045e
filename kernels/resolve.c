/* resolve: pixels from samples, for the CPU backend: 1:1, or the mean of N x N samples in linear
 * light. Called by cpu.c for each patch; the same code for every instruction set. */
#include <string.h>

#include "kernels/escape.h"
#include "kernels/escape_cpu.h"

static inline void put_rgb(uint8_t *p, uint32_t colour)
{
	p[0] = (uint8_t)colour;
	p[1] = (uint8_t)(colour >> 8);
	p[2] = (uint8_t)(colour >> 16);
}

static void resolve_single(const struct mq_isa *isa, const struct mq_scene *scene,
                           const struct mq_samples *in, uint32_t cols, uint32_t rows, uint8_t *pixels)
{
	unsigned channels = scene->shade->channels;
	size_t i, j, pitch = (size_t)scene->width * channels;

	for (j = 0; j < rows; j++) {
		uint8_t *row = pixels + j * pitch;

		if (channels == 1)
			isa->gray(in->counts + j * cols, cols, scene->limit, row);
		else
			for (i = 0; i < cols; i++)
				put_rgb(row + i * 3, in->colours[j * cols + i]);
	}
}

/* The mean of the N x N samples whose first is at `at`; `pitch` samples a row. */
static uint32_t mean_gray(const struct mq_scene *scene, const uint32_t *at, size_t pitch)
{
	const struct mq_shade *shade = scene->shade;
	uint32_t n = scene->supersample, sum = 0, i, j;

	for (j = 0; j < n; j++)
		for (i = 0; i < n; i++)
			sum += shade->decode[mq_gray(at[j * pitch + i], scene->limit)];
	return shade->encode[mq_mean(sum, n * n)];
}

static uint32_t mean_rgb(const struct mq_scene *scene, const uint32_t *at, size_t pitch)
{
	const struct mq_shade *shade = scene->shade;
	uint32_t n = scene->supersample, i, j, r = 0, g = 0, b = 0;

	for (j = 0; j < n; j++) {
		for (i = 0; i < n; i++) {
			uint32_t c = at[j * pitch + i];

			r += shade->decode[c & 255];
			g += shade->decode[c >> 8 & 255];
			b += shade->decode[c >> 16 & 255];
		}
	}
	return (uint32_t)shade->encode[mq_mean(r, n * n)] |
	       (uint32_t)shade->encode[mq_mean(g, n * n)] << 8 |
	       (uint32_t)shade->encode[mq_mean(b, n * n)] << 16;
}

void mq_resolve(const struct mq_isa *isa, const struct mq_scene *scene, const struct mq_samples *in,
                uint32_t cols, uint32_t rows, uint8_t *pixels)
{
	size_t n = scene->supersample, pitch = cols * n, i, j;
	unsigned channels = scene->shade->channels;

	if (n == 1) {
		resolve_single(isa, scene, in, cols, rows, pixels);
		return;
	}
	for (j = 0; j < rows; j++) {
		uint8_t *row = pixels + j * scene->width * channels;
		size_t first = j * n * pitch;

		for (i = 0; i < cols; i++) {
			if (channels == 1)
				row[i] = (uint8_t)mean_gray(scene, in->counts + first + i * n, pitch);
			else
				put_rgb(row + i * 3, mean_rgb(scene, in->colours + first + i * n, pitch));
		}
	}
}
