/* escape_cpu: between cpu.c (threads, slots, colouring of whole pixels) and the instruction sets (the
 * arithmetic of samples). Private to the CPU backend.
 *
 * An instruction set renders patches: rectangles of at most MQ_CPU_CHUNK samples. cpu.c enters one
 * only after it has asked the CPU, so nothing of it may run before. Whatever the set, the results
 * are those of kernels/escape.h, bit for bit. */
#ifndef MQ_ESCAPE_CPU_H
#define MQ_ESCAPE_CPU_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/scene.h"
#include "src/status.h"

#define MQ_CPU_CHUNK 32768u
#define MQ_CPU_SLACK 64u /* vectors may write past the last sample */

struct mq_patch {
	const struct mq_scene *scene;
	uint32_t col0, row0; /* of its first sample in the grid of samples */
	uint32_t cols, rows; /* cols * rows <= MQ_CPU_CHUNK */
	const atomic_bool *cancel;
};

/* What render() fills, row by row without gaps; one a thread. */
struct mq_samples {
	uint32_t counts[MQ_CPU_CHUNK + MQ_CPU_SLACK];
	uint32_t colours[MQ_CPU_CHUNK + MQ_CPU_SLACK]; /* 0x00BBGGRR; only with 3 channels */
	float smooth[MQ_CPU_CHUNK + MQ_CPU_SLACK];     /* only when the scene keeps counts */
};

struct mq_isa {
	const char *name;
	bool plain;     /* takes no shortcut, whatever the scene allows: the reference */
	size_t scratch; /* bytes a thread gives to render(), 64-byte aligned, keeping nothing */

	/* False if *cancel was seen (it is looked at every millisecond or so); out is then junk. */
	bool (*render)(const struct mq_patch *patch, struct mq_samples *out, void *scratch);

	/* mq_gray() of n counts. */
	void (*gray)(const uint32_t *counts, size_t n, uint32_t limit, uint8_t *out);
	/* How many of n counts are at the limit. */
	size_t (*inside)(const uint32_t *counts, size_t n, uint32_t limit);
};

extern const struct mq_isa mq_isa_scalar;     /* any CPU, libm's fma */
extern const struct mq_isa mq_isa_scalar_fma; /* the same, needs FMA */
extern const struct mq_isa mq_isa_avx2;       /* needs AVX2 and FMA */
extern const struct mq_isa mq_isa_avx512;     /* needs AVX-512 F, DQ, VL and FMA */

/* Pixels from the samples of a patch of cols x rows pixels (resolve.c): gray or RGB, `width` pixels
 * from one row of pixels[] to the next. */
void mq_resolve(const struct mq_isa *isa, const struct mq_scene *scene, const struct mq_samples *in,
                uint32_t cols, uint32_t rows, uint8_t *pixels);

/* cpu_host.c: the bytes that /proc/meminfo gives for key, 0 if it does not; the CPU's name. */
uint64_t mq_host_memory(const char *key);
void mq_host_model(char *out, size_t size);

/* The best instruction set of this CPU, or the one that MANDELQ_CPU_ISA names. MQ_EINVAL: it has no
 * such; the text lists those it has. */
enum mq_status mq_isa_pick(const struct mq_isa **out, struct mq_error *err);

#endif
