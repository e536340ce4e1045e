/* escape_vec: what escape_x86.h does with vectors of samples: the functions of escape.h, lane by lane
 * the same bits, and the test for points known to be inside. Included by it only. */
#ifndef MQ_ESCAPE_VEC_H
#define MQ_ESCAPE_VEC_H

#include "kernels/escape.h"

#define INSIDE_MARGIN 0x1p-13 /* of v_known_inside() */

V_FN void v_step(vd *x, vd *y, vd re, vd im)
{
	vd t = vd_fms(*y, *y, re);

	*y = vd_fma(vd_add(*x, *x), *y, im);
	*x = vd_fms(*x, *x, t);
}

/* Keeps the compiler from moving instructions across. */
#define KEEP_ORDER(a, b) __asm__ volatile("" : "+v"(a), "+v"(b))

/* A step of two vectors, interleaved: the CPU looks ahead some 60 instructions only, so the order
 * decides how many find their operands ready (96 % of the FMA bound, against 90 % one by one). */
V_FN void v_step_pair(vd *x0, vd *x1, vd *y0, vd *y1, const double *re, const double *im)
{
	vd d0 = vd_add(*x0, *x0), d1 = vd_add(*x1, *x1);
	vd t0 = vd_fms(*y0, *y0, vd_load(re)), t1 = vd_fms(*y1, *y1, vd_load(re + V_LANES));

	KEEP_ORDER(d0, d1);
	KEEP_ORDER(t0, t1);
	*y0 = vd_fma(d0, *y0, vd_load(im));
	*y1 = vd_fma(d1, *y1, vd_load(im + V_LANES));
	KEEP_ORDER(*y0, *y1);
	*x0 = vd_fms(*x0, *x0, t0);
	*x1 = vd_fms(*x1, *x1, t1);
	KEEP_ORDER(*x0, *x1);
}

/* k steps of six vectors, c at re and im, from x and y to to_x and to_y. From memory to memory, named one by
 * one and behind a barrier: whatever else is done with them keeps the compiler from spilling them
 * in the loop, at each step. */
V_FN void v_steps(const double *x, const double *y, const double *re, const double *im, double *to_x,
                  double *to_y, unsigned k)
{
	vd x0 = vd_load(x), x1 = vd_load(x + V_LANES), x2 = vd_load(x + 2 * V_LANES);
	vd x3 = vd_load(x + 3 * V_LANES), x4 = vd_load(x + 4 * V_LANES), x5 = vd_load(x + 5 * V_LANES);
	vd y0 = vd_load(y), y1 = vd_load(y + V_LANES), y2 = vd_load(y + 2 * V_LANES);
	vd y3 = vd_load(y + 3 * V_LANES), y4 = vd_load(y + 4 * V_LANES), y5 = vd_load(y + 5 * V_LANES);

	for (unsigned i = 0; i < k; i++) {
		v_step_pair(&x0, &x1, &y0, &y1, re, im);
		v_step_pair(&x2, &x3, &y2, &y3, re + 2 * V_LANES, im + 2 * V_LANES);
		v_step_pair(&x4, &x5, &y4, &y5, re + 4 * V_LANES, im + 4 * V_LANES);
	}
	vd_store(to_x, x0), vd_store(to_x + V_LANES, x1), vd_store(to_x + 2 * V_LANES, x2);
	vd_store(to_x + 3 * V_LANES, x3), vd_store(to_x + 4 * V_LANES, x4), vd_store(to_x + 5 * V_LANES, x5);
	vd_store(to_y, y0), vd_store(to_y + V_LANES, y1), vd_store(to_y + 2 * V_LANES, y2);
	vd_store(to_y + 3 * V_LANES, y3), vd_store(to_y + 4 * V_LANES, y4), vd_store(to_y + 5 * V_LANES, y5);
	__asm__ volatile("" : : : "memory");
}

V_FN vd v_norm2(vd x, vd y)
{
	return vd_fma(x, x, vd_mul(y, y));
}

/* mq_log2() */
V_FN vd v_log2(vd v)
{
	const vd one = vd_set(1.0);
	vi bits = vi_from_bits(v);
	vi e = vi_sub(vi_shr52(vi_add(bits, vi_set(0x00095f619980c433))), vi_set(1023));
	vd m = vd_from_bits(vi_sub(bits, vi_shl52(e)));
	vd s = vd_div(vd_sub(m, one), vd_add(m, one)), s2 = vd_mul(s, s);
	vd p = vd_set(0.22195308321368667);

	p = vd_fma(p, s2, vd_set(0.26230818925253880));
	p = vd_fma(p, s2, vd_set(0.32059889797532520));
	p = vd_fma(p, s2, vd_set(0.41219858311113240));
	p = vd_fma(p, s2, vd_set(0.57707801635558536));
	p = vd_fma(p, s2, vd_set(0.96179669392597560));
	p = vd_fma(p, s2, vd_set(2.8853900817779268));
	return vd_fma(p, s, vd_from_int(e));
}

/* mq_smooth_part() */
V_FN vd v_smooth_part(vd re, vd im, vd x, vd y)
{
	vd r2 = v_norm2(x, y), big = vd_set(1e300);
	vm on = vd_lt(r2, vd_set(MQ_SMOOTH_R2));
	vi k = vi_set(1);
	unsigned i;

	for (i = 0; i < MQ_SMOOTH_STEPS && vm_bits(on); i++) {
		v_step(&x, &y, re, im);
		r2 = vd_pick(on, v_norm2(x, y), r2);
		k = vi_count(k, on);
		on = vm_and(on, vd_lt(r2, vd_set(MQ_SMOOTH_R2)));
	}
	r2 = vd_pick(vd_lt(r2, big), r2, big);
	return vd_sub(vd_from_int(k), v_log2(vd_mul(vd_set(0.5), v_log2(r2))));
}

/* Colours and smooth counts of escaped lanes; z as escaped at step n. */
V_FN void v_shade(const struct mq_scene *scene, vd re, vd im, vd x, vd y, vi n, uint32_t *colours,
                  float *smooth)
{
	const struct mq_shade *shade = scene->shade;
	vd v = vd_add(vd_from_int(n), v_smooth_part(re, im, x, y)), t;

	if (shade->channels == 3) {
		t = vd_fma(v, vd_set(shade->inv_period), vd_set(shade->offset));
		t = vd_sub(t, vd_floor(t));
		v_lookup(colours, shade->lut, vd_mul(t, vd_set((double)MQ_LUT_SIZE)), MQ_LUT_SIZE);
	}
	if (scene->keep_counts)
		vd_store_float(smooth, v);
}

/* Lanes in the main cardioid, q (q + a) < im^2 / 4 with a = re - 1/4 and q = a^2 + im^2, or in the bulb
 * of period 2, |c + 1|^2 < 1/16, and far enough from their edges that the rounded orbit, too, stays
 * inside for ever.
 *
 * Why: let U be the component of the filled Julia set's interior that holds 0, g the map of U to itself
 * (z^2 + c, or that twice), w its attracting fixed point, l = 1 - |g'(w)|. Seen on the unit disc with
 * w at its centre, g is z (z + L) / (1 + L* z), |L| = 1 - l, but for a turn; its critical point, the
 * orbit's start 0, has a radius R with 1 - R >= sqrt(l); and from R g leads nearer to the centre, by at
 * least l / 16 in the hyperbolic metric. Rounding moves a point by e < 2^-50 (by 2^-47 in two steps),
 * in that metric by at most 2 e / d, with d the distance from the edge of U. Koebe: d >= l r / 16 within
 * R, where r is the radius of a disc around w that g maps into itself: l, or l / 12 for period 2. So
 * the orbit stays within R if 32 e / (l r) < l / 16: if l > 2^-13.6, for period 2 if l > 2^-11.4. The
 * margin gives l > 0.8 * 2^-13 and l > 2^-10; the test's own rounding is some 2^-50.
 * An orbit nearer to the edge is iterated. */
V_FN vm v_known_inside(vd re, vd im)
{
	const vd margin = vd_set(-INSIDE_MARGIN);
	vd a = vd_sub(re, vd_set(0.25)), b = vd_add(re, vd_set(1.0)), i2 = vd_mul(im, im);
	vd q = vd_fma(a, a, i2);
	vd cardioid = vd_fms(q, vd_add(q, a), vd_mul(i2, vd_set(0.25)));
	vd bulb = vd_sub(vd_fma(b, b, i2), vd_set(0.0625));

	return vm_or(vd_lt(cardioid, margin), vd_lt(bulb, margin));
}

#endif
