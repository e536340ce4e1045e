/* test_cuda: the CUDA backend against kernels/escape.h, bit for bit, for each class of input that the
 * kernels treat in a way of its own. Exit code 77 (skipped) when there is no device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/backend.h"
#include "kernels/escape.h"

#define LIMIT_MAX UINT32_C(4294967294)

static struct mq_backend *gpu;
static struct mq_shade shade[2]; /* 1 and 3 channels */

/* Tables that are not a real palette's, so that a wrong index shows. */
static void make_shade(struct mq_shade *s, unsigned channels, uint32_t seed)
{
	uint32_t i, h = seed;

	s->channels = channels;
	s->inv_period = 0.037;
	s->offset = 0.31;
	s->inside = 0x123456;
	for (i = 0; i < MQ_LUT_SIZE; i++) {
		h = h * 1664525u + 1013904223u;
		s->lut[i] = h >> 8;
	}
	for (i = 0; i < 256; i++)
		s->decode[i] = (uint16_t)(i * i + 2 * i); /* 0 .. 65535 */
	for (i = 0; i < 65536; i++)
		s->encode[i] = (uint8_t)((i * 7 + seed) >> 5);
}

static struct mq_scene make_scene(double xmin, double xmax, double ymin, double ymax, uint32_t width,
                                  uint32_t height, uint32_t limit, unsigned channels)
{
	struct mq_scene s = {
		.width = width, .height = height, .supersample = 1, .limit = limit, .shortcuts = true,
	};

	s.grid.xmin = xmin;
	s.grid.dx = (xmax - xmin) / width;
	s.grid.ymax = ymax;
	s.grid.dy = (ymax - ymin) / height;
	s.shade = &shade[channels == 3];
	return s;
}

static void supersample(struct mq_scene *s, uint32_t n)
{
	s->supersample = n;
	s->grid.dx /= n;
	s->grid.dy /= n;
}

struct sample {
	uint32_t count, colour;
	float smooth;
};

static struct sample reference(const struct mq_scene *s, double i, double j)
{
	double re = mq_sample_re(&s->grid, i), im = mq_sample_im(&s->grid, j), v;
	struct mq_point z;
	struct sample out;

	out.count = mq_escape_count(re, im, s->limit, &z);
	v = out.count;
	if (out.count < s->limit)
		v += mq_smooth_part(re, im, z);
	out.smooth = (float)v;
	if (s->shade->channels == 1)
		out.colour = mq_gray(out.count, s->limit);
	else
		out.colour = out.count < s->limit ? mq_colour(s->shade, v) : s->shade->inside;
	return out;
}

static uint32_t reference_mean(const struct mq_scene *s, uint32_t col, uint32_t row, uint64_t *inside)
{
	uint32_t n = s->supersample, sum[3] = { 0, 0, 0 }, out = 0;

	for (uint32_t k = 0; k < n * n; k++) {
		struct sample v = reference(s, (double)col * n + k % n, (double)row * n + k / n);

		*inside += v.count >= s->limit;
		for (unsigned c = 0; c < 3; c++)
			sum[c] += s->shade->decode[v.colour >> 8 * c & 255];
	}
	for (unsigned c = 0; c < s->shade->channels; c++)
		out |= (uint32_t)s->shade->encode[mq_mean(sum[c], n * n)] << 8 * c;
	return out;
}

static void check_tile(const struct mq_scene *s, uint32_t row0, uint32_t rows,
                       const struct mq_rendered *r)
{
	uint64_t inside = 0, p = 0;
	unsigned channels = s->shade->channels;

	assert_true(!!r->counts == s->keep_counts);
	for (uint32_t row = row0; row < row0 + rows; row++) {
		for (uint32_t col = 0; col < s->width; col++, p++) {
			uint32_t want, got = 0;

			memcpy(&got, r->pixels + p * channels, channels);
			if (s->supersample > 1) {
				want = reference_mean(s, col, row, &inside);
			} else {
				struct sample v = reference(s, col, row);

				want = v.colour;
				inside += v.count >= s->limit;
				if (s->keep_counts) {
					assert_int_equal(r->counts[p], v.count);
					assert_memory_equal(&r->smooth[p], &v.smooth, sizeof v.smooth);
				}
			}
			if (got != want)
				print_message("pixel %u,%u: %06x, not %06x\n", (unsigned)col,
				              (unsigned)row, (unsigned)got, (unsigned)want);
			assert_int_equal(got, want);
		}
	}
	assert_int_equal(r->inside, inside);
}

static uint64_t tile_bytes(const struct mq_scene *s, uint32_t rows)
{
	return (uint64_t)s->width * rows * mq_pixel_bytes(s->shade->channels, s->keep_counts);
}

/* Renders the scene as one tile and checks it. */
static void check_scene(const struct mq_scene *s)
{
	struct mq_error err = { "" };
	struct mq_rendered r;

	if (gpu->ops->reserve(gpu, 1, tile_bytes(s, s->height), &err) ||
	    gpu->ops->submit(gpu, 0, s, 0, s->height, &err) || gpu->ops->wait(gpu, 0, &r, &err))
		fail_msg("%s", err.text);
	check_tile(s, 0, s->height, &r);
}

/* In gray, colour, and with counts; with shortcuts and without. */
static void check_view(double xmin, double xmax, double ymin, double ymax, uint32_t width,
                       uint32_t height, uint32_t limit)
{
	for (unsigned k = 0; k < 8; k++) {
		struct mq_scene s = make_scene(xmin, xmax, ymin, ymax, width, height, limit,
		                               k & 1 ? 3 : 1);

		s.keep_counts = k & 2;
		s.shortcuts = !(k & 4);
		check_scene(&s);
	}
}

static void test_whole_set(void **state)
{
	(void)state;
	check_view(-2, 2, -2, 2, 160, 100, 1000);
}

static void test_boundary(void **state)
{
	(void)state;
	check_view(-0.7436447860 - 1e-6, -0.7436447860 + 1e-6, 0.1318252536 - 1e-6,
	           0.1318252536 + 1e-6, 64, 48, 5000);
}

static void test_near_minus_two(void **state)
{
	(void)state;
	check_view(-2 - 1e-7, -2 + 1e-7, -1e-7, 1e-7, 64, 33, 300);
	check_view(-2 - 1e-15, -2 + 4e-15, -1e-15, 1e-15, 9, 5, 300);
}

static void test_circle(void **state)
{
	/* |c| = 2, where the exact loop takes over from the fast one. */
	(void)state;
	check_view(1.2, 1.2 + 1e-5, 1.6 - 1e-5, 1.6 + 1e-5, 65, 65, 50);
	check_view(-1e-6, 1e-6, 2 - 1e-6, 2 + 1e-6, 33, 33, 50);
}

static void test_cusps(void **state)
{
	(void)state;
	check_view(0.25 - 1e-6, 0.25 + 1e-6, -1e-6, 1e-6, 33, 33, 3000);
	check_view(-0.75 - 1e-6, -0.75 + 1e-6, -1e-3, 1e-3, 33, 33, 5000);
	check_view(-0.75 - 1e-13, -0.75 + 1e-13, -1e-12, 1e-12, 9, 9, 2000);
	check_view(-1.25 - 1e-9, -1.25 + 1e-9, -1e-9, 1e-9, 17, 17, 3000);
}

static void test_inside(void **state)
{
	(void)state;
	check_view(-0.1, 0.1, -0.1, 0.1, 64, 32, 777);
	check_view(-0.16, -0.08, 0.72, 0.78, 64, 48, 3000); /* period 3 */
}

static void test_far(void **state)
{
	(void)state;
	check_view(-1e200, 1e200, -1e200, 1e200, 33, 33, 100);
	check_view(-1e3, 1e3, -1e3, 1e3, 40, 33, 100);
}

static void test_tiny(void **state)
{
	/* Imaginary parts for which 2x must not be made from its exponent, and just not so. */
	(void)state;
	check_view(-1 - 1e-300, -1 + 1e-300, -1e-310, 1e-310, 8, 8, 200);
	check_view(-1.5, 0.5, -1e-300, 1e-300, 16, 16, 200);
	check_view(-1.9, 0.5, -1e-240, 1e-240, 16, 16, 200);
	check_view(-1.9, 0.5, -1e-200, 1e-200, 16, 15, 200);
}

static void test_limits(void **state)
{
	static const uint32_t limits[] = {
		1, 2, 3, 7, 8, 15, 16, 17, 23, 24, 25, 31, 32, 33, 48, 127, 128, 129, 159, 160, 161, 255,
	};

	(void)state;
	for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
		check_view(-2.2, 0.8, -1.2, 1.2, 48, 40, limits[i]);
}

static void test_shapes(void **state)
{
	static const uint32_t sizes[][2] = {
		{ 1, 1 }, { 1, 300 }, { 3, 100 }, { 31, 33 }, { 33, 31 }, { 255, 3 }, { 257, 3 }, { 1025, 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		check_view(-2, 0.5, -1.25, 1.25, sizes[i][0], sizes[i][1], 200);
}

static void test_supersampling(void **state)
{
	static const uint32_t n[] = { 2, 3, 5, 16 };

	(void)state;
	for (unsigned k = 0; k < 8; k++) {
		struct mq_scene s = make_scene(-2, 0.5, -1.25, 1.25, 37, 29, 300, k & 1 ? 3 : 1);

		supersample(&s, n[k / 2]);
		check_scene(&s);
	}
}

/* More samples that need more steps than the lists of a small slot hold, and, with supersampling,
 * more batches than are sent at once. */
static void test_full_lists(void **state)
{
	struct mq_scene s = make_scene(-0.1, 0.1, -0.1, 0.1, 500, 200, 300, 3);

	(void)state;
	s.shortcuts = false;
	check_scene(&s);
	s = make_scene(-0.1, 0.1, -0.1, 0.1, 50, 40, 200, 1);
	supersample(&s, 16);
	s.shortcuts = false;
	check_scene(&s);
}

/* A sample that takes several rounds, and escapes: at -0.75 + ib after about pi / b steps. */
static void test_many_rounds(void **state)
{
	struct mq_scene s = make_scene(-0.75 - 1e-7, -0.75 + 1e-7, 0, 2e-7, 1, 1, LIMIT_MAX, 1);
	struct mq_error err = { "" };
	struct mq_rendered r;

	(void)state;
	s.keep_counts = true;
	if (gpu->ops->reserve(gpu, 1, tile_bytes(&s, 1), &err) ||
	    gpu->ops->submit(gpu, 0, &s, 0, 1, &err) || gpu->ops->wait(gpu, 0, &r, &err))
		fail_msg("%s", err.text);
	assert_true(r.counts[0] > 31415900 && r.counts[0] < 31416000);
	check_tile(&s, 0, 1, &r);
}

/* Three slots at once, each tile with tables of its own, twice. */
static void test_slots(void **state)
{
	struct mq_shade *own = malloc(3 * sizeof *own);
	struct mq_scene s = make_scene(-2, 0.5, -1.25, 1.25, 90, 60, 400, 3);
	struct mq_error err = { "" };
	struct mq_rendered r;

	(void)state;
	assert_non_null(own);
	assert_int_equal(gpu->ops->reserve(gpu, 3, tile_bytes(&s, 10), &err), MQ_OK);
	for (uint32_t round = 0; round < 2; round++) {
		for (unsigned k = 0; k < 3; k++) {
			make_shade(&own[k], 3, round * 3 + k);
			s.shade = &own[k];
			assert_int_equal(gpu->ops->submit(gpu, k, &s, (round * 3 + k) * 10, 10, &err),
			                 MQ_OK);
		}
		for (unsigned k = 0; k < 3; k++) {
			s.shade = &own[k];
			assert_int_equal(gpu->ops->wait(gpu, k, &r, &err), MQ_OK);
			check_tile(&s, (round * 3 + k) * 10, 10, &r);
		}
	}
	free(own);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *cancel_soon(void *at)
{
	struct timespec pause = { 0, 100000000 };

	nanosleep(&pause, NULL);
	*(double *)at = now();
	gpu->ops->cancel(gpu, true);
	return NULL;
}

/* A tile that would take years. */
static void test_cancel(void **state)
{
	struct mq_scene s = make_scene(-0.1, 0.1, -0.1, 0.1, 512, 512, LIMIT_MAX, 1);
	struct mq_error err = { "" };
	struct mq_rendered r;
	pthread_t thread;
	double cancelled = 0;

	(void)state;
	s.shortcuts = false;
	assert_int_equal(gpu->ops->reserve(gpu, 2, tile_bytes(&s, 512), &err), MQ_OK);
	assert_int_equal(gpu->ops->submit(gpu, 0, &s, 0, 512, &err), MQ_OK);
	assert_int_equal(gpu->ops->submit(gpu, 1, &s, 0, 512, &err), MQ_OK);
	assert_int_equal(pthread_create(&thread, NULL, cancel_soon, &cancelled), 0);
	assert_int_equal(gpu->ops->wait(gpu, 0, &r, &err), MQ_ECANCELLED);
	assert_int_equal(gpu->ops->wait(gpu, 1, &r, &err), MQ_ECANCELLED);
	assert_int_equal(pthread_join(thread, NULL), 0);
	print_message("ended %.3f s after the cancel\n", now() - cancelled);
	assert_true(now() - cancelled < 0.5);
	s.limit = 100;
	assert_int_equal(gpu->ops->submit(gpu, 0, &s, 0, 512, &err), MQ_OK);
	assert_int_equal(gpu->ops->wait(gpu, 0, &r, &err), MQ_ECANCELLED);
	gpu->ops->cancel(gpu, false);
	check_scene(&s);
}

static void test_out_of_memory(void **state)
{
	struct mq_scene s = make_scene(-2, 2, -2, 2, 40, 40, 100, 1);
	struct mq_error err = { "" };
	struct mq_device_info info;

	(void)state;
	gpu->ops->info(gpu, &info);
	assert_true(info.memory_free > 0 && info.memory_free <= info.memory_total);
	assert_int_equal(gpu->ops->reserve(gpu, 2, info.memory_total, &err), MQ_ENOMEM_DEVICE);
	print_message("%s: %s\n", info.model, err.text);
	assert_int_equal(gpu->ops->reserve(gpu, 1, (uint64_t)1 << 60, &err), MQ_ENOMEM_DEVICE);
	check_scene(&s);
	assert_int_equal(gpu->ops->reserve(gpu, 0, 0, &err), MQ_OK);
	assert_int_equal(gpu->ops->submit(gpu, 0, &s, 0, 1, &err), MQ_EINTERNAL);
}

static void test_no_such_device(void **state)
{
	char why[256];
	struct mq_backend *b = NULL;
	struct mq_error err = { "" };

	(void)state;
	assert_int_equal(mq_cuda_open(mq_cuda_count(why), &b, &err), MQ_EINVAL);
	assert_null(b);
	assert_string_not_equal(err.text, "");
}

static void test_uuid(void **state)
{
	struct mq_device_info info;
	struct mq_error err = { "" };
	unsigned index = 99;
	char beginning[MQ_UUID_SIZE];

	(void)state;
	gpu->ops->info(gpu, &info);
	print_message("%s %s %s\n", info.name, info.uuid, info.model);
	assert_int_equal(strlen(info.uuid), MQ_UUID_SIZE - 1);
	assert_true(mq_uuid_is_prefix(info.uuid));
	assert_int_equal(mq_cuda_find(info.uuid, &index, &err), MQ_OK);
	assert_int_equal(index, 0);
	index = 99;
	snprintf(beginning, sizeof beginning, "gpu-%.23s", info.uuid + 4);
	assert_int_equal(mq_cuda_find(beginning, &index, &err), MQ_OK);
	assert_int_equal(index, 0);
	assert_int_equal(mq_cuda_find("GPU-00000000-0000-0000-0000-000000000000", &index, &err), MQ_EINVAL);
	assert_non_null(strstr(err.text, info.uuid));
	assert_non_null(strstr(err.text, "cuda:0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_whole_set),
		cmocka_unit_test(test_boundary),
		cmocka_unit_test(test_near_minus_two),
		cmocka_unit_test(test_circle),
		cmocka_unit_test(test_cusps),
		cmocka_unit_test(test_inside),
		cmocka_unit_test(test_far),
		cmocka_unit_test(test_tiny),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_supersampling),
		cmocka_unit_test(test_full_lists),
		cmocka_unit_test(test_many_rounds),
		cmocka_unit_test(test_slots),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_out_of_memory),
		cmocka_unit_test(test_no_such_device),
		cmocka_unit_test(test_uuid),
	};
	struct mq_error err = { "" };
	char why[256];
	int failed;

	if (mq_cuda_count(why) == 0) {
		printf("skipped: %s\n", why);
		return 77;
	}
	if (mq_cuda_open(0, &gpu, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	make_shade(&shade[0], 1, 1);
	make_shade(&shade[1], 3, 2);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	gpu->ops->close(gpu);
	return failed;
}
