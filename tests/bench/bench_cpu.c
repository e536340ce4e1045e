/* bench_cpu: figures of the CPU backend on one core, each beside its bound or its rival measured in
 * the same run; one JSON object a line.
 *
 *   bench_cpu [side of the reference view (4096)] [repeats (3)]
 *
 * The rival is the contract's loop, mq_escape_count(), so this file must be built with gcc -O2 -mfma
 * -ffp-contract=off. It renders every k-th row of the view; its time for the whole view is that time scaled
 * by iterations, which are known exactly for both from the counts. The differing pixels are counted
 * over the sampled rows. */
#include <stdio.h>
#include <time.h>

#include "tests/kernel/scenes.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Instructions on registers, twelve chains so that only throughput counts: iterations a second in each
 * lane, at 3 FMA an iteration, and at 3 FMA and the addition (x + x) that the formula needs too. Where
 * additions have units of their own the two are the same; Intel's 512-bit ones do not. */
#define ONE(r, n) "vfmadd213pd %%" r "1, %%" r "0, %%" r n "\n\t"
#define ADD(r, n) "vaddpd %%" r "1, %%" r n ", %%" r n "\n\t"
#define BOUND(name, r, lanes, FOURTH, each) \
	static double name(void) \
	{ \
		const long rounds = 20000000; \
		double begun, t, best = 1e9; \
		long i; \
		int k; \
		for (k = 0; k < 5; k++) { \
			begun = now(); \
			__asm__ volatile("vpxor %%xmm0, %%xmm0, %%xmm0\n\tvpxor %%xmm1, %%xmm1, %%xmm1" ::: "xmm0", "xmm1"); \
			for (i = 0; i < rounds; i++) \
				__asm__ volatile(ONE(r, "2") ONE(r, "3") ONE(r, "4") FOURTH(r, "5") ONE(r, "6") \
				                 ONE(r, "7") ONE(r, "8") FOURTH(r, "9") ONE(r, "10") ONE(r, "11") \
				                 ONE(r, "12") FOURTH(r, "13") \
				                 ::: "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
				                     "xmm10", "xmm11", "xmm12", "xmm13"); \
			t = now() - begun; \
			best = t < best ? t : best; \
		} \
		__asm__ volatile("vzeroupper" ::: "xmm0"); \
		return rounds * 12.0 / each * lanes / best; \
	}
BOUND(bound_avx2, "ymm", 4, ONE, 3)
BOUND(bound_avx512, "zmm", 8, ONE, 3)
BOUND(bound_add_avx2, "ymm", 4, ADD, 4)
BOUND(bound_add_avx512, "zmm", 8, ADD, 4)

static double timed(struct mq_backend *b, const struct mq_scene *scene, unsigned repeats,
                    struct picture *out)
{
	double best = 1e9;
	unsigned i;

	for (i = 0; i < repeats; i++) {
		size_t area = (size_t)scene->width * scene->height;
		struct mq_rendered done;

		if (i == 0 && b->ops->reserve(b, 1, area * mq_pixel_bytes(scene->shade->channels,
		                                                        scene->keep_counts), NULL))
			abort();
		if (b->ops->submit(b, 0, scene, 0, scene->height, NULL) || b->ops->wait(b, 0, &done, NULL))
			abort();
		best = done.seconds < best ? done.seconds : best;
		if (i == repeats - 1) {
			memset(out, 0, sizeof *out);
			out->area = area;
			out->pixels = copy_of(done.pixels, area * scene->shade->channels);
			if (scene->keep_counts)
				out->counts = copy_of(done.counts, area * 4);
		}
	}
	return best;
}

/* Steps that a plain loop takes. */
static double iterations(const uint32_t *counts, size_t n, uint32_t limit)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < n; i++)
		sum += counts[i] < limit ? counts[i] + 1.0 : limit;
	return sum;
}

/* The contract's loop on one row of samples. */
__attribute__((noinline)) static void plain_row(const struct mq_scene *scene, uint32_t row, uint32_t *counts)
{
	double im = mq_sample_im(&scene->grid, row);
	struct mq_point z;
	uint32_t i;

	for (i = 0; i < scene->width; i++)
		counts[i] = mq_escape_count(mq_sample_re(&scene->grid, i), im, scene->limit, &z);
}

static void compare(const char *name, const char *isa, struct mq_scene scene, uint32_t every,
                    unsigned repeats)
{
	struct mq_backend *fast = open_isa(isa, 1);
	struct picture gray, kept;
	uint32_t *row = malloc(scene.width * sizeof *row), i, j;
	double t, plain, total, sampled = 0, plain_seconds = 0;
	size_t differ = 0, checked = 0;

	if (!fast || !row)
		abort();
	t = timed(fast, &scene, repeats, &gray);
	scene.keep_counts = true;
	timed(fast, &scene, 1, &kept);
	total = iterations(kept.counts, kept.area, scene.limit);
	for (j = every / 2; j < scene.height; j += every) {
		size_t at = (size_t)j * scene.width;
		double begun = now();

		plain_row(&scene, j, row);
		plain_seconds += now() - begun;
		sampled += iterations(row, scene.width, scene.limit);
		for (i = 0; i < scene.width; i++)
			differ += kept.counts[at + i] != row[i] ||
			          gray.pixels[at + i] != mq_gray(row[i], scene.limit);
		checked += scene.width;
	}
	plain = plain_seconds * total / sampled;
	printf("{\"figure\":\"%s\",\"isa\":\"%s\",\"width\":%u,\"height\":%u,\"limit\":%u,"
	       "\"seconds\":%.4f,\"plain_seconds\":%.3f,\"plain_share_measured\":%.4f,\"times\":%.1f,"
	       "\"plain_iterations_per_s\":%.4g,\"equal_iterations_per_s\":%.4g,"
	       "\"pixels_checked\":%zu,\"pixels_differ\":%zu}\n",
	       name, isa, scene.width, scene.height, scene.limit, t, plain, sampled / total, plain / t,
	       sampled / plain_seconds, total / t, checked, differ);
	fflush(stdout);
	free(row);
	free_picture(&gray);
	free_picture(&kept);
	fast->ops->close(fast);
}

static void never(const char *isa, double bound, double bound_add, struct mq_shade *shade)
{
	struct mq_backend *b = open_isa(isa, 1);
	struct mq_scene scene = {
		.grid = centred(-0.1, 0.1, 1e-5, 256, 256), .width = 256, .height = 256, .supersample = 1,
		.limit = 10000, .shade = shade,
	};
	struct picture p;
	double t = timed(b, &scene, 15, &p), rate = 256.0 * 256 * 10000 / t;

	printf("{\"figure\":\"never-escaping points\",\"isa\":\"%s\",\"iterations_per_s\":%.4g,"
	       "\"bound\":%.4g,\"share\":%.4f,\"bound_with_addition\":%.4g,\"share_with_addition\":%.4f}\n",
	       isa, rate, bound, rate / bound, bound_add, rate / bound_add);
	fflush(stdout);
	free_picture(&p);
	b->ops->close(b);
}

int main(int argc, char **argv)
{
	static const char *const isas[] = { "avx512", "avx2" };
	uint32_t side = argc > 1 ? (uint32_t)atoi(argv[1]) : 4096;
	unsigned repeats = argc > 2 ? (unsigned)atoi(argv[2]) : 3, i;
	struct mq_shade *gray = make_shade(1), *rgb = make_shade(3);
	struct mq_scene view = {
		.width = side, .height = side, .supersample = 1, .limit = 10000, .shortcuts = true, .shade = gray,
	};

	for (i = 0; i < 2; i++) {
		struct mq_backend *b = open_isa(isas[i], 1);
		double bound, bound_add;

		if (!b)
			continue;
		b->ops->close(b);
		bound = i == 0 ? bound_avx512() : bound_avx2();
		bound_add = i == 0 ? bound_add_avx512() : bound_add_avx2();
		never(isas[i], bound, bound_add, gray);
		view.width = view.height = side;
		view.grid = centred(0, 0, 4.0 / side, side, side);
		compare("reference view, mirror", isas[i], view, side / 32, repeats);
		view.grid.ymax = nextafter(2.0, 3.0) + 0x1p-40; /* no row is another's mirror image now */
		compare("reference view, no mirror", isas[i], view, side / 32, repeats);
		view.width = view.height = 1024;
		view.grid = centred(-0.743643887037151, 0.131825904205330, 4e-4 / 1024, 1024, 1024);
		compare("dense boundary", isas[i], view, 32, repeats);
		view.shade = rgb;
		view.width = 1920, view.height = 1080;
		view.limit = 5000;
		view.grid = centred(-0.743643887037151, 0.131825904205330, 4e-4 / 1080, 1920, 1080);
		view.shade = gray;
		compare("shallow view 1920x1080", isas[i], view, 54, repeats);
		view.limit = 10000;
	}
	free(gray);
	free(rgb);
	return 0;
}
