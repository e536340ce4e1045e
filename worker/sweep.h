/* sweep: removes the folders of jobs that have ended, on a thread of its own: a job of many tiles leaves
 * so many files that the main loop would stand still for seconds. Used by tidy, which decides what goes.
 *
 * What is not removed when the process ends is found again at the next start. */
#ifndef MQ_SWEEP_H
#define MQ_SWEEP_H

#include <stdint.h>

#include "src/status.h"

struct mq_sweeper;
enum mq_status mq_sweeper_open(struct mq_sweeper **out, struct mq_error *err);
/* Returns after the file at hand; what else waits is left. */
void mq_sweeper_close(struct mq_sweeper *sweeper);

/* parent_fd/ID goes, soon. parent_fd must stay open until mq_sweeper_close. Nothing may use that folder
 * from now on: so no job that can still go on. */
void mq_sweeper_add(struct mq_sweeper *sweeper, int parent_fd, int64_t id);

#endif
