/* events: hears from the worker when jobs change (mandelq-protocol(7)), so that who waits need not ask
 * again and again. Used by watch and wait, on one thread.
 *
 * Events may be lost and may come late: what they say is a reason to ask, and the answer is what counts.
 * Whoever uses this asks for the whole after it has subscribed, once more soon after that (the subscription
 * is on its way when mq_subscribe returns), and now and then. */
#ifndef MQ_CLIENT_EVENTS_H
#define MQ_CLIENT_EVENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/connect.h"
#include "src/status.h"

struct mq_subscription;

/* Asks the worker where it tells events, and subscribes to these jobs, with count 0 to all, and to the
 * queue. Other jobs may be heard of too. MQ_OK and NULL: this worker tells us none (it is on another
 * machine, or its socket does not let us in): ask instead. Failures are those of the request. */
enum mq_status mq_subscribe(struct mq_client *client, const int64_t *ids, size_t count,
			    struct mq_subscription **out, struct mq_error *err);
/* Takes NULL. */
void mq_unsubscribe(struct mq_subscription *subscription);

/* Until there is something to take, the connection ends, a signal comes (interrupt.h), fd is readable
 * (-1: none), or mq_clock_ms() is until_ms. With NULL for the rest of these alone. */
void mq_subscription_sleep(struct mq_subscription *subscription, int64_t until_ms, int fd);

enum mq_news_kind {
	MQ_NEWS_JOB,     /* row: as rows.h has them, a new reference */
	MQ_NEWS_REMOVED, /* id: there is no such job any more */
	MQ_NEWS_QUEUE,   /* paused: the whole queue is, or goes on */
};
struct mq_news {
	enum mq_news_kind kind;
	json_t *row;
	int64_t id;
	bool paused;
};
/* False: nothing waits. What is no event that we know is passed over. Another worker may tell of fewer. */
bool mq_subscription_take(struct mq_subscription *subscription, struct mq_news *out);
/* True once the connection has ended: events have been lost. It stays so: subscribe anew. */
bool mq_subscription_ended(struct mq_subscription *subscription);

#endif
