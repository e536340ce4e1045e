/* export: what clients download: whole files as they lie there, or a region or counts, made as an
 * unnamed temporary file (worker/part.h) by a thread. Handles belong to nobody: knowing the number is
 * enough on a socket that only its users can open; one that is not used for MQ_EXPORT_IDLE_MS goes. */
#ifndef MQ_EXPORT_H
#define MQ_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/status.h"
#include "worker/part.h"
#include "worker/statedir.h"

#define MQ_EXPORT_IDLE_MS 60000
#define MQ_EXPORT_MAX 64

struct mq_exports;
enum mq_status mq_exports_open(struct mq_statedir *dir, struct mq_exports **out, struct mq_error *err);
void mq_exports_close(struct mq_exports *exports);

/* What the main thread knows of a finished job's file. */
struct mq_export_request {
	int64_t owner; /* who asks */
	int64_t job;
	const struct mq_job_row *row;
	enum mq_export_what what;
	const struct mq_region *region; /* NULL: all of it; else inside the picture */
	const char *sha256;             /* of the whole picture, hex, or NULL */
};

struct mq_export_state {
	uint64_t handle;
	bool ready;
	double progress;
	uint64_t bytes;    /* when ready */
	char sha256[65];   /* when ready; empty: not known */
};

/* When MQ_EXPORT_MAX are open, one of a user with more of them gives way, or one that is not used
 * (MQ_ESTALE for its client, which opens it again); else MQ_EBUSY. MQ_ENOSPC: what must be made first
 * would not fit. MQ_ENOENT: the job's file is not there. MQ_EIO, MQ_ENOMEM_HOST. */
enum mq_status mq_export_begin(struct mq_exports *exports, const struct mq_export_request *request,
                               int64_t now_ms, struct mq_export_state *out, struct mq_error *err);
/* MQ_ESTALE: no such handle (any more). Preparing that failed gives its own status, and the handle
 * is gone. */
enum mq_status mq_export_poll(struct mq_exports *exports, uint64_t handle, int64_t now_ms,
                              struct mq_export_state *out, struct mq_error *err);
/* At most `len` bytes from offset into buffer; *got is 0 at the end. MQ_ESTATE: not ready. */
enum mq_status mq_export_read(struct mq_exports *exports, uint64_t handle, uint64_t offset,
                              void *buffer, size_t len, int64_t now_ms, size_t *got,
                              struct mq_error *err);
/* The job that this handle is for; 0: none, or no such handle. *whole: it is for all of the picture. */
int64_t mq_export_job(struct mq_exports *exports, uint64_t handle, bool *whole);
/* MQ_ENOSPC when a file of so many bytes would not fit beside those that are being made. */
enum mq_status mq_exports_room(struct mq_exports *exports, uint64_t bytes, const char *what,
                               struct mq_error *err);
/* A handle for a file that the main thread makes itself. It tells how far it is, false: nobody waits for it
 * any more; and gives the file, which is taken over, or (fd -1) status and err, why there is none.
 * MQ_EBUSY, MQ_ENOMEM_HOST. */
enum mq_status mq_export_promise(struct mq_exports *exports, int64_t owner, int64_t now_ms,
                                 struct mq_export_state *out, struct mq_error *err);
bool mq_export_promised(struct mq_exports *exports, uint64_t handle, double progress);
void mq_export_settle(struct mq_exports *exports, uint64_t handle, int fd, enum mq_status status,
                      const struct mq_error *err);
void mq_export_end(struct mq_exports *exports, uint64_t handle);

/* Closes what has been idle too long; returns ms until the next may be, or -1 when none is open. */
int64_t mq_exports_expire(struct mq_exports *exports, int64_t now_ms);

#endif
