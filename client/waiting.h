/* waiting: until jobs have ended, over a worker that may go away and come back. */
#ifndef MQ_CLIENT_WAITING_H
#define MQ_CLIENT_WAITING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/connect.h"
#include "src/status.h"

#define MQ_RECONNECT_MS 60000

struct mq_waiting {
	const int64_t *ids; /* each once */
	size_t count;
	int64_t until_ms; /* mq_clock_ms; 0: no limit. Bounds each request too, until mq_wait_jobs returns */
	bool quiet;       /* no bar, and no word about jobs that are done */
	/* Called before every look, to see that the worker lives; a failure ends the waiting. May be
	 * NULL. */
	enum mq_status (*watch)(void *user, struct mq_error *err);
	void *user;
};

/* Returns when every job has ended, whatever the end; *rows as mq_rows_fetch. MQ_ETIMEOUT: until_ms
 * has come (the text says where the jobs are); MQ_EUNREACH: no worker for MQ_RECONNECT_MS;
 * MQ_ESTOPPED: a signal; MQ_ENOENT: no such job. */
enum mq_status mq_wait_jobs(struct mq_client *client, const struct mq_waiting *waiting,
			    json_t **rows, struct mq_error *err);

/* Says for each job how it ended. MQ_ESTATE, with an empty text, if one has failed or was cancelled. */
enum mq_status mq_wait_report(const json_t *rows, bool quiet, struct mq_error *err);

#endif
