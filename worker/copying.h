/* copying: a copy of the database for a client, made on the main thread a few milliseconds at a time, so that
 * others are answered meanwhile. One at a time. The file has a name in work/ until it is whole, then only
 * the client's handle (export.h); it is not synced: the client syncs what it receives. */
#ifndef MQ_COPYING_H
#define MQ_COPYING_H

#include "src/store/store.h"
#include "worker/export.h"
#include "worker/statedir.h"

struct mq_copying {
	/* private */
	struct mq_copy *copy; /* NULL: none is being made */
	uint64_t handle;
};

/* *out: the handle, not ready. MQ_EBUSY: another is being made; MQ_ENOSPC, MQ_EIO, MQ_ENOMEM_HOST. */
enum mq_status mq_copying_begin(struct mq_copying *copying, struct mq_store *store,
                                const struct mq_statedir *dir, struct mq_exports *exports, int64_t owner,
                                int64_t now_ms, struct mq_export_state *out, struct mq_error *err);
/* Between turns of the store, as long as mq_copying_due says 0 (else -1). What fails the client hears. */
void mq_copying_turn(struct mq_copying *copying, const struct mq_statedir *dir, struct mq_exports *exports);
int mq_copying_due(const struct mq_copying *copying);
/* Before the store is closed. */
void mq_copying_end(struct mq_copying *copying);

#endif
