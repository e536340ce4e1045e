/* part: what a download hands out when it is no file that lies there: a region of a finished picture, or
 * counts as .npy. export's thread makes it, while the main thread asks how far it is. */
#ifndef MQ_PART_H
#define MQ_PART_H

#include <stdatomic.h>
#include <stdint.h>

#include "src/status.h"
#include "worker/active.h"

enum mq_export_what { MQ_EXPORT_PICTURE, MQ_EXPORT_PREVIEW, MQ_EXPORT_COUNTS, MQ_EXPORT_SMOOTH };

struct mq_region {
	uint32_t x, y, width, height;
};

struct mq_part {
	/* set before; all of them belong to the caller */
	struct mq_active *job;
	enum mq_export_what what; /* no MQ_EXPORT_PREVIEW */
	struct mq_region region;  /* inside the picture */
	int source_dir;           /* where the job's picture and counts lie */
	int fd;                   /* an empty file, to be written */
	/* meanwhile, by any thread */
	_Atomic uint32_t rows_done;
	atomic_bool unwanted;     /* give it up */
	/* afterwards */
	uint64_t bytes;
	char sha256[65];
};

/* The name, in its job's folder, of the file that a download of this kind comes from. */
const char *mq_part_source(enum mq_export_what what);
/* How many bytes it may come to; whole: those of the job's picture file. */
uint64_t mq_part_bytes(const struct mq_part *part, uint64_t whole);
/* Writes all of it. MQ_ECANCELLED: given up; MQ_EIO, MQ_ENOSPC, MQ_ENOENT, MQ_ENOMEM_HOST, MQ_ECORRUPT. */
enum mq_status mq_part_make(struct mq_part *part, struct mq_error *err);

#endif
