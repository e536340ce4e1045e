/* escape_ref: the scalar instruction set, which is the reference for the others: kernels/escape.h
 * called sample by sample, without any shortcut. Called by cpu.c.
 *
 * It is compiled twice, for CPUs with and without FMA: the same bits, since fma() rounds once either
 * way, but without the instruction it is a call into libm. */
#include <math.h>

#include "kernels/escape.h"
#include "kernels/escape_cpu.h"
#include "src/alive.h"

/* Iterations between two looks at the cancel flag: some tens of microseconds. */
#define LOOK 8192u

/* mq_escape_count() in pieces, so that it can be stopped. False: cancelled. */
__attribute__((always_inline)) static inline bool
count_sample(double re, double im, uint32_t limit, const atomic_bool *cancel, uint32_t *count,
             struct mq_point *z)
{
	double x = 0, y = 0;
	uint32_t n = 0;

	while (n < limit) {
		uint32_t stop = limit - n > LOOK ? n + LOOK : limit;

		for (; n < stop; n++) {
			mq_step(&x, &y, re, im);
			if (!(mq_norm2(x, y) < MQ_ESCAPE_R2))
				goto escaped;
		}
		mq_alive();
		if (atomic_load_explicit(cancel, memory_order_relaxed))
			return false;
	}
escaped:
	*count = n;
	*z = (struct mq_point){ x, y };
	return true;
}

/* Inlined by force: only in the caller's body is fma() the instruction. */
__attribute__((always_inline)) static inline bool
render_patch(const struct mq_patch *patch, struct mq_samples *out)
{
	const struct mq_scene *scene = patch->scene;
	const struct mq_shade *shade = scene->shade;
	bool smooth = shade->channels == 3 || scene->keep_counts;
	size_t at = 0;
	uint32_t i, j;

	for (j = 0; j < patch->rows; j++) {
		double im = mq_sample_im(&scene->grid, (double)patch->row0 + j);

		for (i = 0; i < patch->cols; i++, at++) {
			double re = mq_sample_re(&scene->grid, (double)patch->col0 + i);
			struct mq_point z;
			uint32_t n;

			if (!count_sample(re, im, scene->limit, patch->cancel, &n, &z))
				return false;
			out->counts[at] = n;
			if (!smooth)
				continue;
			if (n >= scene->limit) {
				out->colours[at] = shade->inside;
				out->smooth[at] = (float)n;
			} else {
				double v = (double)n + mq_smooth_part(re, im, z);

				out->colours[at] = shade->channels == 3 ? mq_colour(shade, v) : 0;
				out->smooth[at] = (float)v;
			}
		}
	}
	return !atomic_load_explicit(patch->cancel, memory_order_relaxed);
}

static bool render(const struct mq_patch *patch, struct mq_samples *out, void *scratch)
{
	(void)scratch;
	return render_patch(patch, out);
}

__attribute__((target("fma"))) static bool render_fma(const struct mq_patch *patch,
                                                      struct mq_samples *out, void *scratch)
{
	(void)scratch;
	return render_patch(patch, out);
}

static void gray(const uint32_t *counts, size_t n, uint32_t limit, uint8_t *out)
{
	size_t i;

	for (i = 0; i < n; i++)
		out[i] = (uint8_t)mq_gray(counts[i], limit);
}

static size_t inside(const uint32_t *counts, size_t n, uint32_t limit)
{
	size_t i, sum = 0;

	for (i = 0; i < n; i++)
		sum += counts[i] >= limit;
	return sum;
}

const struct mq_isa mq_isa_scalar = {
	.name = "scalar", .plain = true, .render = render, .gray = gray, .inside = inside,
};
const struct mq_isa mq_isa_scalar_fma = {
	.name = "scalar", .plain = true, .render = render_fma, .gray = gray, .inside = inside,
};
