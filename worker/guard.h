/* guard: notices when peers hold more memory than they may. The worker's own memory is bounded by its
 * settings; what lies above that is what libzmq keeps for peers (worker/listener.h). The main loop asks
 * after each turn and while peers are connected; it is not woken for it without them. */
#ifndef MQ_GUARD_H
#define MQ_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include "src/status.h"

struct mq_guard {
	/* private */
	int fd;
	uint64_t allowed; /* bytes for peers */
	uint64_t base;    /* of the worker without buffers and without peers */
	unsigned peers_max;
	bool owed;        /* something happened since the last look */
	int64_t next_ms;
};

/* When the worker is ready, before peers come. threads: of the worker's own. */
enum mq_status mq_guard_open(struct mq_guard *guard, uint64_t allowed, unsigned threads,
                             struct mq_error *err);
void mq_guard_close(struct mq_guard *guard);

/* In so many ms mq_guard_exceeded should be called though nothing happens; -1: no need. */
int mq_guard_due(const struct mq_guard *guard, unsigned peers);
/* True: peers must be dropped now: some of them and mq_guard_enough asked, or all and mq_guard_settle
 * called. held: the devices' buffers. Looks a few times a second at most, and gives back to the system
 * what peers that are gone have left. */
bool mq_guard_exceeded(struct mq_guard *guard, unsigned peers, uint64_t held, int64_t now_ms);
/* Some are gone: gives memory back to the system. False: those that are left must go too. */
bool mq_guard_enough(struct mq_guard *guard, unsigned peers, uint64_t held);
/* All peers are gone: gives memory back to the system. What is above the limit yet is not theirs and
 * is allowed from now on. */
void mq_guard_settle(struct mq_guard *guard, uint64_t held);

#endif
