/* publish: the worker's second socket, an XPUB that tells how jobs and the queue go (mandelq-protocol(7)). A
 * convenience: whoever cannot lose an event asks for the status. Main thread.
 *
 * A subscriber that does not read loses events; the worker's memory does not grow. Without a connection
 * nothing is done at all. */
#ifndef MQ_PUBLISH_H
#define MQ_PUBLISH_H

#include <stdint.h>

#include "src/store/store.h"
#include "worker/listener.h"
#include "worker/schedule.h"
#include "worker/statedir.h"

struct mq_publish_config {
	struct mq_store *store;
	const struct mq_schedule *schedule;
	const struct mq_statedir *dir;
};

/* Could that be opened? Changes nothing. */
enum mq_status mq_publish_probe(const char *service, struct mq_error *err);

struct mq_publish;
/* At the endpoint of the service with ".events" behind. MQ_OK and NULL: its path would be too long,
 * which is logged. */
enum mq_status mq_publish_open(const struct mq_publish_config *config, const char *service,
                               struct mq_publish **out, struct mq_error *err);
/* All of these take NULL. */
void mq_publish_close(struct mq_publish *publish);

/* NULL for NULL. */
struct mq_listener *mq_publish_listener(struct mq_publish *publish);
const char *mq_publish_endpoint(const struct mq_publish *publish);

/* Takes new subscriptions: who asks for one job gets its row as it is, who asks for the queue whether it is
 * paused. */
void mq_publish_receive(struct mq_publish *publish);
/* After a commit: sends the rows of jobs whose state has changed, and of those that went on, five times
 * a second at most; which jobs are gone; that the queue is paused or goes on. */
void mq_publish_send(struct mq_publish *publish, int64_t now_ms);
/* When mq_publish_send has something to send although nothing happens, in ms from now; -1: never. */
int64_t mq_publish_due(const struct mq_publish *publish, int64_t now_ms);

#endif
