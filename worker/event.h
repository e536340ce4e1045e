/* event: what threads tell the main thread. A queue with an eventfd, so that the main loop can poll it.
 * An event is part of the thing that it is about (no allocation, so it cannot fail). */
#ifndef MQ_EVENT_H
#define MQ_EVENT_H

#include "src/status.h"

enum mq_event_kind {
	MQ_EVENT_TASK,     /* a tile's task is over: struct mq_task */
	MQ_EVENT_RESERVED, /* a device's memory request is answered: struct mq_device */
	MQ_EVENT_ASSEMBLY, /* a picture is made, or not: struct mq_assembly */
};

struct mq_event {
	enum mq_event_kind kind;
	void *subject;
	struct mq_event *next; /* private */
};

struct mq_events;
enum mq_status mq_events_open(struct mq_events **out, struct mq_error *err);
void mq_events_close(struct mq_events *events);
/* Readable while events are queued. */
int mq_events_fd(const struct mq_events *events);
/* Any thread. event must stay until it has been taken. */
void mq_events_post(struct mq_events *events, struct mq_event *event);
/* The main thread: the whole queue in the order of posting, linked by next; NULL when empty. */
struct mq_event *mq_events_take(struct mq_events *events);

#endif
