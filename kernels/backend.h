/* backend: what renders tiles. One instance a device, driven by one device thread.
 *
 * A backend owns a number of slots, each a buffer for one tile. submit() starts a tile in a free slot
 * and returns; wait() gives its planes, in host memory that belongs to the slot until the slot is
 * submitted again. Several slots may be under way; they finish in the order of their submission.
 * Policy never lives here: a backend reports that memory is out, and the scheduler decides.
 *
 * All functions but cancel() are called from the device's own thread. While a tile is worked on the
 * counter of the thread that submitted it grows (src/alive.h), several times a second. */
#ifndef MQ_BACKEND_H
#define MQ_BACKEND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/uuid.h"
#include "src/scene.h"
#include "src/status.h"

struct mq_backend;

struct mq_device_info {
	char name[96];        /* "cpu" or "cuda:0" */
	char model[128];      /* "AMD EPYC, avx512, 2 threads"; "NVIDIA H200" */
	char uuid[MQ_UUID_SIZE]; /* of a GPU; "" for a CPU */
	uint64_t memory_free, memory_total; /* bytes; of the device, or of the host for a CPU */
	unsigned threads;     /* that render; 0 for a GPU */
};

/* A finished tile. Planes are contiguous, row by row, width pixels a row. */
struct mq_rendered {
	const uint8_t *pixels;  /* rows * width * channels */
	const uint32_t *counts; /* rows * width, or NULL when the scene does not keep them */
	const float *smooth;    /* likewise; counts as float inside the set */
	double seconds;         /* that the device worked on it */
	uint64_t inside;        /* samples that reached the limit */
};

struct mq_backend_ops {
	/* Frees everything; submitted tiles are given up. */
	void (*close)(struct mq_backend *b);

	void (*info)(struct mq_backend *b, struct mq_device_info *out);

	/* Makes the backend hold `slots` slots of `bytes` each (all planes of one tile), giving back
	 * what it held; contents are lost; nothing may be under way. bytes 0 gives everything back.
	 * MQ_ENOMEM_HOST or MQ_ENOMEM_DEVICE: it then holds nothing, and the text says how much was
	 * asked and how much was free. */
	enum mq_status (*reserve)(struct mq_backend *b, unsigned slots, uint64_t bytes,
	                          struct mq_error *err);

	/* Starts rows row0 .. row0+rows-1 of the scene's picture in a slot that is not under way. The
	 * tile fits the slot. scene stays valid until the slot has been waited for. */
	enum mq_status (*submit)(struct mq_backend *b, unsigned slot, const struct mq_scene *scene,
	                         uint32_t row0, uint32_t rows, struct mq_error *err);

	/* Waits for a slot that is under way; afterwards it no longer is, whatever the result.
	 * MQ_ECANCELLED after cancel(); MQ_EDEVICE: the process must end. */
	enum mq_status (*wait)(struct mq_backend *b, unsigned slot, struct mq_rendered *out,
	                       struct mq_error *err);

	/* Any thread: tiles under way end soon (within about 0.5 s) with MQ_ECANCELLED, those
	 * submitted later too, until cancel(b, false). */
	void (*cancel)(struct mq_backend *b, bool on);
};

struct mq_backend {
	const struct mq_backend_ops *ops;
};

/* Is row j of a grid of so many rows, for every j, the mirror image of row rows-1-j? z -> z^2 + c commutes
 * with conjugation, and so does every rounding: rows whose imaginary parts are each other's negation, to
 * the bit, have equal counts and colours. */
bool mq_grid_is_mirrored(const struct mq_grid *grid, uint64_t rows);

/* The CPU. threads >= 1. MANDELQ_CPU_ISA=scalar|avx2|avx512 picks the instruction set; MQ_EINVAL for
 * anything else or one that this CPU lacks (the text lists those it has). */
enum mq_status mq_cpu_open(unsigned threads, struct mq_backend **out, struct mq_error *err);

/* CUDA (cuda.c, or cuda_stub.c in a build without). Never fails: how many devices can be used, and in
 * `why` one line when there are none or fewer ("built without CUDA", "driver 550 found, 580 needed"). */
unsigned mq_cuda_count(char why[256]);
/* The index of the device that has this UUID, or the only one whose UUID begins so (uuid.h); opens
 * nothing. MQ_EINVAL: none or several (the text lists them), or no device at all (it says why). */
enum mq_status mq_cuda_find(const char *uuid, unsigned *index, struct mq_error *err);
/* index: in PCI bus order. MQ_EINVAL: no such device. */
enum mq_status mq_cuda_open(unsigned index, struct mq_backend **out, struct mq_error *err);

#endif
