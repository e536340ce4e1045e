/* escape_cuda: between cuda.c (memory, streams, rounds) and escape.cu (the arithmetic). Private to the
 * CUDA backend.
 *
 * A tile is rendered in batches of pixels, each batch by three kernels in a row:
 *
 *   first  takes every sample some iterations far. Most samples end here; the others go into list 0.
 *          Where the list is full, a chunk of 32 samples is put off: its bit of todo[] stays set.
 *   rest   takes the entries of one list to their end, with full warps, for a bounded time. What is
 *          not done by then goes into the other list. It runs twice: list 0 to 1, then 1 to 0.
 *   mean   with supersampling only: the batch's pixels from its samples.
 *
 * A batch is done when nothing is put off and list 0 is empty again; control->batch then counts it.
 * Kernels of any other batch than number control->batch do nothing, so several batches can be put
 * into a stream at once: the first that does not finish holds up the others. The host looks at
 * control and sends more rounds until every batch is done. Usually there is nothing left to send.
 *
 * Launchers return a cudaError_t (as int) for the launch alone. */
#ifndef MQ_ESCAPE_CUDA_H
#define MQ_ESCAPE_CUDA_H

#include <cuda_runtime_api.h>
#include <stdint.h>

#include "src/scene.h"

#define MQ_CUDA_CHUNK 256u         /* samples of one byte of todo[], a bit for each 32 */
#define MQ_CUDA_NOTHING UINT32_MAX /* sample of an entry that is not there */
#define MQ_CUDA_COUNTERS 32u

/* A sample under way: z after n steps. */
struct mq_cuda_entry {
	double x, y;
	uint32_t sample, n;
};

struct mq_cuda_control {
	uint32_t batch;     /* batches done */
	uint32_t left;      /* chunks of 32 that were put off, as of the last round */
	uint32_t put_off;   /* the same, while first runs */
	uint32_t count[2];  /* entries in each list; may be past the capacity, which is then meant */
	uint32_t taken;     /* entries of the list that rest reads */
	uint32_t blocks;    /* of rest, that have ended */
	uint32_t pad[9];
	/* Samples that reached the limit, spread so that atomic additions do not queue up. */
	struct {
		uint64_t inside, pad[7];
	} counter[MQ_CUDA_COUNTERS];
};

/* One batch. Pointers are the device's. */
struct mq_cuda_task {
	struct mq_grid grid;
	struct mq_cuda_control *control;
	struct mq_cuda_entry *list[2];
	uint8_t *todo;                /* a byte for MQ_CUDA_CHUNK samples */
	const struct mq_shade *shade; /* unused for gray without supersampling */
	uint32_t *colours;            /* of the batch's samples; only with supersampling */
	uint8_t *pixels;              /* of the batch's first pixel; 4-byte aligned, as are the next */
	uint32_t *counts;             /* NULL when not kept */
	float *smooth;
	uint32_t capacity;            /* of each list; at least MQ_CUDA_CHUNK */
	uint32_t batch;
	uint32_t samples;             /* of the batch: pixels * supersample^2, at most 2^30; at most 2^24
	                               * with supersampling */
	uint32_t width, row, col;     /* of the picture; where in it the batch's first pixel is */
	uint32_t supersample, limit, channels;
	uint32_t budget_ns;           /* that each run of rest may take */
	bool shortcuts;
	bool careful;                 /* coordinates so small that fast steps are not exact */
};

#ifdef __cplusplus
extern "C" {
#endif

/* again: only the chunks that todo[] names. */
int mq_cuda_first(const struct mq_cuda_task *task, bool again, cudaStream_t stream);

/* from: the list to read. after_first: nothing ran between first and this. last: no other run follows
 * in this round, so samples are only given away when the time is up. */
int mq_cuda_rest(const struct mq_cuda_task *task, unsigned from, bool after_first, bool last,
                 unsigned blocks, cudaStream_t stream);

int mq_cuda_mean(const struct mq_cuda_task *task, cudaStream_t stream);

/* Loads the kernels into the present device; *blocks is how many of rest it should get. */
int mq_cuda_load(unsigned *blocks);

#ifdef __cplusplus
}
#endif

#endif
