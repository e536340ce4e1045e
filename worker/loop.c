/* loop: the main loop (worker/daemon.h), the only thread that touches the store, the sockets and the
 * scheduler. Each turn takes what waits, decides, commits once, and only then answers and starts what was
 * decided. */
#include "config.h"

#include "worker/daemon_private.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

#include "src/clock.h"
#include "src/log.h"
#include "worker/metrics.h"

#define STOP_MS 8000

/* True once a signal has asked to stop. */
static bool stop_asked(struct daemon *d)
{
	struct signalfd_siginfo info;

	return read(d->signal_fd, &info, sizeof info) == sizeof info;
}

static enum mq_status commit(struct daemon *d, struct mq_error *err)
{
	struct timespec begin, end;
	bool changed = false;
	enum mq_status s;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	s = mq_store_commit(d->store, &changed, err);
	if (s || !changed)
		return s;
	clock_gettime(CLOCK_MONOTONIC, &end);
	mq_metrics_commit((double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
	return MQ_OK;
}

static void receive(struct daemon *d, int64_t now, bool *more)
{
	bool more_remote = false;

	mq_service_receive(d->service, &d->verbs, now, more);
	if (d->remote_service)
		mq_service_receive(d->remote_service, &d->remote_verbs, now, &more_remote);
	*more = *more || more_remote;
}

static enum mq_status turn(struct daemon *d, bool stopping, bool *more, struct mq_error *err)
{
	int64_t now = mq_clock_ms();
	enum mq_status s;

	*more = false;
	if (!stopping)
		receive(d, now, more);
	mq_publish_receive(d->publish);
	s = mq_schedule_turn(d->schedule, now, err);
	if (!s)
		s = mq_retain_turn(&d->retain, d->store, d->schedule, now, err);
	if (!s)
		s = commit(d, err);
	if (s)
		return s;
	mq_service_send(d->service);
	if (d->remote_service)
		mq_service_send(d->remote_service);
	mq_publish_send(d->publish, now);
	mq_copying_turn(&d->copying, &d->dir, d->exports);
	return mq_schedule_after(d->schedule, err);
}

#define LISTENERS 3

/* Those that there are. */
static size_t listeners(struct daemon *d, struct mq_listener *out[LISTENERS])
{
	size_t n = 0;

	out[n++] = mq_service_listener(d->service);
	if (d->publish)
		out[n++] = mq_publish_listener(d->publish);
	if (d->remote_service)
		out[n++] = mq_service_listener(d->remote_service);
	return n;
}

static unsigned count_peers(struct mq_listener *const list[], size_t count)
{
	unsigned peers = 0;

	for (size_t i = 0; i < count; i++)
		peers += mq_listener_peers(list[i]);
	return peers;
}

/* What peers hold is looked at between turns, when no answer waits. */
static enum mq_status check_peers(struct daemon *d, unsigned *peers, struct mq_error *err)
{
	struct mq_listener *list[LISTENERS];
	size_t count = listeners(d, list);
	uint64_t held = mq_schedule_held(d->schedule);
	enum mq_status s = MQ_OK;

	*peers = count_peers(list, count);
	if (!mq_guard_exceeded(&d->guard, *peers, held, mq_clock_ms()))
		return MQ_OK;
	/* Who comes over the network is likelier to hold it; mostly this machine's own need not go. */
	if (d->remote_service) {
		mq_service_stop(d->remote_service);
		*peers = count_peers(list, count);
		if (mq_guard_enough(&d->guard, *peers, held))
			return mq_listener_start(mq_service_listener(d->remote_service), err);
	}
	mq_service_stop(d->service);
	for (size_t i = 0; i < count; i++)
		mq_listener_stop(list[i]);
	mq_guard_settle(&d->guard, held);
	*peers = 0;
	for (size_t i = 0; !s && i < count; i++)
		s = mq_listener_start(list[i], err);
	return s;
}

static void sooner(int64_t *due, int64_t other)
{
	if (other >= 0 && (*due < 0 || other < *due))
		*due = other;
}

static long poll_ms(struct daemon *d, int64_t stop_at, bool more, unsigned peers)
{
	int64_t now = mq_clock_ms(), due = mq_schedule_due(d->schedule, now);

	if (more)
		return 0;
	sooner(&due, mq_exports_expire(d->exports, now));
	sooner(&due, mq_copying_due(&d->copying));
	sooner(&due, mq_publish_due(d->publish, now));
	sooner(&due, mq_guard_due(&d->guard, peers));
	sooner(&due, mq_retain_due(&d->retain, now));
	if (stop_at)
		due = stop_at > now ? stop_at - now : 0;
	if (d->notify_ms) {
		int64_t left = d->notified_ms + d->notify_ms - mq_clock_ms();

		if (due < 0 || left < due)
			due = left > 0 ? left : 0;
	}
	return due > 3600000 ? 3600000 : (long)due;
}

/* Tells the service manager that all is well, having looked: the store answers, no thread is stuck. */
static enum mq_status notify_alive(struct daemon *d, struct mq_error *err)
{
	int64_t id, now = mq_clock_ms();
	size_t count;
	enum mq_status s;

	if (!d->notify_ms || now < d->notified_ms + d->notify_ms)
		return MQ_OK;
	s = mq_store_jobs_in(d->store, MQ_JOB_RUNNING, &id, 1, &count, err);
	if (s)
		return s;
	mq_watchdog_check();
	mq_daemon_notify("WATCHDOG=1");
	d->notified_ms = now;
	return MQ_OK;
}

#define POLLED (2 + 3 * LISTENERS)

/* All that wakes the main loop. The sockets are others after mq_listener_start. */
static int polled(struct daemon *d, zmq_pollitem_t out[POLLED])
{
	struct mq_listener *list[LISTENERS];
	size_t count = listeners(d, list);
	int n = 0;

	out[n++] = (zmq_pollitem_t){NULL, mq_events_fd(d->events), ZMQ_POLLIN, 0};
	out[n++] = (zmq_pollitem_t){NULL, d->signal_fd, ZMQ_POLLIN, 0};
	for (size_t i = 0; i < count; i++) {
		out[n++] = (zmq_pollitem_t){list[i]->socket, 0, ZMQ_POLLIN, 0};
		out[n++] = (zmq_pollitem_t){mq_listener_monitor(list[i]), 0, ZMQ_POLLIN, 0};
		if (mq_listener_zap(list[i]))
			out[n++] = (zmq_pollitem_t){mq_listener_zap(list[i]), 0, ZMQ_POLLIN, 0};
	}
	return n;
}

enum mq_status mq_daemon_loop(struct daemon *d, struct mq_error *err)
{
	int64_t stop_at = 0;
	zmq_pollitem_t items[POLLED];
	bool more = true;
	unsigned peers;
	int count;
	enum mq_status s;

	for (;;) {
		s = check_peers(d, &peers, err);
		if (s)
			return s;
		count = polled(d, items);
		mq_watch_end(&d->watch);
		if (zmq_poll(items, count, poll_ms(d, stop_at, more, peers)) < 0 && errno != EINTR)
			return mq_fail(err, MQ_EINTERNAL, "waiting for work: %s", zmq_strerror(errno));
		/* Still busy when this returns: bringing the parts down is watched too. */
		mq_watch_begin(&d->watch);
		if (stop_asked(d) && !stop_at) {
			mq_log(MQ_LOG_INFO, "stopping: handing back what is in flight");
			mq_daemon_notify("STOPPING=1");
			stop_at = mq_clock_ms() + STOP_MS;
			mq_schedule_stop(d->schedule);
		}
		s = turn(d, stop_at != 0, &more, err);
		if (!s)
			s = notify_alive(d, err);
		if (s)
			return s;
		if (mq_schedule_idle(d->schedule))
			mq_watch_end(&d->work);
		else
			mq_watch_begin(&d->work);
		if (stop_at && mq_schedule_idle(d->schedule))
			return MQ_OK;
		if (stop_at && mq_clock_ms() >= stop_at)
			return mq_fail(err, MQ_ETIMEOUT, "what is in flight did not end in time");
	}
}
