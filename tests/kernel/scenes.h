/* scenes: what the kernel tests share: a palette, grids, and a tile rendered to memory of its own. */
#ifndef MQ_TEST_SCENES_H
#define MQ_TEST_SCENES_H

#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/escape.h"

struct picture {
	uint8_t *pixels;
	uint32_t *counts;
	float *smooth;
	size_t area, bytes;
	uint64_t inside;
};

/* Tables with no regularity that could hide an error; encode[decode[v]] == v. */
static inline struct mq_shade *make_shade(unsigned channels)
{
	struct mq_shade *s = calloc(1, sizeof *s);
	uint32_t i, h = 1;

	if (!s)
		abort();
	s->channels = channels;
	s->inv_period = 0.0371;
	s->offset = 0.3;
	s->inside = 0x102030;
	for (i = 0; i < MQ_LUT_SIZE; i++) {
		h = h * 1664525u + 1013904223u;
		s->lut[i] = h >> 8;
	}
	for (i = 0; i < 256; i++)
		s->decode[i] = (uint16_t)(i * i * 65535 / 65025);
	for (i = 0; i < 256; i++) {
		uint32_t from = i ? (s->decode[i - 1] + s->decode[i] + 1) / 2 : 0, k;

		for (k = from; k < 65536; k++)
			s->encode[k] = (uint8_t)i;
	}
	return s;
}

static inline struct mq_grid centred(double re, double im, double step, uint32_t width, uint32_t height)
{
	return (struct mq_grid){
		.xmin = re - step * width / 2, .dx = step, .ymax = im + step * height / 2, .dy = step,
	};
}

static inline struct mq_backend *open_isa(const char *isa, unsigned threads)
{
	struct mq_backend *b = NULL;

	setenv("MANDELQ_CPU_ISA", isa, 1);
	if (mq_cpu_open(threads, &b, NULL))
		return NULL;
	return b;
}

static inline void free_picture(struct picture *p)
{
	free(p->pixels);
	free(p->counts);
	free(p->smooth);
	memset(p, 0, sizeof *p);
}

static inline void *copy_of(const void *from, size_t size)
{
	void *to = malloc(size ? size : 1);

	if (!to)
		abort();
	return memcpy(to, from, size);
}

/* Renders rows of a scene, taking a buffer for just that. */
static inline enum mq_status render_rows(struct mq_backend *b, const struct mq_scene *scene,
                                         uint32_t row0, uint32_t rows, struct picture *out)
{
	size_t area = (size_t)rows * scene->width;
	unsigned channels = scene->shade->channels;
	struct mq_rendered done;
	struct mq_error err;
	enum mq_status status;

	status = b->ops->reserve(b, 1, area * mq_pixel_bytes(channels, scene->keep_counts), &err);
	if (!status)
		status = b->ops->submit(b, 0, scene, row0, rows, &err);
	if (!status)
		status = b->ops->wait(b, 0, &done, &err);
	if (status)
		return status;
	memset(out, 0, sizeof *out);
	out->area = area;
	out->bytes = area * channels;
	out->inside = done.inside;
	out->pixels = copy_of(done.pixels, out->bytes);
	if (scene->keep_counts) {
		out->counts = copy_of(done.counts, area * 4);
		out->smooth = copy_of(done.smooth, area * 4);
	}
	return MQ_OK;
}

#endif
