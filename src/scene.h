/* scene: what a backend needs to know of a job, and nothing else. Plain data, made once a job by the
 * worker from the job and its palette, read-only while any tile of the job is in flight. */
#ifndef MQ_SCENE_H
#define MQ_SCENE_H

#include <stdbool.h>
#include <stdint.h>

/* Sample (i,j) sits at re = fma(i+0.5, dx, xmin), im = fma(-(j+0.5), dy, ymax); row 0 is on top.
 * With supersampling the samples are those of the same view at width*N x height*N. */
struct mq_grid {
	double xmin, dx, ymax, dy;
};

#define MQ_LUT_SIZE 4096u

/* How a sample's count becomes a colour. channels 1: 0 inside, else 1 + count mod 255; the other
 * fields but decode and encode are unused. channels 3: t = frac(fma(smooth, inv_period, offset)),
 * entry floor(t * MQ_LUT_SIZE) of lut. N x N samples are averaged as decode[] values, rounded to
 * nearest, and go back through encode[]; with N = 1 encode[decode[v]] == v makes both no-ops. */
struct mq_shade {
	unsigned channels;
	double inv_period, offset;
	uint32_t inside;            /* 0x00BBGGRR: red in the low byte, as in lut */
	uint32_t lut[MQ_LUT_SIZE];  /* 0x00BBGGRR, sRGB */
	uint16_t decode[256];       /* sRGB byte to linear light, 65535 is full */
	uint8_t encode[65536];      /* linear light to the nearest sRGB byte */
};

struct mq_scene {
	struct mq_grid grid;         /* of samples */
	uint32_t width, height;      /* of the picture, in pixels */
	uint32_t supersample;        /* N >= 1; samples a pixel are N * N */
	uint32_t limit;              /* iteration limit, 1 .. 2^32-2 */
	bool keep_counts;            /* also give counts and smooth planes; only with N = 1 */
	bool shortcuts;              /* exact shortcuts allowed; false for measuring only */
	const struct mq_shade *shade;
};

/* Bytes one pixel of a scene takes in a backend's buffer, all planes together. */
static inline uint32_t mq_pixel_bytes(unsigned channels, bool keep_counts)
{
	return channels + (keep_counts ? 8u : 0u);
}

#endif
