/* verbs: a decoded request to a call, and its outcome to a reply. Knows no sockets. */
#ifndef MQ_VERBS_H
#define MQ_VERBS_H

#include <stddef.h>

#include "src/message.h"
#include "src/store/store.h"
#include "worker/copying.h"
#include "worker/export.h"
#include "worker/schedule.h"
#include "worker/settings.h"
#include "worker/statedir.h"

struct mq_verbs {
	struct mq_store *store;
	struct mq_schedule *schedule;
	struct mq_exports *exports;
	struct mq_statedir *dir;
	const char *note;     /* the devices, in one line */
	const char *events;   /* where events are published, or NULL */
	int64_t started_ms;
	int64_t uid;          /* the worker's own */
	struct mq_user_limits limits;
	uint64_t watchdog_ends; /* how often a stuck worker was ended on this state directory */
	struct mq_copying *copying;
};

/* What goes back. data (for "read") is owned, like result. */
struct mq_answer {
	enum mq_status status;
	struct mq_error error;
	json_t *result;
	void *data;
	size_t data_len;
};

/* Carries out one request inside the store's turn. owner: the peer's uid, or -1. The answer may be
 * sent after the commit only. */
void mq_verbs_call(struct mq_verbs *verbs, const struct mq_request *request, int64_t owner,
                   int64_t now_ms, struct mq_answer *answer);
void mq_answer_clear(struct mq_answer *answer);

#endif
