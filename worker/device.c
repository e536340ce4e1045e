/* device: see device.h. */
#include "config.h"

#include "worker/device.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/failpoint.h"
#include "src/log.h"
#include "worker/encode.h"
#include "worker/watchdog.h"

#define SLOTS_MAX 16

struct mq_device {
	struct mq_backend *backend;
	struct mq_pool *pool;
	struct mq_events *events;
	pthread_t thread;
	struct mq_watch watch;
	struct mq_device_info info; /* its name, for the watchdog's log */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	/* under the lock */
	struct mq_task *first, **last; /* not submitted yet */
	bool slot_busy[SLOTS_MAX];     /* from submit until the encoder is through with it */
	bool reserve_asked, cancelled, stop;
	unsigned asked_slots;
	uint64_t asked_bytes;
	struct mq_event reserved_event;
	enum mq_status reserved_status;
	struct mq_error reserved_error;
	unsigned slots;
	uint64_t bytes;
	/* the device thread's own: submitted, in order */
	struct mq_task *under_way, **under_way_last;
};

static void task_over(struct mq_device *d, struct mq_task *t, enum mq_status status)
{
	t->status = status;
	mq_events_post(d->events, &t->event);
}

static enum mq_status submit(struct mq_device *d, struct mq_task *t)
{
	int e = mq_failpoint("device-submit");

	for (unsigned k = 0; k < t->tiles; k++)
		mq_failpoint_poison(t->job->id, t->tile[k].span.first, t->tile[k].span.count);
	if (e == MQ_FAULT_OOM)
		return mq_fail(&t->error, MQ_ENOMEM_DEVICE, "out of memory on the device");
	if (e)
		return mq_fail_errno(&t->error, e, "giving a tile to the device");
	return d->backend->ops->submit(d->backend, t->slot, &t->job->scene,
	                               mq_strip_row0(&t->job->layout, t->tile[0].span.first),
	                               mq_span_rows(&t->job->layout, t->tile[0].span), &t->error);
}

static void reserve_now(struct mq_device *d)
{
	unsigned slots = d->asked_slots;
	uint64_t bytes = d->asked_bytes;
	struct mq_error err = {""};
	enum mq_status s;

	pthread_mutex_unlock(&d->lock);
	s = d->backend->ops->reserve(d->backend, slots, bytes, &err);
	pthread_mutex_lock(&d->lock);
	d->reserve_asked = false;
	d->reserved_status = s;
	d->reserved_error = err;
	d->slots = s || !bytes ? 0 : slots;
	d->bytes = s ? 0 : bytes;
	memset(d->slot_busy, 0, sizeof d->slot_busy);
	mq_events_post(d->events, &d->reserved_event);
}

static int free_slot(const struct mq_device *d)
{
	for (unsigned i = 0; i < d->slots; i++)
		if (!d->slot_busy[i])
			return (int)i;
	return -1;
}

/* Submits waiting tasks while slots are free. Called and returns with the lock held. */
static void submit_waiting(struct mq_device *d)
{
	int slot = -1;

	while (d->first && (d->cancelled || (slot = free_slot(d)) >= 0)) {
		struct mq_task *t = d->first;
		bool drop = d->cancelled || atomic_load(&t->job->dropped);
		enum mq_status s = MQ_ECANCELLED;

		d->first = t->next;
		if (!d->first)
			d->last = &d->first;
		t->next = NULL;
		if (!drop) {
			t->slot = (unsigned)slot;
			d->slot_busy[slot] = true;
			pthread_mutex_unlock(&d->lock);
			s = submit(d, t);
			pthread_mutex_lock(&d->lock);
			if (s)
				d->slot_busy[slot] = false;
		}
		if (s) {
			task_over(d, t, s);
			continue;
		}
		*d->under_way_last = t;
		d->under_way_last = &t->next;
	}
}

/* Waits for the oldest submitted task and hands it on. Called and returns with the lock held. */
static void finish_oldest(struct mq_device *d)
{
	struct mq_task *t = d->under_way;
	enum mq_status s;

	d->under_way = t->next;
	if (!d->under_way)
		d->under_way_last = &d->under_way;
	pthread_mutex_unlock(&d->lock);
	s = d->backend->ops->wait(d->backend, t->slot, &t->rendered, &t->error);
	if (!s) {
		t->seconds = t->rendered.seconds;
		t->inside = t->rendered.inside;
		s = mq_encode_task(t, d->pool, d->events);
	}
	pthread_mutex_lock(&d->lock);
	if (s) {
		d->slot_busy[t->slot] = false;
		task_over(d, t, s);
	}
}

static void *device_main(void *arg)
{
	struct mq_device *d = arg;

	mq_watch_mine(&d->watch);
	pthread_mutex_lock(&d->lock);
	for (;;) {
		mq_watch_begin(&d->watch);
		submit_waiting(d);
		if (d->under_way)
			finish_oldest(d);
		else if (d->reserve_asked)
			reserve_now(d);
		else if (d->stop)
			break;
		else if (!d->first || free_slot(d) < 0) {
			mq_watch_end(&d->watch);
			pthread_cond_wait(&d->changed, &d->lock);
		}
	}
	mq_watch_end(&d->watch);
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

enum mq_status mq_device_open(struct mq_backend *backend, struct mq_pool *pool,
                              struct mq_events *events, struct mq_device **out,
                              struct mq_error *err)
{
	struct mq_device *d = calloc(1, sizeof *d);
	int e;

	if (!d)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a device");
	d->backend = backend;
	d->pool = pool;
	d->events = events;
	d->last = &d->first;
	d->under_way_last = &d->under_way;
	d->reserved_event = (struct mq_event){MQ_EVENT_RESERVED, d, NULL};
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->changed, NULL);
	backend->ops->info(backend, &d->info);
	mq_watch_add(&d->watch, MQ_WATCH_PART, d->info.name);
	e = pthread_create(&d->thread, NULL, device_main, d);
	if (e) {
		mq_watch_remove(&d->watch);
		pthread_cond_destroy(&d->changed);
		pthread_mutex_destroy(&d->lock);
		free(d);
		return mq_fail_errno(err, e, "starting a device thread");
	}
	*out = d;
	return MQ_OK;
}

void mq_device_close(struct mq_device *d)
{
	if (!d)
		return;
	mq_device_cancel(d, true);
	pthread_mutex_lock(&d->lock);
	d->stop = true;
	pthread_cond_signal(&d->changed);
	pthread_mutex_unlock(&d->lock);
	pthread_join(d->thread, NULL);
	d->backend->ops->close(d->backend);
	mq_watch_remove(&d->watch);
	pthread_cond_destroy(&d->changed);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

void mq_device_info(struct mq_device *d, struct mq_device_info *out)
{
	d->backend->ops->info(d->backend, out);
}

void mq_device_reserve(struct mq_device *d, unsigned slots, uint64_t bytes)
{
	pthread_mutex_lock(&d->lock);
	d->reserve_asked = true;
	d->asked_slots = slots < SLOTS_MAX ? slots : SLOTS_MAX;
	d->asked_bytes = bytes;
	pthread_cond_signal(&d->changed);
	pthread_mutex_unlock(&d->lock);
}

enum mq_status mq_device_reserved(struct mq_device *d, unsigned *slots, uint64_t *bytes,
                                  struct mq_error *err)
{
	enum mq_status s;

	pthread_mutex_lock(&d->lock);
	s = d->reserved_status;
	*slots = d->slots;
	*bytes = d->bytes;
	if (err)
		*err = d->reserved_error;
	pthread_mutex_unlock(&d->lock);
	return s;
}

void mq_device_add(struct mq_device *d, struct mq_task *task)
{
	pthread_mutex_lock(&d->lock);
	task->next = NULL;
	*d->last = task;
	d->last = &task->next;
	pthread_cond_signal(&d->changed);
	pthread_mutex_unlock(&d->lock);
}

void mq_device_cancel(struct mq_device *d, bool on)
{
	pthread_mutex_lock(&d->lock);
	d->cancelled = on;
	d->backend->ops->cancel(d->backend, on);
	pthread_cond_signal(&d->changed);
	pthread_mutex_unlock(&d->lock);
}

void mq_device_slot_free(struct mq_device *d, unsigned slot)
{
	pthread_mutex_lock(&d->lock);
	d->slot_busy[slot] = false;
	pthread_cond_signal(&d->changed);
	pthread_mutex_unlock(&d->lock);
}
