/* space: room on the disk of the state directory. Called by the main thread: at submit, before it makes
 * files for downloads, and by the scheduler while jobs are paused for want of it. */
#ifndef MQ_SPACE_H
#define MQ_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/status.h"
#include "src/tile.h"
#include "worker/statedir.h"

/* What a user may still write there. */
enum mq_status mq_space_free(const struct mq_statedir *dir, uint64_t *bytes, struct mq_error *err);

/* Whether there is enough to be worth another try: 64 MiB, or on a small file system a 32nd of it. */
enum mq_status mq_space_some(const struct mq_statedir *dir, bool *some, struct mq_error *err);

/* MQ_ENOSPC, with figures, when the job could not fit even if its picture compressed as well as one
 * colour does. Most pictures need more: what runs out later pauses the job. */
enum mq_status mq_space_fits(const struct mq_statedir *dir, const struct mq_layout *layout,
			     bool keep_counts, struct mq_error *err);

/* MQ_ENOSPC, with figures, when a file of so many bytes, named by what, would leave jobs less than
 * mq_space_some asks for. promised: bytes that are spoken for, but not on the disk yet. */
enum mq_status mq_space_beside(const struct mq_statedir *dir, uint64_t bytes, uint64_t promised,
			       const char *what, struct mq_error *err);

#endif
