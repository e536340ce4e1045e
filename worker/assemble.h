/* assemble: finished tiles to one verified picture, on threads of its own: several small pictures wait
 * for the disk at the same time.
 *
 * Joins the compressed strips into a temporary file, syncs it, reads it back whole (finish), makes the
 * preview, renames, syncs the folder. Only then is the main thread told. */
#ifndef MQ_ASSEMBLE_H
#define MQ_ASSEMBLE_H

#include <stdbool.h>
#include <stddef.h>

#include "src/store/store.h"
#include "worker/active.h"
#include "worker/event.h"
#include "worker/pool.h"
#include "worker/statedir.h"

/* Made by the main thread, which frees it (mq_assembly_free) when its event has come back. */
struct mq_assembly {
	struct mq_event event;
	struct mq_assembly *next;
	struct mq_active *job;       /* held */
	struct mq_done_tile *tiles;  /* in strip order, all of the picture; owned */
	size_t count;
	/* the result */
	enum mq_status status;       /* MQ_ECORRUPT with bad > 0: those tiles must be rendered again */
	struct mq_error error;
	bool *is_bad;                /* a tile each; owned */
	size_t bad;
	struct mq_output output;
};

void mq_assembly_free(struct mq_assembly *assembly);

/* Also the number of assemblies that may be under way. */
#define MQ_ASSEMBLER_THREADS 4

struct mq_assembler;
enum mq_status mq_assembler_open(struct mq_statedir *dir, struct mq_pool *pool,
                                 struct mq_events *events, struct mq_assembler **out,
                                 struct mq_error *err);
/* Gives up what is being made (nothing of it is left under a final name) and ends the threads. */
void mq_assembler_close(struct mq_assembler *assembler);
void mq_assembler_add(struct mq_assembler *assembler, struct mq_assembly *assembly);

#endif
