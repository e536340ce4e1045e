/* test_cpu: every instruction set of this CPU against the scalar reference, and the reference against
 * escape.h, bit for bit, by class of input; and what backend.h promises of slots and cancelling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <pthread.h>
#include <time.h>

#include "tests/kernel/scenes.h"

static const char *const isas[] = { "avx2", "avx512" };
#define ISAS 2

static struct mq_backend *reference, *fast[ISAS];
static struct mq_shade *shades[2]; /* gray, RGB */

static int open_all(void **state)
{
	unsigned i;

	(void)state;
	reference = open_isa("scalar", 1);
	for (i = 0; i < ISAS; i++) {
		fast[i] = open_isa(isas[i], 2);
		if (!fast[i])
			print_message("%s is not tested: this CPU lacks it\n", isas[i]);
	}
	shades[0] = make_shade(1);
	shades[1] = make_shade(3);
	return reference ? 0 : -1;
}

static int close_all(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < ISAS; i++)
		if (fast[i])
			fast[i]->ops->close(fast[i]);
	reference->ops->close(reference);
	free(shades[0]);
	free(shades[1]);
	return 0;
}

static void same_picture(const struct picture *a, const struct picture *b, const char *what)
{
	size_t i;

	for (i = 0; a->counts && i < a->area; i++)
		if (a->counts[i] != b->counts[i])
			fail_msg("%s: pixel %zu: count %u, should be %u", what, i, b->counts[i], a->counts[i]);
	if (a->smooth && memcmp(a->smooth, b->smooth, a->area * sizeof *a->smooth) != 0)
		fail_msg("%s: smooth counts differ", what);
	if (memcmp(a->pixels, b->pixels, a->bytes) != 0)
		fail_msg("%s: pixels differ", what);
	if (a->inside != b->inside)
		fail_msg("%s: %llu inside, should be %llu", what, (unsigned long long)b->inside,
		         (unsigned long long)a->inside);
}

/* One scene, in one colouring, on every instruction set, with and without shortcuts. */
static void check_scene(const struct mq_scene *given, const char *what)
{
	struct mq_scene scene = *given;
	struct picture want, got;
	unsigned i, shortcuts;

	assert_int_equal(render_rows(reference, &scene, 0, scene.height, &want), MQ_OK);
	for (i = 0; i < ISAS; i++) {
		for (shortcuts = 0; fast[i] && shortcuts < 2; shortcuts++) {
			char name[200];

			scene.shortcuts = shortcuts;
			snprintf(name, sizeof name, "%s, %ux%u, limit %u, N %u, %u channels, %s%s", what,
			         scene.width, scene.height, scene.limit, scene.supersample,
			         scene.shade->channels, isas[i], shortcuts ? "" : ", no shortcuts");
			assert_int_equal(render_rows(fast[i], &scene, 0, scene.height, &got), MQ_OK);
			same_picture(&want, &got, name);
			free_picture(&got);
		}
	}
	free_picture(&want);
}

/* All colourings of a grid. */
static void check_grid(struct mq_grid grid, uint32_t width, uint32_t height, uint32_t limit,
                       const char *what)
{
	unsigned rgb, keep;

	for (rgb = 0; rgb < 2; rgb++) {
		for (keep = 0; keep < 2; keep++) {
			struct mq_scene scene = {
				.grid = grid, .width = width, .height = height, .supersample = 1,
				.limit = limit, .keep_counts = keep, .shade = shades[rgb],
			};

			if (keep || rgb) /* gray without planes: in test_sizes */
				check_scene(&scene, what);
		}
	}
}

static const struct {
	const char *name;
	double re, im, step;
	uint32_t width, height, limit;
} views[] = {
	{ "whole set", 0, 0, 4.0 / 120, 120, 120, 500 },
	{ "whole set, off centre", -0.5, 0.01, 3.0 / 97, 97, 83, 300 },
	{ "dense boundary", -0.743643887037151, 0.131825904205330, 1e-6, 64, 48, 10000 },
	{ "dense boundary, deep", -0.743643887037151, 0.131825904205330, 1e-13, 40, 30, 5000 },
	{ "elephant valley", 0.2925755, -0.0149977, 1e-5, 60, 40, 3000 },
	{ "period 1", -0.1, 0.1, 1e-3, 40, 30, 5000 },
	{ "period 2", -1, 0, 1e-3, 40, 30, 5000 },
	{ "period 3", -0.1225611, 0.7448617, 2e-3, 40, 30, 5000 },
	{ "period 3 on the axis", -1.7548777, 0, 1e-4, 40, 31, 5000 },
	{ "period 4", -1.3107026, 0, 1e-3, 40, 30, 5000 },
	{ "period 5", -0.5043401, 0.5627657, 1e-3, 40, 30, 5000 },
	{ "cusp", 0.25, 0, 1e-6, 40, 30, 10000 },
	{ "pinch", -0.75, 0, 1e-5, 40, 30, 10000 },
	{ "bulb margin", -1.25, 0, 1e-7, 40, 30, 5000 },
	{ "far outside", 100, -50, 10, 50, 50, 100 },
	{ "huge", 0, 0, 1e150, 33, 29, 100 },
	{ "overflow in a step", 1e300, 1e300, 1e299, 23, 31, 100 },
	{ "overflow of the coordinates", 1e308, -1e308, 1e307, 23, 31, 100 },
	{ "near -2", -2, 0, 1e-3, 40, 31, 2000 },
	{ "near -2, at 1e-9", -2, 0, 1e-9, 40, 31, 2000 },
	{ "near -2, at 4 ulp", -2, 0, 2e-15, 40, 31, 10000 },
	{ "the circle of radius 2", 1.4142135623730951, 1.4142135623730951, 1e-15, 40, 31, 1000 },
	{ "the ring under it", 0, 2, 1e-8, 50, 50, 1000 },
	{ "antenna tip", -1.9999, 0, 1e-6, 40, 31, 5000 },
	{ "i", 0, 1, 1e-9, 40, 30, 3000 },
};

static void test_views(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof views / sizeof *views; i++)
		check_grid(centred(views[i].re, views[i].im, views[i].step, views[i].width, views[i].height),
		           views[i].width, views[i].height, views[i].limit, views[i].name);
}

/* Grids along the margins of cardioid and bulb, at many distances on both sides. */
static void test_margins(void **state)
{
	static const double steps[] = { 1e-3, 1e-5, 1e-8, 1e-12, 1e-15 };
	unsigned i, k;

	(void)state;
	for (k = 0; k < sizeof steps / sizeof *steps; k++) {
		for (i = 0; i < 16; i++) {
			double a = 3.14159265358979 * (i + 0.37) / 16, s = sin(a), c = cos(a);
			/* c = w/2 - w^2/4, w on the unit circle */
			double re = c / 2 - (c * c - s * s) / 4, im = s / 2 - c * s / 2;
			struct mq_scene scene = {
				.width = 9, .height = 7, .supersample = 1, .limit = 4000,
				.keep_counts = true, .shade = shades[1],
			};

			scene.grid = centred(re, im, steps[k], 9, 7);
			check_scene(&scene, "cardioid margin");
			scene.grid = centred(-1 + c / 4, s / 4, steps[k], 9, 7);
			check_scene(&scene, "bulb margin");
		}
	}
}

static void test_limits(void **state)
{
	static const uint32_t limits[] = { 1, 2, 3, 7, 12, 13, 14, 28, 29, 30, 36, 37, 38, 61, 62, 63, 64, 65, 66, 127, 128,
	                                   129, 255, 256, 257, 277, 278, 316, 317, 372, 373, 374, 397, 10000 };
	unsigned i;

	(void)state;
	for (i = 0; i < sizeof limits / sizeof *limits; i++) {
		check_grid(centred(-0.5, 0, 0.05, 61, 61), 61, 61, limits[i], "limits");
		check_grid(centred(-0.7436, 0.1318, 1e-5, 40, 30), 40, 30, limits[i], "limits, dense");
		check_grid(centred(-2, 0, 1e-9, 30, 21), 30, 21, limits[i], "limits, near -2");
	}
}

static void test_sizes(void **state)
{
	uint32_t width, n;
	unsigned rgb;

	(void)state;
	for (width = 1; width <= 70; width++) {
		for (n = 1; n <= 3; n++) {
			for (rgb = 0; rgb < 2; rgb++) {
				uint32_t height = 1 + width * 7 % 23;
				struct mq_scene scene = {
					.grid = centred(-0.6, width % 3 ? 0 : 0.1, 2.5 / (width * n), width * n,
					                height * n),
					.width = width, .height = height, .supersample = n, .limit = 150,
					.shade = shades[rgb],
				};

				check_scene(&scene, "sizes");
			}
		}
	}
}

static double uniform(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(*seed >> 11) * 0x1p-53;
}

static void test_random(void **state)
{
	uint64_t seed = 20240607;
	unsigned i;

	(void)state;
	for (i = 0; i < 150; i++) {
		uint32_t width = 1 + (uint32_t)(uniform(&seed) * 60), height = 1 + (uint32_t)(uniform(&seed) * 40);
		double re = uniform(&seed) * 4 - 2.5, im = uniform(&seed) * 3 - 1.5;
		double step = pow(10, -1 - uniform(&seed) * 13);
		uint32_t limit = 1 + (uint32_t)pow(10, uniform(&seed) * 3.2);
		struct mq_scene scene = {
			.width = width, .height = height, .supersample = 1 + i % 7 / 5, .limit = limit,
			.keep_counts = i % 7 < 5, .shade = shades[i % 2],
		};

		scene.grid = centred(re, im, step, width * scene.supersample, height * scene.supersample);
		check_scene(&scene, "random");
	}
}

/* Rows whose imaginary parts are exact negatives, from tiles of any position. */
static void test_mirror(void **state)
{
	static const uint32_t heights[] = { 1, 2, 3, 17, 64, 65 };
	unsigned i, k, isa, n, rgb;

	(void)state;
	for (i = 0; i < sizeof heights / sizeof *heights; i++) {
		for (k = 0; k < 3; k++) {
			for (n = 1; n <= 3; n++) {
				uint32_t height = heights[i];
				double step = k == 0 ? 4.0 / 64 : k == 1 ? 0.03 : 1e-3 / 3;
				struct mq_scene scene = {
					.grid = centred(-0.7, (k == 1) * 0.015 * height, step / n, 19 * n, height * n),
					.width = 19, .height = height, .supersample = n, .limit = 200,
					.keep_counts = n == 1,
				};

				for (rgb = 0; rgb < 2; rgb++) {
					scene.shade = shades[rgb];
					check_scene(&scene, "mirror");
				}
				for (isa = 0; isa < ISAS && height > 4; isa++) {
					uint32_t row0 = height / 3, rows = height - row0 - 1;
					struct picture want, got;

					if (!fast[isa])
						continue;
					scene.shortcuts = true;
					assert_int_equal(render_rows(reference, &scene, row0, rows, &want), 0);
					assert_int_equal(render_rows(fast[isa], &scene, row0, rows, &got), 0);
					same_picture(&want, &got, "mirror in a tile");
					free_picture(&want);
					free_picture(&got);
				}
			}
		}
	}
}

/* The reference itself, against the contract called here, without FMA hardware's help. */
static void test_reference(void **state)
{
	struct mq_scene scene = {
		.grid = centred(-0.55, 0.2, 0.04, 71, 53), .width = 71, .height = 53, .supersample = 1,
		.limit = 400, .keep_counts = true, .shade = shades[1],
	};
	uint64_t inside = 0;
	struct picture p;
	uint32_t i, j;

	(void)state;
	assert_int_equal(render_rows(reference, &scene, 0, 53, &p), MQ_OK);
	for (j = 0; j < 53; j++) {
		for (i = 0; i < 71; i++) {
			double re = mq_sample_re(&scene.grid, i), im = mq_sample_im(&scene.grid, j), v;
			size_t at = j * 71 + i;
			struct mq_point z;
			uint32_t n = mq_escape_count(re, im, 400, &z), colour = shades[1]->inside;

			v = n;
			if (n < 400) {
				v = n + mq_smooth_part(re, im, z);
				colour = mq_colour(shades[1], v);
			}
			inside += n == 400;
			assert_int_equal(p.counts[at], n);
			assert_true(p.smooth[at] == (float)v);
			assert_int_equal(p.pixels[3 * at] | p.pixels[3 * at + 1] << 8 | p.pixels[3 * at + 2] << 16,
			                 colour);
		}
	}
	assert_int_equal(p.inside, inside);
	free_picture(&p);
}

/* A point beside the pinch of cardioid and bulb, which a test without margin calls inside. The count
 * is floor(pi / 1e-8) - 2, as the theory of the pinch has it: n * |im| tends to pi. */
static void test_pinch(void **state)
{
	struct mq_scene scene = {
		.grid = { .xmin = -0.75 - 0.5, .dx = 1, .ymax = 1e-8 + 0.5, .dy = 1 },
		.width = 1, .height = 1, .supersample = 1, .limit = 400000000, .keep_counts = true,
		.shortcuts = true, .shade = shades[0],
	};
	struct picture p;
	unsigned i;

	(void)state;
	scene.grid.xmin = -0.75 - 0x1p-40;
	scene.grid.dx = 0x1p-39;
	scene.grid.dy = 0x1p-100;
	scene.grid.ymax = 1e-8;
	assert_true(mq_sample_re(&scene.grid, 0) == -0.75);
	assert_true(mq_sample_im(&scene.grid, 0) == 1e-8);
	for (i = 0; i < ISAS; i++) {
		if (!fast[i])
			continue;
		assert_int_equal(render_rows(fast[i], &scene, 0, 1, &p), MQ_OK);
		assert_int_equal(p.counts[0], 314159263);
		free_picture(&p);
	}
}

/* A tile of wide rows (several chunks a row) and tiles side by side give what one row at a time does. */
static void test_slots(void **state)
{
	struct mq_scene scene = {
		.grid = centred(-0.5, 0.3, 3.0 / 90001, 90001, 6), .width = 90001, .height = 6,
		.supersample = 1, .limit = 100, .keep_counts = true, .shortcuts = true, .shade = shades[1],
	};
	struct mq_rendered done[3];
	struct picture row;
	uint64_t inside = 0, sum = 0;
	unsigned isa, slot, j;

	(void)state;
	for (isa = 0; isa < ISAS; isa++) {
		struct mq_backend *b = fast[isa], *alone;

		if (!b)
			continue;
		alone = open_isa(isas[isa], 1);
		assert_int_equal(b->ops->reserve(b, 3, 2ull * 90001 * 11, NULL), MQ_OK);
		for (slot = 0; slot < 3; slot++)
			assert_int_equal(b->ops->submit(b, slot, &scene, 2 * slot, 2, NULL), MQ_OK);
		assert_int_equal(b->ops->submit(b, 0, &scene, 0, 2, NULL), MQ_EINTERNAL);
		for (slot = 0; slot < 3; slot++) {
			assert_int_equal(b->ops->wait(b, slot, &done[slot], NULL), MQ_OK);
			assert_true(done[slot].seconds > 0 && done[slot].seconds < 10);
			sum += done[slot].inside;
		}
		assert_int_equal(b->ops->wait(b, 0, &done[0], NULL), MQ_EINTERNAL);
		for (j = 0; j < 6; j++) {
			const struct mq_rendered *d = &done[j / 2];
			size_t at = (j % 2) * (size_t)90001;

			assert_int_equal(render_rows(alone, &scene, j, 1, &row), MQ_OK);
			assert_memory_equal(d->counts + at, row.counts, 90001 * 4);
			assert_memory_equal(d->smooth + at, row.smooth, 90001 * 4);
			assert_memory_equal(d->pixels + 3 * at, row.pixels, 90001 * 3);
			inside += row.inside;
			free_picture(&row);
		}
		assert_int_equal(inside, sum);
		alone->ops->close(alone);
	}
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *cancel_soon(void *arg)
{
	struct mq_backend *b = arg;

	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	b->ops->cancel(b, true);
	return NULL;
}

static void check_cancel(struct mq_backend *b)
{
	struct mq_scene scene = {
		.grid = centred(-0.1, 0.1, 1e-4, 300, 300), .width = 300, .height = 300, .supersample = 1,
		.limit = UINT32_MAX - 1, .shade = shades[0],
	};
	struct mq_rendered done;
	struct picture p;
	pthread_t thread;
	unsigned slot;
	double begun;

	assert_int_equal(b->ops->reserve(b, 2, 90000, NULL), MQ_OK);
	for (slot = 0; slot < 2; slot++)
		assert_int_equal(b->ops->submit(b, slot, &scene, 0, 300, NULL), MQ_OK);
	begun = now();
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, b), 0);
	assert_int_equal(b->ops->wait(b, 0, &done, NULL), MQ_ECANCELLED);
	assert_int_equal(b->ops->wait(b, 1, &done, NULL), MQ_ECANCELLED);
	assert_true(now() - begun < 0.55);
	pthread_join(thread, NULL);
	assert_int_equal(b->ops->submit(b, 0, &scene, 0, 300, NULL), MQ_OK);
	assert_int_equal(b->ops->wait(b, 0, &done, NULL), MQ_ECANCELLED);
	b->ops->cancel(b, false);
	scene.limit = 20;
	assert_int_equal(render_rows(b, &scene, 0, 300, &p), MQ_OK);
	assert_int_equal(p.inside, 90000);
	free_picture(&p);
	/* A cancel that is taken back at once still ends what was under way. */
	scene.limit = UINT32_MAX - 1;
	assert_int_equal(b->ops->submit(b, 0, &scene, 0, 300, NULL), MQ_OK);
	b->ops->cancel(b, true);
	b->ops->cancel(b, false);
	assert_int_equal(b->ops->wait(b, 0, &done, NULL), MQ_ECANCELLED);
}

static void test_cancel(void **state)
{
	unsigned i;

	(void)state;
	check_cancel(reference);
	for (i = 0; i < ISAS; i++)
		if (fast[i])
			check_cancel(fast[i]);
}

/* Closing gives up what is under way. */
static void test_close(void **state)
{
	struct mq_scene scene = {
		.grid = centred(-0.1, 0.1, 1e-4, 300, 300), .width = 300, .height = 300, .supersample = 1,
		.limit = UINT32_MAX - 1, .shade = shades[0],
	};
	struct mq_backend *b = open_isa("scalar", 2);
	double begun;

	(void)state;
	assert_non_null(b);
	assert_int_equal(b->ops->reserve(b, 1, 90000, NULL), MQ_OK);
	assert_int_equal(b->ops->submit(b, 0, &scene, 0, 300, NULL), MQ_OK);
	begun = now();
	b->ops->close(b);
	assert_true(now() - begun < 0.5);
}

static void test_memory(void **state)
{
	struct mq_error err = { "" };
	struct mq_backend *b = reference;

	(void)state;
	assert_int_equal(b->ops->reserve(b, 2, UINT64_MAX / 4, &err), MQ_ENOMEM_HOST);
	assert_non_null(strstr(err.text, "4611686018427387903 bytes asked"));
	assert_non_null(strstr(err.text, "free"));
	assert_int_equal(b->ops->reserve(b, 3, UINT64_MAX, &err), MQ_ENOMEM_HOST);
	assert_int_equal(b->ops->reserve(b, 1, 1000, &err), MQ_OK);
	assert_int_equal(b->ops->reserve(b, 1, 0, &err), MQ_OK);
}

static void test_open(void **state)
{
	struct mq_error err = { "" };
	struct mq_device_info info;
	struct mq_backend *b = NULL;

	(void)state;
	setenv("MANDELQ_CPU_ISA", "mmx", 1);
	assert_int_equal(mq_cpu_open(1, &b, &err), MQ_EINVAL);
	assert_non_null(strstr(err.text, "mmx"));
	assert_non_null(strstr(err.text, "scalar"));
	unsetenv("MANDELQ_CPU_ISA");
	assert_int_equal(mq_cpu_open(0, &b, &err), MQ_EINVAL);
	assert_int_equal(mq_cpu_open(3, &b, &err), MQ_OK);
	b->ops->info(b, &info);
	assert_string_equal(info.name, "cpu");
	assert_int_equal(info.threads, 3);
	assert_non_null(strstr(info.model, ", 3 threads"));
	assert_true(info.memory_free > 0 && info.memory_free <= info.memory_total);
	b->ops->close(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reference),
		cmocka_unit_test(test_views),
		cmocka_unit_test(test_margins),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_mirror),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_close),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_pinch),
	};

	return cmocka_run_group_tests(tests, open_all, close_all);
}
