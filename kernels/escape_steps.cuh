/* escape_steps: the arithmetic of the CUDA kernels, for escape.cu alone. Every result is that of
 * kernels/escape.h, bit for bit; what makes it faster is exact:
 *
 * - Fast steps keep 2z instead of z, which scales every rounding exactly:
 *     (2y)^2 - 4 re, (2x)^2 less that, 2x 2y + 2 im; then 4x' is halved in the integer units, by taking
 *   one from its exponent. So a step is three FMA of the double ones, which bound its speed, and one
 *   integer instruction. A zero or subnormal 4x' becomes infinite or NaN by that, which looks like an
 *   escape; see below. From 2^-1022 to 2^-1021 a wrong subnormal comes out, which vanishes in
 *   2x 2y + 2 im as long as im is 0 (then y is 0 too) or not tiny (`careful` excludes that).
 * - Escape is tested once a block of steps, and a block at whose end a sample is outside is run again
 *   as escape.h has it. With |c| < 2 by a margin, z once outside of |z| = 2 stays there: it is huge, if
 *   it was infinite or NaN. Samples without the margin take every step with a test.
 * - Main cardioid and period-2 disc by their inequalities, with a margin far over the rounding.
 * - An orbit that comes back to a state that it had, bit by bit, never escapes (Brent). */
#ifndef MQ_ESCAPE_STEPS_CUH
#define MQ_ESCAPE_STEPS_CUH

#include "kernels/escape.h"
#include "kernels/escape_cuda.h"

#define FULL 0xffffffffu

/* The numbers below were chosen with bench_cuda on an H200; within a factor of two of them, nothing
 * changes by more than a few percent. */
#define SOON 16u       /* steps that the first kernel takes with a test each */
#define FIRST 128u     /* steps after which it leaves a sample to rest */
#define FIRST_BLOCK 8u /* steps between its tests after SOON */
#define FEW 8          /* it leaves the samples of a warp to rest when no more go on */
#define BLOCK 32u      /* steps between two tests in rest */
#define COMPARE 8u     /* steps between two looks whether the orbit is back where it was */

/* From 2z and c as 4 re, 2 im to the next 2z. */
__device__ __forceinline__ void fast_step(double *x2, double *y2, double re4, double im2)
{
	double t = fma(*y2, *y2, -re4);
	double x4 = fma(*x2, *x2, -t);

	*y2 = fma(*x2, *y2, im2);
	*x2 = __hiloint2double(__double2hiint(x4) - 0x00100000, __double2loint(x4));
}

/* !(|z|^2 < 4). The square is at least +0, or NaN, so its upper half tells. */
__device__ __forceinline__ bool outside(double x, double y)
{
	return (unsigned)__double2hiint(mq_norm2(x, y)) >= 0x40100000u;
}

/* The same of 2z: |2z|^2 >= 16. */
__device__ __forceinline__ bool fast_outside(double x2, double y2)
{
	return (unsigned)__double2hiint(mq_norm2(x2, y2)) >= 0x40300000u;
}

__device__ __forceinline__ bool same(double a, double b)
{
	return __double2loint(a) == __double2loint(b) && __double2hiint(a) == __double2hiint(b);
}

__device__ __forceinline__ bool in_bulb(double re, double im)
{
	const double margin = 9.094947017729282e-13; /* 2^-40 */
	double u = re - 0.25, v = re + 1.0, y2 = im * im, q = fma(u, u, y2);

	return (q * (q + u) < fma(0.25, y2, -margin)) | (fma(v, v, y2) < 0.0625 - margin);
}

/* What the first kernel knows of a sample: it has ended; it goes on; rest takes it; it may have ended
 * within the block that begins at z. */
enum { ENDED, GOES_ON, LEFT, LATE };

/* Blocks of steps for the samples of a warp that go on, which all have the same count, while enough of
 * them do. */
__device__ __forceinline__ void first_blocks(struct mq_point c, uint32_t limit, struct mq_point *z,
                                             uint32_t *n, uint32_t *state)
{
	double re4 = 4 * c.x, im2 = 2 * c.y, x = 2 * z->x, y = 2 * z->y;
	uint32_t last = min(FIRST, limit), i;

	for (i = SOON; i + FIRST_BLOCK <= last; i += FIRST_BLOCK) {
		if (__popc(__ballot_sync(FULL, *state == GOES_ON)) <= FEW)
			break;
		if (*state == GOES_ON) {
			double x0 = x, y0 = y;

#pragma unroll
			for (unsigned k = 0; k < FIRST_BLOCK; k++)
				fast_step(&x, &y, re4, im2);
			if (fast_outside(x, y)) {
				x = x0;
				y = y0;
				*state = LATE;
			} else {
				*n += FIRST_BLOCK;
			}
		}
	}
	z->x = 0.5 * x;
	z->y = 0.5 * y;
	if (*state == LATE) {
		*state = LEFT;
		for (i = 0; i < FIRST_BLOCK; i++) {
			mq_step(&z->x, &z->y, c.x, c.y);
			if (outside(z->x, z->y)) {
				*state = ENDED;
				break;
			}
			++*n;
		}
	}
}

/* The first steps of a warp's samples. True: more are needed. */
__device__ __forceinline__ bool first_steps(const struct mq_cuda_task &t, bool present,
                                            struct mq_point c, struct mq_point *z, uint32_t *count)
{
	double c2 = mq_norm2(c.x, c.y);
	uint32_t n = 0, state = ENDED;

	/* z after the first step is c. */
	*z = c;
	if (present && c2 < MQ_ESCAPE_R2) {
		if (t.shortcuts && in_bulb(c.x, c.y)) {
			n = t.limit;
		} else if (t.careful || c2 >= MQ_ESCAPE_R2 - 0x1p-20) {
			z->x = z->y = 0;
			state = LEFT;
		} else {
			/* What happens past the limit does not matter. */
			state = GOES_ON;
#pragma unroll
			for (n = 1; n < SOON; n++) {
				mq_step(&z->x, &z->y, c.x, c.y);
				if (outside(z->x, z->y)) {
					state = ENDED;
					break;
				}
			}
		}
	}
	if (__popc(__ballot_sync(FULL, state == GOES_ON)) > FEW)
		first_blocks(c, t.limit, z, &n, &state);
	*count = min(n, t.limit);
	return state != ENDED && n < t.limit;
}

/* What a lane of rest has in hand. (sx, sy) is the state that Brent compares with, taken at some step
 * before n; the next is taken at step `save`. */
struct orbit {
	double re4, im2;     /* c, and 2z, as fast_step() has them */
	double x, y, sx, sy;
	uint32_t n, save, sample;
	bool careful;
};

__device__ __forceinline__ void mark(struct orbit *o)
{
	uint32_t next = o->n + o->n / 8 + 64;

	o->sx = o->x;
	o->sy = o->y;
	o->save = next < o->n ? UINT32_MAX : next;
}

/* A block of steps. False: the sample may end within it, and is left where it was. */
__device__ __forceinline__ bool block(struct orbit *o, uint32_t limit, bool brent)
{
	double x = o->x, y = o->y;
	bool hit = false;

#pragma unroll
	for (unsigned i = 1; i <= BLOCK; i++) {
		fast_step(&x, &y, o->re4, o->im2);
		if (i % COMPARE == 0)
			hit |= __double2loint(x) == __double2loint(o->sx);
	}
	if (fast_outside(x, y) || (hit && brent) || limit - o->n < BLOCK)
		return false;
	o->x = x;
	o->y = y;
	o->n += BLOCK;
	if (o->n >= o->save)
		mark(o);
	return true;
}

/* A block step by step. True: the sample has ended, with count n. */
__device__ __forceinline__ bool exact_block(struct orbit *o, uint32_t limit, bool brent)
{
	double x = 0.5 * o->x, y = 0.5 * o->y, re = 0.25 * o->re4, im = 0.5 * o->im2;
	uint32_t stop = limit - o->n < BLOCK ? limit : o->n + BLOCK;
	bool end = false;

	while (!end && o->n < stop) {
		mq_step(&x, &y, re, im);
		if (outside(x, y)) {
			end = true;
		} else {
			o->n++;
			if (brent && same(2 * x, o->sx) && same(2 * y, o->sy))
				o->n = stop = limit;
		}
	}
	o->x = 2 * x;
	o->y = 2 * y;
	if (o->n >= o->save)
		mark(o);
	return end || o->n >= limit;
}

#endif
