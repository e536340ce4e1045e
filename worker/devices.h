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

/* Is it auto, cpu, cuda, cuda:N, or the UUID of a GPU (or its beginning), whether or not there is such a
 * device? MQ_EINVAL names the option. */
enum mq_status mq_devices_check_name(const char *name, struct mq_error *err);

/* What --device names, and where that stands (origin: for mq_option_blame). None is auto. */
struct mq_devices_asked {
	const char *const *name, *const *origin;
	unsigned count;
};

/* MQ_EINVAL: one that cannot be had was asked for (says why, and what
 * there is); everything opened so far is closed again. A device named twice is opened twice. */
enum mq_status mq_devices_open(const struct mq_devices_asked *asked, unsigned threads, struct mq_devices *out,
                               struct mq_error *err);

#endif
