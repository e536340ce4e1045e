/* job_view: bounds as rationals, from them the grid, and the question whether double is fine
 * enough. Called by job.c at submit, and by the worker through mq_job_grid. */
#include "src/job_view.h"

#include <gmp.h>
#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <string.h>

#include "src/decimal.h"

#define COORDINATE_MAX 1e150
#define STEP_ULPS 4 /* fewer, and neighbouring samples begin to fall together */
#define AUTO_MAX 10000000u

/* Exact edges of the picture. */
struct bounds {
	mpq_t xmin, xmax, ymin, ymax;
};

static void bounds_init(struct bounds *b)
{
	mpq_inits(b->xmin, b->xmax, b->ymin, b->ymax, NULL);
}

static void bounds_clear(struct bounds *b)
{
	mpq_clears(b->xmin, b->xmax, b->ymin, b->ymax, NULL);
}

/* The view around re, im that is `height` high and height * ratio wide. */
static void bounds_around(struct bounds *b, const mpq_t re, const mpq_t im, const mpq_t height,
                          const mpq_t ratio)
{
	mpq_t half;

	mpq_init(half);
	mpq_div_2exp(half, height, 1);
	mpq_sub(b->ymin, im, half);
	mpq_add(b->ymax, im, half);
	mpq_mul(half, half, ratio);
	mpq_sub(b->xmin, re, half);
	mpq_add(b->xmax, re, half);
	mpq_clear(half);
}

static enum mq_status bounds_from_center(struct bounds *b, const struct mq_job *job,
                                         struct mq_error *err)
{
	mpq_t re, im, zoom, ratio;
	enum mq_status status;

	mpq_inits(re, im, zoom, ratio, NULL);
	status = mq_decimal_parse(re, job->number[0], "--center", err);
	if (!status)
		status = mq_decimal_parse(im, job->number[1], "--center", err);
	if (!status)
		status = mq_decimal_parse(zoom, job->number[2], "--zoom", err);
	if (!status && mpq_sgn(zoom) <= 0)
		status = mq_fail(err, MQ_EINVAL, "--zoom: must be greater than 0");
	if (!status) {
		mpq_inv(zoom, zoom);
		mpq_mul_2exp(zoom, zoom, 2); /* the height */
		mpq_set_ui(ratio, job->width, job->height);
		mpq_canonicalize(ratio);
		bounds_around(b, re, im, zoom, ratio);
	}
	mpq_clears(re, im, zoom, ratio, NULL);
	return status;
}

static enum mq_status bounds_from_job(struct bounds *b, const struct mq_job *job,
                                      struct mq_error *err)
{
	mpq_ptr edge[4] = { b->xmin, b->xmax, b->ymin, b->ymax };

	if (job->form == MQ_VIEW_CENTER)
		return bounds_from_center(b, job, err);
	for (int i = 0; i < 4; i++) {
		enum mq_status status = mq_decimal_parse(edge[i], job->number[i], "--view", err);
		if (status)
			return status;
	}
	if (mpq_cmp(b->xmin, b->xmax) >= 0)
		return mq_fail(err, MQ_EINVAL,
		               "--view: empty or inverted: XMIN must be less than XMAX");
	if (mpq_cmp(b->ymin, b->ymax) >= 0)
		return mq_fail(err, MQ_EINVAL,
		               "--view: empty or inverted: YMIN must be less than YMAX");
	return MQ_OK;
}

static double difference_over(const mpq_t high, const mpq_t low, uint64_t parts)
{
	mpq_t q, n;

	mpq_inits(q, n, NULL);
	mpq_sub(q, high, low);
	mpq_set_ui(n, parts, 1);
	mpq_div(q, q, n);
	double result = mq_rational_to_double(q);
	mpq_clears(q, n, NULL);
	return result;
}

static void grid_of(const struct bounds *b, const struct mq_job *job, struct mq_grid *out)
{
	out->xmin = mq_rational_to_double(b->xmin);
	out->ymax = mq_rational_to_double(b->ymax);
	out->dx = difference_over(b->xmax, b->xmin, (uint64_t)job->width * job->supersample);
	out->dy = difference_over(b->ymax, b->ymin, (uint64_t)job->height * job->supersample);
}

static double ulp(double x)
{
	x = fabs(x);
	return nextafter(x, INFINITY) - x;
}

/* Is the step of n samples from low to high wide enough for coordinates that large? */
static bool step_is_wide(double low, double high, double step)
{
	return step >= STEP_ULPS * ulp(fmax(fabs(low), fabs(high)));
}

static bool is_wide(const struct bounds *b, const struct mq_job *job)
{
	struct mq_grid g;

	grid_of(b, job, &g);
	return step_is_wide(g.xmin, mq_rational_to_double(b->xmax), g.dx) &&
	       step_is_wide(mq_rational_to_double(b->ymin), g.ymax, g.dy);
}

static bool is_near(const struct bounds *b)
{
	const mpq_srcptr edge[4] = { b->xmin, b->xmax, b->ymin, b->ymax };

	for (int i = 0; i < 4; i++)
		if (!(fabs(mq_rational_to_double(edge[i])) <= COORDINATE_MAX))
			return false;
	return true;
}

/* The center, the height and width / height of a view. */
struct shape {
	mpq_t re, im, height, ratio;
};

static void shape_of(struct shape *s, const struct bounds *b)
{
	mpq_inits(s->re, s->im, s->height, s->ratio, NULL);
	mpq_add(s->re, b->xmin, b->xmax);
	mpq_div_2exp(s->re, s->re, 1);
	mpq_add(s->im, b->ymin, b->ymax);
	mpq_div_2exp(s->im, s->im, 1);
	mpq_sub(s->height, b->ymax, b->ymin);
	mpq_sub(s->ratio, b->xmax, b->xmin);
	mpq_div(s->ratio, s->ratio, s->height);
}

static void shape_clear(struct shape *s)
{
	mpq_clears(s->re, s->im, s->height, s->ratio, NULL);
}

/* q to so many significant digits, rounded as asked. */
static void number_text(char out[48], const mpq_t q, int digits, mpfr_rnd_t round)
{
	mpfr_t x;

	mpfr_init2(x, 64);
	mpfr_set_q(x, q, round);
	mpfr_snprintf(out, 48, "%.*R*g", digits, round, x);
	mpfr_clear(x);
	char *plus = strstr(out, "e+");
	if (plus)
		memmove(plus + 1, plus + 2, strlen(plus + 2) + 1);
}

/* A zoom that double can about carry at the center of s; 0: there is none. */
static double guess_deepest(const struct shape *s, const struct mq_job *job)
{
	double re = fabs(mq_rational_to_double(s->re)), im = fabs(mq_rational_to_double(s->im));
	double ratio = mq_rational_to_double(s->ratio);
	double across = (double)job->width * job->supersample,
	       down = (double)job->height * job->supersample;
	double zoom = 1e300;

	zoom = fmin(zoom, 1 / (ulp(im) * down));
	zoom = fmin(zoom, ratio / (ulp(re) * across));
	return 4 / zoom <= COORDINATE_MAX && 4 / zoom * ratio <= COORDINATE_MAX ? zoom : 0;
}

/* The deepest zoom of this shape that passes, rounded down to two digits, so that it can be typed
 * in as it stands. False: there is none. */
static bool deepest_zoom(const struct shape *s, const struct mq_job *job, char out[48])
{
	double zoom = guess_deepest(s, job);
	bool found = false;
	struct bounds b;
	mpq_t height;

	bounds_init(&b);
	mpq_init(height);
	/* The guess took the center's ulp; the edges' may be twice that. A few steps always do. */
	for (int i = 0; i < 8 && zoom > 0 && !found; i++) {
		mpq_set_d(height, zoom);
		number_text(out, height, 2, MPFR_RNDD);
		if (mq_decimal_parse(height, out, "--zoom", NULL) || mpq_sgn(height) <= 0)
			break;
		mpq_inv(height, height);
		mpq_mul_2exp(height, height, 2);
		bounds_around(&b, s->re, s->im, height, s->ratio);
		found = is_near(&b) && is_wide(&b, job);
		zoom *= 0.7;
	}
	mpq_clear(height);
	bounds_clear(&b);
	return found;
}

static enum mq_status refuse_depth(const struct bounds *b, const struct mq_job *job,
                                   struct mq_error *err)
{
	char asked[48], deepest[48], samples[32] = "";
	bool by_zoom = job->form == MQ_VIEW_CENTER;
	enum mq_status status;
	struct shape s;
	mpq_t zoom;

	mpq_init(zoom);
	shape_of(&s, b);
	mpq_inv(zoom, s.height);
	mpq_mul_2exp(zoom, zoom, 2);
	number_text(asked, zoom, 3, MPFR_RNDN);
	if (job->supersample > 1)
		snprintf(samples, sizeof(samples), " with --supersample=%u", job->supersample);
	if (deepest_zoom(&s, job, deepest))
		status = mq_fail(
			err, MQ_EINVAL,
			"%s%s is too deep for double precision at this size: the deepest zoom for "
			"%ux%u%s here is %s%s",
			by_zoom ? "--zoom: " : "--view: zoom ", asked, job->width, job->height,
			samples, deepest, by_zoom ? "" : " (zoom is 4 / height)");
	else
		status = mq_fail(err, MQ_EINVAL,
		                 "%s: the step between samples of %ux%u%s is under %d ulp of the "
		                 "coordinates: take a less narrow view or a smaller size",
		                 by_zoom ? "--center" : "--view", job->width, job->height, samples,
		                 STEP_ULPS);
	shape_clear(&s);
	mpq_clear(zoom);
	return status;
}

/* The side that makes pixels square when the other side stays; 0: none within the limits. */
static uint32_t square_side(uint32_t side, const mpq_t extent, const mpq_t other_extent)
{
	mpq_t q, n;

	mpq_inits(q, n, NULL);
	mpq_div(q, other_extent, extent);
	mpq_set_ui(n, side, 1);
	mpq_mul(q, q, n);
	double exact = mq_rational_to_double(q);
	mpq_clears(q, n, NULL);
	if (!(exact >= 0.5 && exact < MQ_JOB_SIDE_MAX + 0.5))
		return 0;
	return (uint32_t)(exact + 0.5);
}

static void warn_shape(const struct bounds *b, const struct mq_job *job,
                       struct mq_job_warnings *warnings)
{
	struct mq_grid g;
	uint32_t width = job->width, height;
	mpq_t across, down;

	grid_of(b, job, &g);
	if (fabs(g.dx - g.dy) <= 1e-9 * fmax(g.dx, g.dy))
		return;
	mpq_inits(across, down, NULL);
	mpq_sub(across, b->xmax, b->xmin);
	mpq_sub(down, b->ymax, b->ymin);
	height = square_side(job->width, across, down);
	if (!height) {
		height = job->height;
		width = square_side(job->height, down, across);
	}
	double apart = fmax(g.dx, g.dy) / fmin(g.dx, g.dy);
	const char *longer = g.dx > g.dy ? "wide as high" : "high as wide";
	if (width && (width != job->width || height != job->height))
		mq_job_warn(warnings,
		            "--view: pixels are not square (%.6g times as %s): --size=%ux%u would "
		            "make them square",
		            apart, longer, width, height);
	else
		mq_job_warn(warnings,
		            "--view: pixels are not square (%.6g times as %s), and no size near "
		            "this one makes them so",
		            apart, longer);
	mpq_clears(across, down, NULL);
}

enum mq_status mq_job_view_check(const struct mq_job *job, struct mq_job_warnings *warnings,
                                 struct mq_error *err)
{
	const char *option = job->form == MQ_VIEW_CENTER ? "--center and --zoom" : "--view";
	enum mq_status status;
	struct bounds b;

	bounds_init(&b);
	status = bounds_from_job(&b, job, err);
	if (status)
		goto out;
	if (!is_near(&b))
		status = mq_fail(err, MQ_EINVAL, "%s: the view reaches past the limit of +-%g",
		                 option, COORDINATE_MAX);
	else if (!is_wide(&b, job))
		status = refuse_depth(&b, job, err);
	else
		warn_shape(&b, job, warnings);
out:
	bounds_clear(&b);
	return status;
}

/* floor(log2(q)) for q > 0. */
static long floor_log2(const mpq_t q)
{
	long e = (long)mpz_sizeinbase(mpq_numref(q), 2) - (long)mpz_sizeinbase(mpq_denref(q), 2);
	mpq_t power;

	mpq_init(power);
	mpq_set_ui(power, 1, 1);
	if (e >= 0)
		mpq_mul_2exp(power, power, (mp_bitcnt_t)e);
	else
		mpq_div_2exp(power, power, (mp_bitcnt_t)-e);
	if (mpq_cmp(q, power) < 0)
		e--;
	mpq_clear(power);
	return e;
}

enum mq_status mq_job_view_iterations(const struct mq_job *job, uint32_t *out, struct mq_error *err)
{
	enum mq_status status;
	struct bounds b;

	bounds_init(&b);
	status = bounds_from_job(&b, job, err);
	if (!status) {
		mpq_sub(b.ymax, b.ymax, b.ymin);
		mpq_inv(b.ymax, b.ymax);
		mpq_mul_2exp(b.ymax, b.ymax, 2);
		long level = floor_log2(b.ymax);
		uint64_t n = level > 0 ? 1000 + 32 * (uint64_t)level * (uint64_t)level : 1000;
		*out = n < AUTO_MAX ? (uint32_t)n : AUTO_MAX;
	}
	bounds_clear(&b);
	return status;
}

/* 2.5 high, or, where the picture is too narrow for that, 2.7 wide; three digits, rounded down. */
void mq_job_view_whole_set(uint32_t width, uint32_t height, char out[32])
{
	if ((uint64_t)width * 25 >= (uint64_t)height * 27) {
		snprintf(out, 32, "1.6");
		return;
	}
	int exponent = -10;
	uint64_t zoom = (uint64_t)width * 400000000000 /
	                ((uint64_t)height * 27); /* 4 / 2.7 W/H 10^10 */
	for (; zoom >= 1000; exponent++)
		zoom /= 10;
	snprintf(out, 32, "%ue%d", (unsigned)zoom, exponent);
}

enum mq_status mq_job_grid(const struct mq_job *job, struct mq_grid *out, struct mq_error *err)
{
	enum mq_status status;
	struct bounds b;

	bounds_init(&b);
	status = bounds_from_job(&b, job, err);
	if (!status)
		grid_of(&b, job, out);
	bounds_clear(&b);
	return status;
}
