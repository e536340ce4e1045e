/* private_dir: the state directory of a private worker: DIR/.FILE.mandelq beside the picture DIR/FILE
 * (DIR/.BEGIN~HASH.mandelq where that name would be too long), readable by its owner only. Whoever holds its
 * lock may use and remove it. */
#ifndef MQ_CLIENT_PRIVATE_DIR_H
#define MQ_CLIENT_PRIVATE_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "src/status.h"

struct mq_private_dir {
	char *path;
	int fd, lock; /* valid when path is set */
	bool existed; /* before this run */
};

/* Tells texts apart, always in the same way. */
uint64_t mq_private_dir_hash(const char *text);
bool mq_private_dir_exists(const char *picture);

/* Makes it, or takes over one of an earlier run, and locks it. MQ_EBUSY: somebody else holds the lock;
 * MQ_EIO, MQ_ENOSPC: it cannot be made, or what is there is not ours (it is left alone). out is zeroed
 * by the caller, and left so on failure. */
enum mq_status mq_private_dir_open(const char *picture, struct mq_private_dir *out,
				   struct mq_error *err);
/* Removes it with all that is in it, without following links or leaving its file system. */
void mq_private_dir_remove(struct mq_private_dir *dir);
void mq_private_dir_close(struct mq_private_dir *dir);

#endif
