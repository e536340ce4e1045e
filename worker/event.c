/* event: see event.h. */
#include "worker/event.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct mq_events {
	pthread_mutex_t lock;
	struct mq_event *first, **last;
	int fd;
};

enum mq_status mq_events_open(struct mq_events **out, struct mq_error *err)
{
	struct mq_events *q = calloc(1, sizeof *q);

	if (!q)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for the event queue");
	q->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (q->fd < 0) {
		free(q);
		return mq_fail_errno(err, errno, "eventfd");
	}
	pthread_mutex_init(&q->lock, NULL);
	q->last = &q->first;
	*out = q;
	return MQ_OK;
}

void mq_events_close(struct mq_events *q)
{
	if (!q)
		return;
	pthread_mutex_destroy(&q->lock);
	close(q->fd);
	free(q);
}

int mq_events_fd(const struct mq_events *q)
{
	return q->fd;
}

void mq_events_post(struct mq_events *q, struct mq_event *event)
{
	uint64_t one = 1;
	bool was_empty;

	pthread_mutex_lock(&q->lock);
	was_empty = !q->first;
	event->next = NULL;
	*q->last = event;
	q->last = &event->next;
	pthread_mutex_unlock(&q->lock);
	/* Cannot fail: the counter never comes near its limit, as it is reset whenever it is read. */
	if (was_empty && write(q->fd, &one, sizeof one) != sizeof one)
		abort();
}

struct mq_event *mq_events_take(struct mq_events *q)
{
	struct mq_event *first;
	uint64_t count;

	/* Read before the queue is emptied: a post in between then leaves the descriptor readable. */
	if (read(q->fd, &count, sizeof count) < 0 && errno != EAGAIN)
		abort();
	pthread_mutex_lock(&q->lock);
	first = q->first;
	q->first = NULL;
	q->last = &q->first;
	pthread_mutex_unlock(&q->lock);
	return first;
}
