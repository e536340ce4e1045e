/* statedir: the worker's directory on disk, and the lock that makes it one worker's own.
 *
 *   STATE_DIR/lock                 flock, and the holder's process id
 *   STATE_DIR/mandelq.db[-wal]     the store
 *   STATE_DIR/mandelqd.sock[.events]  the sockets, unless --endpoint says otherwise
 *   STATE_DIR/work/ID/             tile files; gone once the job has ended
 *   STATE_DIR/pictures/ID/         picture.png, preview.png, counts.mqc
 *   STATE_DIR/stuck.log            a line each time the watchdog ended a worker
 *
 * Names are made from job ids alone: no client ever names a path here. */
#ifndef MQ_STATEDIR_H
#define MQ_STATEDIR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/status.h"

/* In work/, while a copy of the database is made. */
#define MQ_STATEDIR_BACKUP "backup.db"
#define MQ_STATEDIR_STUCK "stuck.log"

struct mq_statedir {
	char *path;
	int fd, lock_fd, work_fd, pictures_fd;
	/* private, for mq_statedir_undo */
	size_t made_at;  /* how long the path of the first directory is that was made; 0: none was */
	unsigned found;  /* bits: which names were there before */
	bool locked;
	char holder[32]; /* what the lock file said */
};

/* Makes the directory (0700) if it is missing, refuses a network file system (MQ_EINVAL, with the way
 * out) and a place that cannot be used (MQ_EINVAL; a full or broken disk is another matter), takes the
 * lock (MQ_EBUSY names the process that holds it), makes the folders. On failure what it made is gone
 * again. */
enum mq_status mq_statedir_open(const char *path, struct mq_statedir *out, struct mq_error *err);
/* For a start that is refused, before mq_statedir_close and after whatever uses the directory: takes away
 * what this process has made in it, the database too, and nothing that was there before. */
void mq_statedir_undo(struct mq_statedir *dir);
void mq_statedir_close(struct mq_statedir *dir);

/* DURABLE: the new folder survives a power loss. A folder of few tiles need not: tiles that are missing
 * are rendered again. */
enum mq_make { MQ_MAKE_NOT, MQ_MAKE, MQ_MAKE_DURABLE };

/* Opens parent/ID, made if it is missing and `make` says so. The caller closes *fd. */
enum mq_status mq_statedir_job(int parent_fd, int64_t id, enum mq_make make, int *fd,
                               struct mq_error *err);

/* Has a job's folder anything finished in it? What is being made has a name that begins with a dot. */
bool mq_statedir_holds(int parent_fd, int64_t id);

/* Removes parent/ID and the plain files in it; a missing one is fine. MQ_ECANCELLED: *stop (may be NULL)
 * was set meanwhile. */
enum mq_status mq_statedir_remove(int parent_fd, int64_t id, const atomic_bool *stop, struct mq_error *err);

/* Calls each(arg, id) for every entry of parent whose name is a job id. */
enum mq_status mq_statedir_each(int parent_fd, void (*each)(void *arg, int64_t id), void *arg,
                                struct mq_error *err);

#endif
