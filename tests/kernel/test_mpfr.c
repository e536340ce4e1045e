/* test_mpfr: counts of sampled pixels against the same formula in 200-bit arithmetic, where rounding
 * plays no part. Doubles may differ only where the orbit is chaotic long enough to lose its bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <mpfr.h>

#include "tests/kernel/scenes.h"

#define BITS 200

struct exact {
	mpfr_t x, y, re, im, xx, yy, xy;
};

static uint32_t exact_count(struct exact *e, double re, double im, uint32_t limit)
{
	uint32_t n;

	mpfr_set_d(e->re, re, MPFR_RNDN);
	mpfr_set_d(e->im, im, MPFR_RNDN);
	mpfr_set_zero(e->x, 1);
	mpfr_set_zero(e->y, 1);
	mpfr_set_zero(e->xx, 1);
	mpfr_set_zero(e->yy, 1);
	for (n = 0; n < limit; n++) {
		mpfr_mul(e->xy, e->x, e->y, MPFR_RNDN);
		mpfr_mul_2ui(e->xy, e->xy, 1, MPFR_RNDN);
		mpfr_add(e->y, e->xy, e->im, MPFR_RNDN);
		mpfr_sub(e->x, e->xx, e->yy, MPFR_RNDN);
		mpfr_add(e->x, e->x, e->re, MPFR_RNDN);
		mpfr_sqr(e->xx, e->x, MPFR_RNDN);
		mpfr_sqr(e->yy, e->y, MPFR_RNDN);
		mpfr_add(e->xy, e->xx, e->yy, MPFR_RNDN);
		if (mpfr_cmp_ui(e->xy, 4) >= 0)
			break;
	}
	return n;
}

/* Compares `samples` pixels of a view; how many differ. */
static unsigned differing(const char *name, double re, double im, double step, uint32_t limit,
                          unsigned samples)
{
	struct mq_shade *shade = make_shade(1);
	struct mq_scene scene = {
		.grid = centred(re, im, step, 512, 512), .width = 512, .height = 512, .supersample = 1,
		.limit = limit, .keep_counts = true, .shortcuts = true, .shade = shade,
	};
	struct mq_backend *b = NULL;
	struct picture p;
	struct exact e;
	unsigned i, differ = 0, inside = 0;
	uint32_t h = 12345, least = UINT32_MAX;

	unsetenv("MANDELQ_CPU_ISA");
	assert_int_equal(mq_cpu_open(1, &b, NULL), MQ_OK);
	assert_int_equal(render_rows(b, &scene, 0, 512, &p), MQ_OK);
	mpfr_inits2(BITS, e.x, e.y, e.re, e.im, e.xx, e.yy, e.xy, (mpfr_ptr)0);
	for (i = 0; i < samples; i++) {
		uint32_t at, n;

		h = h * 1664525u + 1013904223u;
		at = h >> 14; /* 18 bits: 512 * 512 */
		n = exact_count(&e, mq_sample_re(&scene.grid, at % 512), mq_sample_im(&scene.grid, at / 512),
		                limit);
		if (n != p.counts[at]) {
			differ++;
			least = n < least ? n : least;
		}
		inside += n == limit;
	}
	mpfr_clears(e.x, e.y, e.re, e.im, e.xx, e.yy, e.xy, (mpfr_ptr)0);
	print_message("%s: %u of %u pixels differ (%.3f %%), %u inside\n", name, differ, samples,
	              100.0 * differ / samples, inside);
	if (differ)
		print_message("  the shortest orbit of them: %u steps\n", least);
	free_picture(&p);
	b->ops->close(b);
	free(shade);
	return differ;
}

static void test_far(void **state)
{
	(void)state;
	assert_int_equal(differing("outside", 2.5, 2.5, 6.0 / 512, 1000, 1000), 0);
	assert_int_equal(differing("whole set", -0.5, 0, 3.0 / 512, 100, 3000), 0);
	assert_int_equal(differing("deep inside", -0.1, 0.1, 0.2 / 512, 300, 1000), 0);
}

static void test_boundary(void **state)
{
	(void)state;
	assert_true(differing("shallow boundary", -0.743643887037151, 0.131825904205330, 4e-4 / 512, 1000,
	                      3000) <= 30);
}

static void test_dense(void **state)
{
	(void)state;
	assert_true(differing("dense boundary", -0.743643887037151, 0.131825904205330, 4e-9 / 512, 2000,
	                      2000) <= 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_far),
		cmocka_unit_test(test_boundary),
		cmocka_unit_test(test_dense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
