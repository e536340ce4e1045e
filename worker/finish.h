/* finish: reads a joined picture back whole, strip by strip on the pool, and makes its preview from
 * what was read. Called by the assembly thread; returns when all strips have been looked at. */
#ifndef MQ_FINISH_H
#define MQ_FINISH_H

#include "src/image/png.h"
#include "worker/active.h"
#include "worker/pool.h"

/* fd: the picture's file, `name` in dirfd. Syncs it while its strips are read back; a sync that failed is
 * MQ_ESYNC. Makes preview.png in dirfd (a second name of a picture that is
 * small enough), durable once dirfd is synced, and tells its size; *flat: every pixel has the same colour.
 * MQ_ECORRUPT: the file is not what was written. MQ_ECANCELLED: giving_up was set, or the job has been dropped. */
enum mq_status mq_finish_verify(int fd, int dirfd, const char *name,
                                const struct mq_png_header *header, const struct mq_active *job,
                                struct mq_pool *pool, const atomic_bool *giving_up,
                                uint64_t *preview_bytes, bool *flat, struct mq_error *err);

#endif
