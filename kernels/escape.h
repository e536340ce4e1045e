/* escape: the arithmetic contract of mandelq-job(5), once, for C and for CUDA. Every backend either
 * includes these functions or is tested bit for bit against them.
 *
 * Rules that make every machine agree: IEEE double, fma where fma is written and nowhere else (no
 * contraction: -ffp-contract=off, -fmad=false), no function of the C library that is not exact (fma,
 * floor). A file that includes this without FMA hardware gets the same bits, slowly. */
#ifndef MQ_ESCAPE_H
#define MQ_ESCAPE_H

#include "src/scene.h"

#ifdef __CUDACC__
#define MQ_FN static __host__ __device__ __forceinline__
#else
#include <math.h>
#include <string.h>
#define MQ_FN static inline
#endif

#define MQ_ESCAPE_R2 4.0

/* The smooth count carries on from the step that escaped until |z|^2 >= 2^20, at most this many steps.
 * With |z| >= 2^10 the next term of the potential's series changes the smooth count by under 1e-6:
 * far under one part in MQ_LUT_SIZE of a period of one, so no bands show. Orbits near c = -2 leave the
 * circle |z| = 2 slowest, by a factor of 4 a step: 32 steps reach it from 4 ulp. */
#define MQ_SMOOTH_R2 1048576.0
#define MQ_SMOOTH_STEPS 32u

struct mq_point {
	double x, y;
};

MQ_FN double mq_sample_re(const struct mq_grid *g, double i)
{
	return fma(i + 0.5, g->dx, g->xmin);
}

MQ_FN double mq_sample_im(const struct mq_grid *g, double j)
{
	return fma(-(j + 0.5), g->dy, g->ymax);
}

/* One step of z -> z^2 + c. */
MQ_FN void mq_step(double *x, double *y, double re, double im)
{
	double t = fma(*y, *y, -re);
	*y = fma(*x + *x, *y, im);
	*x = fma(*x, *x, -t);
}

MQ_FN double mq_norm2(double x, double y)
{
	return fma(x, x, y * y);
}

/* The count: the 0-based number of the first step after which |z|^2 >= 4, or the limit. A NaN (from an
 * overflow) counts as escaped. z is left after that step. */
MQ_FN uint32_t mq_escape_count(double re, double im, uint32_t limit, struct mq_point *z)
{
	double x = 0, y = 0;
	uint32_t n;

	for (n = 0; n < limit; n++) {
		mq_step(&x, &y, re, im);
		if (!(mq_norm2(x, y) < MQ_ESCAPE_R2))
			break;
	}
	z->x = x;
	z->y = y;
	return n;
}

/* log2 of a positive finite double, within 1e-12: exponent, and the series of atanh for the mantissa
 * in [sqrt(1/2), sqrt(2)) (Abramowitz and Stegun 4.1.27). Division is exact by IEEE 754. */
MQ_FN double mq_log2(double v)
{
	uint64_t bits;
	int64_t e;
	double m, s, s2, p;

#ifdef __CUDA_ARCH__
	bits = (uint64_t)__double_as_longlong(v);
#else
	memcpy(&bits, &v, sizeof bits);
#endif
	/* Adding the distance from sqrt(1/2) to 1 rounds the exponent to the nearer power of two. */
	e = (int64_t)((bits + 0x00095f619980c433ull) >> 52) - 1023;
	bits -= (uint64_t)e << 52;
#ifdef __CUDA_ARCH__
	m = __longlong_as_double((long long)bits);
#else
	memcpy(&m, &bits, sizeof m);
#endif
	s = (m - 1.0) / (m + 1.0);
	s2 = s * s;
	p = 0.22195308321368667;             /* 2/ln2 / 13 */
	p = fma(p, s2, 0.26230818925253880); /* / 11 */
	p = fma(p, s2, 0.32059889797532520); /* / 9 */
	p = fma(p, s2, 0.41219858311113240); /* / 7 */
	p = fma(p, s2, 0.57707801635558536); /* / 5 */
	p = fma(p, s2, 0.96179669392597560); /* / 3 */
	p = fma(p, s2, 2.8853900817779268);  /* 2/ln2 */
	return fma(p, s, (double)e);
}

/* What the smooth count adds to the count, from z as mq_escape_count left it:
 * k + 1 - log2(log2|z|) after k steps more. */
MQ_FN double mq_smooth_part(double re, double im, struct mq_point z)
{
	double r2 = mq_norm2(z.x, z.y);
	uint32_t k = 0;

	while (r2 < MQ_SMOOTH_R2 && k < MQ_SMOOTH_STEPS) {
		mq_step(&z.x, &z.y, re, im);
		r2 = mq_norm2(z.x, z.y);
		k++;
	}
	if (!(r2 < 1e300)) /* far outside, where the square overflows */
		r2 = 1e300;
	return (double)(k + 1) - mq_log2(0.5 * mq_log2(r2));
}

/* The colour of a sample as 0x00BBGGRR (channels 3), or its gray value (channels 1). */
MQ_FN uint32_t mq_colour(const struct mq_shade *s, double smooth)
{
	double t = fma(smooth, s->inv_period, s->offset);

	t = t - floor(t);
	return s->lut[(uint32_t)(t * (double)MQ_LUT_SIZE) & (MQ_LUT_SIZE - 1)];
}

MQ_FN uint32_t mq_gray(uint32_t count, uint32_t limit)
{
	return count >= limit ? 0 : 1 + count % 255;
}

/* The mean of `samples` linear values, rounded to nearest. */
MQ_FN uint32_t mq_mean(uint32_t sum, uint32_t samples)
{
	return (sum + samples / 2) / samples;
}

#endif
