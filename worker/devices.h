/* devices: which devices this worker renders on, from --device, and one line that says so. */
#ifndef MQ_DEVICES_H
#define MQ_DEVICES_H

#include "kernels/backend.h"
#include "src/status.h"

#define MQ_DEVICES_MAX 16

struct mq_devices {
	unsigned count;
	struct mq_backend *backend[MQ_DEVICES_MAX];
	char note[512]; /* "cuda:0 NVIDIA H200", "CPU only: built without CUDA" */
};

/* names[0 .. count-1]: auto, cpu, cuda, cuda:N; none is auto. MQ_EINVAL: one that cannot be had was
 * asked for (says why); everything opened so far is closed again. */
enum mq_status mq_devices_open(const char *const *names, unsigned count, unsigned threads,
                               struct mq_devices *out, struct mq_error *err);

#endif
