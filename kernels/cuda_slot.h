/* cuda_slot: the memory and the stream of one slot of the CUDA backend. Private to it; called by cuda.c.
 *
 * All of it is taken at once: on the host the slot's bytes, pinned; on the device the same, and for the
 * kernels' lists and scratch 8 times that, but at least 1 MiB and at most 66 MiB. */
#ifndef MQ_CUDA_SLOT_H
#define MQ_CUDA_SLOT_H

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdint.h>

#include "kernels/escape_cuda.h"
#include "src/scene.h"
#include "src/status.h"

/* Pixels of a batch without supersampling. */
#define MQ_CUDA_PIXELS_MAX (1u << 28)

/* Of a tile's planes: counts, smooth, pixels, so that each is aligned. */
struct mq_cuda_slot {
	cudaStream_t stream;
	cudaEvent_t begin, end, done; /* of the kernels; of the copies too */
	uint8_t *host, *device;       /* planes */
	struct mq_cuda_control *control, *device_control;
	struct mq_shade *shade, *device_shade; /* behind control; what is or will be on the device */
	struct mq_cuda_task task;     /* buffers; the batch at hand */
	struct mq_scene scene;        /* of the tile under way; scene.shade is not used */
	uint32_t samples_max;         /* of a batch with supersampling */
	uint32_t row0, rows;
	uint32_t batch_pixels, batches;
	uint32_t sent;                /* batches that have begun */
	double ms;
	bool has_shade, under_way, given_up;
};

/* Takes the memory of a slot of zeros, on the present device. MQ_ENOMEM_DEVICE, MQ_ENOMEM_HOST,
 * MQ_EDEVICE; what was taken by then is still to be freed. */
enum mq_status mq_cuda_slot_take(struct mq_cuda_slot *s, uint64_t bytes, struct mq_error *err);

/* Waits for what is in the stream, frees everything and makes it zeros. */
void mq_cuda_slot_free(struct mq_cuda_slot *s);

/* MQ_ENOMEM_HOST, with how much was free. */
enum mq_status mq_cuda_no_host_memory(struct mq_error *err, uint64_t asked);

/* MQ_EDEVICE, with CUDA's name for it. */
enum mq_status mq_cuda_device_error(struct mq_error *err, cudaError_t e, const char *what);

#endif
