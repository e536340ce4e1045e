/* target: a local file that is written whole or not at all. */
#ifndef MQ_CLIENT_TARGET_H
#define MQ_CLIENT_TARGET_H

#include <stdbool.h>
#include <stddef.h>

#include "src/status.h"

struct mq_target;

/* Before any work: the absolute path that FILE means, without links. MQ_ESTATE: it exists and force is
 * not set; MQ_EIO: its directory cannot be written. "-" is standard output (MQ_EINVAL on a terminal)
 * and stays "-". Caller frees *path. */
enum mq_status mq_target_check(const char *file, bool force, char **path, struct mq_error *err);

/* Opens a temporary file beside path (from mq_target_check); "-" and what is no plain file (a pipe, a
 * device; only with force) are written directly. */
enum mq_status mq_target_open(const char *path, bool force, struct mq_target **out,
			      struct mq_error *err);
/* MQ_EIO, MQ_ENOSPC; MQ_ESTOPPED: a signal came while a pipe was full. */
enum mq_status mq_target_write(struct mq_target *target, const void *bytes, size_t len,
			       struct mq_error *err);
/* Makes it durable and gives it its name. MQ_ESTATE: somebody else made the file meanwhile. */
enum mq_status mq_target_commit(struct mq_target *target, struct mq_error *err);
/* Removes what was not committed. NULL is fine. */
void mq_target_close(struct mq_target *target);

#endif
