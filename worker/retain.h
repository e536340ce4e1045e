/* retain: jobs that have ended go, when somebody says so or when the settings do. What is not fetched
 * and what runs stays. */
#ifndef MQ_RETAIN_H
#define MQ_RETAIN_H

#include <stdint.h>

#include "src/status.h"
#include "src/store/store.h"
#include "worker/schedule.h"

/* Rows now (in this turn), files after the commit. MQ_ESTATE: the job has not ended. */
enum mq_status mq_retain_remove(struct mq_store *store, struct mq_schedule *schedule, int64_t id,
                                struct mq_error *err);

struct mq_retain {
	int64_t keep_for_ms;  /* 0: for ever */
	uint64_t keep_bytes;  /* 0: without limit */
	int64_t next_ms;      /* when to look again */
};

/* In a turn: removes what is due, a bounded number. */
enum mq_status mq_retain_turn(struct mq_retain *retain, struct mq_store *store,
                              struct mq_schedule *schedule, int64_t now_ms, struct mq_error *err);
/* ms from now until the next look; -1: never. */
int64_t mq_retain_due(const struct mq_retain *retain, int64_t now_ms);

#endif
