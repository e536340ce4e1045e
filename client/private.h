/* private: a mandelqd that one `mandelq render` starts for itself. Its state directory is beside the
 * picture, so that the next run of the same command finds what is done already. */
#ifndef MQ_CLIENT_PRIVATE_H
#define MQ_CLIENT_PRIVATE_H

#include <stdbool.h>

#include "src/option.h"
#include "src/status.h"

struct mq_private;

/* Has an earlier run left a state directory for this picture? */
bool mq_private_exists(const char *picture);

/* Makes or takes over the state directory of picture (an absolute path) and locks it. options are
 * borrowed until mq_private_close: --device, --threads and --device-memory go to the worker. MQ_EBUSY:
 * another render is at work on it; MQ_EIO: the directory cannot be made, or is not one of ours. */
enum mq_status mq_private_open(const char *picture, const struct mq_options *options,
			       struct mq_private **out, struct mq_error *err);

/* Starts the worker and returns when it accepts connections. MQ_ENOENT never: a missing mandelqd is
 * MQ_EUNREACH; so is one that ends at once, with the last line it said. MQ_ESTOPPED: a signal. */
enum mq_status mq_private_start(struct mq_private *worker, struct mq_error *err);

/* If the worker has died, starts it again (it continues), a few times. For mq_waiting.watch. */
enum mq_status mq_private_revive(void *worker, struct mq_error *err);

const char *mq_private_uri(const struct mq_private *worker);
const char *mq_private_dir(const struct mq_private *worker);

/* Ends the worker: SIGTERM, and SIGKILL after 10 s or when another signal comes to us. */
void mq_private_stop(struct mq_private *worker);
/* Removes the state directory. Only after mq_private_stop. */
void mq_private_remove(struct mq_private *worker);
/* Removes it if this run made it. */
void mq_private_remove_new(struct mq_private *worker);
/* Stops if need be, unlocks, frees. NULL is fine. */
void mq_private_close(struct mq_private *worker);

#endif
