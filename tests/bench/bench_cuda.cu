/* bench_cuda: how fast the CUDA kernels are, and whether they still agree with the plain loop.
 *
 *   bench_cuda [SIDE [LIMIT [plain]]]
 *
 * Prints lines of JSON: the kernels of all tiles of the reference view (-2..2 squared) alone, in gray
 * and in colour, on one to four streams; the same through the backend, with its transfers, for two to
 * four slots; iterations per second without shortcuts; and the kernels as the backend runs them, in gray
 * on four streams. With `plain` the whole picture is also rendered by kernels/escape.h as it stands,
 * and pixels that differ are counted on the device.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/escape.h"
#include "kernels/escape_cuda.h"
extern "C" {
#include "kernels/backend.h"
}

#define STREAMS 4u
#define CAPACITY (1u << 20)

static void check(cudaError_t e, const char *what)
{
	if (e == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct bench {
	uint32_t side, limit, rows, tiles;
	unsigned blocks;
	cudaStream_t stream[STREAMS];
	uint8_t *planes[STREAMS], *scratch[STREAMS];
	struct mq_cuda_control *control; /* one a tile */
	struct mq_shade *shade, *device_shade;
	unsigned long long *differing;
};

static struct mq_scene scene_of(const struct bench *b, unsigned channels, bool shortcuts)
{
	struct mq_scene s;

	memset(&s, 0, sizeof s);
	s.grid.xmin = -2;
	s.grid.ymax = 2;
	s.grid.dx = s.grid.dy = 4.0 / b->side;
	s.width = s.height = b->side;
	s.supersample = 1;
	s.limit = b->limit;
	s.shortcuts = shortcuts;
	b->shade->channels = channels;
	s.shade = b->shade;
	return s;
}

static struct mq_cuda_task task_of(const struct bench *b, uint32_t tile, unsigned stream,
                                   unsigned channels)
{
	struct mq_scene s = scene_of(b, channels, true);
	struct mq_cuda_task t;

	memset(&t, 0, sizeof t);
	t.grid = s.grid;
	t.control = b->control + tile;
	t.list[0] = (struct mq_cuda_entry *)b->scratch[stream];
	t.list[1] = t.list[0] + CAPACITY;
	t.todo = (uint8_t *)(t.list[1] + CAPACITY);
	t.shade = b->device_shade;
	t.pixels = b->planes[stream];
	t.capacity = CAPACITY;
	t.row = tile * b->rows;
	t.samples = (b->side - t.row < b->rows ? b->side - t.row : b->rows) * b->side;
	t.width = b->side;
	t.supersample = 1;
	t.limit = b->limit;
	t.channels = channels;
	t.shortcuts = true;
	t.budget_ns = 50000000;
	return t;
}

static void send(const struct bench *b, const struct mq_cuda_task *t, unsigned stream)
{
	check((cudaError_t)mq_cuda_first(t, false, b->stream[stream]), "first");
	check((cudaError_t)mq_cuda_rest(t, 0, true, false, b->blocks, b->stream[stream]), "rest");
	check((cudaError_t)mq_cuda_rest(t, 1, false, true, b->blocks, b->stream[stream]), "rest");
}

/* The kernels of all tiles, in ms. */
static double kernels(struct bench *b, unsigned streams, unsigned channels)
{
	struct mq_cuda_control *host =
		(struct mq_cuda_control *)malloc(b->tiles * sizeof *host);
	unsigned long long inside = 0;
	uint32_t unfinished = 0;
	double best = 1e9;

	for (int run = 0; run < 5; run++) {
		double start;

		check(cudaMemset(b->control, 0, b->tiles * sizeof *host), "memset");
		check(cudaDeviceSynchronize(), "synchronize");
		start = now();
		for (uint32_t i = 0; i < b->tiles; i++) {
			struct mq_cuda_task t = task_of(b, i, i % streams, channels);

			send(b, &t, i % streams);
		}
		check(cudaDeviceSynchronize(), "kernels");
		if (now() - start < best)
			best = now() - start;
	}
	check(cudaMemcpy(host, b->control, b->tiles * sizeof *host, cudaMemcpyDeviceToHost), "copy");
	for (uint32_t i = 0; i < b->tiles; i++) {
		unfinished += host[i].batch != 1;
		for (unsigned k = 0; k < MQ_CUDA_COUNTERS; k++)
			inside += host[i].counter[k].inside;
	}
	free(host);
	printf("{\"figure\":\"GPU kernels, all runs\",\"streams\":%u,\"channels\":%u,\"side\":%u,\"ms\":%.2f,"
	       "\"inside\":%llu,\"unfinished_tiles\":%u}\n",
	       streams, channels, b->side, best * 1e3, inside, unfinished);
	return best * 1e3;
}

__global__ void plain_kernel(const __grid_constant__ struct mq_cuda_task t,
                             unsigned long long *differing)
{
	uint32_t s = blockIdx.x * blockDim.x + threadIdx.x;
	struct mq_point z;
	double re, im;
	uint32_t n, want;
	bool wrong;

	if (s >= t.samples)
		return;
	re = mq_sample_re(&t.grid, (double)(s % t.width));
	im = mq_sample_im(&t.grid, (double)(t.row + s / t.width));
	n = mq_escape_count(re, im, t.limit, &z);
	if (t.channels == 1) {
		wrong = t.pixels[s] != mq_gray(n, t.limit);
	} else {
		const uint8_t *p = t.pixels + (size_t)s * 3;

		want = n < t.limit ? mq_colour(t.shade, (double)n + mq_smooth_part(re, im, z))
		                   : t.shade->inside;
		wrong = (p[0] | p[1] << 8 | (uint32_t)p[2] << 16) != want;
	}
	if (wrong)
		atomicAdd(differing, 1ull);
}

/* How many pixels differ from the plain loop's. */
static unsigned long long compare(struct bench *b, unsigned channels)
{
	unsigned long long differing = 0;

	check(cudaMemset(b->control, 0, b->tiles * sizeof *b->control), "memset");
	check(cudaMemset(b->differing, 0, sizeof differing), "memset");
	check(cudaMemset(b->planes[0], 0x5a, (size_t)b->rows * b->side * 3), "memset");
	check(cudaDeviceSynchronize(), "synchronize");
	for (uint32_t i = 0; i < b->tiles; i++) {
		struct mq_cuda_task t = task_of(b, i, 0, channels);

		send(b, &t, 0);
		plain_kernel<<<(t.samples - 1) / 128 + 1, 128, 0, b->stream[0]>>>(t, b->differing);
		check(cudaGetLastError(), "plain");
	}
	check(cudaDeviceSynchronize(), "plain");
	check(cudaMemcpy(&differing, b->differing, sizeof differing, cudaMemcpyDeviceToHost), "copy");
	return differing;
}

/* Tiles through the backend, with their transfers. */
static void backend(struct bench *b, unsigned channels, unsigned slots)
{
	struct mq_scene s = scene_of(b, channels, true);
	struct mq_backend *gpu;
	struct mq_error err;
	struct mq_rendered r;
	double start, seconds = 0;

	if (mq_cuda_open(0, &gpu, &err) ||
	    gpu->ops->reserve(gpu, slots, (uint64_t)b->rows * b->side * channels, &err)) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	for (int run = 0; run < 2; run++) {
		start = now();
		seconds = 0;
		for (uint32_t i = 0; i < b->tiles + slots; i++) {
			enum mq_status st = MQ_OK;
			uint32_t row = i * b->rows;

			if (i >= slots)
				st = gpu->ops->wait(gpu, i % slots, &r, &err);
			if (i >= slots)
				seconds += r.seconds;
			if (!st && i < b->tiles)
				st = gpu->ops->submit(gpu, i % slots, &s, row,
				                      b->side - row < b->rows ? b->side - row : b->rows,
				                      &err);
			if (st) {
				fprintf(stderr, "%s\n", err.text);
				exit(1);
			}
		}
		start = now() - start;
	}
	printf("{\"figure\":\"GPU backend\",\"channels\":%u,\"slots\":%u,\"side\":%u,\"ms\":%.2f,"
	       "\"sum_of_tiles_ms\":%.2f}\n",
	       channels, slots, b->side, start * 1e3, seconds * 1e3);
	gpu->ops->close(gpu);
}

/* Iterations per second of samples that all reach the limit. */
static void brute(struct bench *b)
{
	uint32_t side = 4096, limit = 25000;
	struct mq_scene s = scene_of(b, 1, false);
	struct mq_backend *gpu;
	struct mq_error err;
	struct mq_rendered r;

	s.grid.xmin = -0.1;
	s.grid.ymax = 0.1;
	s.grid.dx = s.grid.dy = 0.2 / side;
	s.width = s.height = side;
	s.limit = limit;
	if (mq_cuda_open(0, &gpu, &err) || gpu->ops->reserve(gpu, 1, (uint64_t)side * side, &err)) {
		fprintf(stderr, "%s\n", err.text);
		exit(1);
	}
	for (int run = 0; run < 3; run++) {
		if (gpu->ops->submit(gpu, 0, &s, 0, side, &err) || gpu->ops->wait(gpu, 0, &r, &err)) {
			fprintf(stderr, "%s\n", err.text);
			exit(1);
		}
	}
	printf("{\"figure\":\"GPU without shortcuts\",\"side\":%u,\"limit\":%u,\"ms\":%.2f,"
	       "\"t_iterations_per_s\":%.3f,\"inside\":%llu}\n",
	       side, limit, r.seconds * 1e3, (double)side * side * limit / r.seconds * 1e-12,
	       (unsigned long long)r.inside);
	gpu->ops->close(gpu);
}

int main(int argc, char **argv)
{
	struct bench b;
	char why[256];

	memset(&b, 0, sizeof b);
	if (mq_cuda_count(why) == 0) {
		fprintf(stderr, "no GPU: %s\n", why);
		return 1;
	}
	b.side = argc > 1 ? (uint32_t)atoi(argv[1]) : 65536;
	b.limit = argc > 2 ? (uint32_t)atoi(argv[2]) : 10000;
	if (b.side < 64 || b.side > 65536 || b.limit < 1) {
		fprintf(stderr, "usage: bench_cuda [SIDE [LIMIT [plain]]], SIDE 64 to 65536\n");
		return 2;
	}
	b.rows = (16u << 20) / b.side;
	b.rows = b.rows < b.side ? b.rows : b.side;
	b.tiles = (b.side - 1) / b.rows + 1;
	check((cudaError_t)mq_cuda_load(&b.blocks), "load");
	b.shade = (struct mq_shade *)calloc(1, sizeof *b.shade);
	b.shade->inv_period = 0.037;
	for (uint32_t i = 0; i < MQ_LUT_SIZE; i++)
		b.shade->lut[i] = i * 4097;
	check(cudaMalloc((void **)&b.device_shade, sizeof *b.shade), "malloc");
	check(cudaMemcpy(b.device_shade, b.shade, sizeof *b.shade, cudaMemcpyHostToDevice), "copy");
	check(cudaMalloc((void **)&b.differing, sizeof *b.differing), "malloc");
	check(cudaMalloc((void **)&b.control, b.tiles * sizeof *b.control), "malloc");
	for (unsigned i = 0; i < STREAMS; i++) {
		check(cudaStreamCreateWithFlags(&b.stream[i], cudaStreamNonBlocking), "stream");
		check(cudaMalloc((void **)&b.planes[i], (size_t)b.rows * b.side * 3), "malloc");
		check(cudaMalloc((void **)&b.scratch[i], 2 * CAPACITY * sizeof(struct mq_cuda_entry) +
		                 (size_t)b.rows * b.side / MQ_CUDA_CHUNK + 1), "malloc");
	}
	double gray = 0;

	for (unsigned i = 1; i <= STREAMS; i++) {
		gray = kernels(&b, i, 1);
		(void)kernels(&b, i, 3);
	}
	for (unsigned i = 2; i <= STREAMS; i++) {
		backend(&b, 1, i);
		backend(&b, 3, i);
	}
	brute(&b);
	printf("{\"figure\":\"GPU kernels\",\"streams\":%u,\"side\":%u,\"ms\":%.2f", STREAMS, b.side, gray);
	if (argc > 3)
		printf(",\"pixels_differ\":%llu,\"rgb_pixels_differ\":%llu", compare(&b, 1), compare(&b, 3));
	printf("}\n");
	return 0;
}
