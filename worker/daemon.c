/* daemon: see daemon.h. The parts come up in order and go down in the reverse order; the main loop runs
 * in between.
 *
 * The main loop is the only thread that touches the store, the socket and the scheduler. Each turn
 * takes what waits, decides, commits once, and only then answers and starts what was decided. When
 * that cannot be relied on any more (a failed commit, a broken device) the process ends: recovery at
 * the next start is the same code as after kill -9. */
#include "config.h"

#include "worker/daemon.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>
#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include "src/clock.h"
#include "src/log.h"
#include "src/message.h"
#include "worker/copying.h"
#include "worker/devices.h"
#include "worker/guard.h"
#include "worker/metrics.h"
#include "worker/preflight.h"
#include "worker/publish.h"
#include "worker/remote.h"
#include "worker/retain.h"
#include "worker/schedule.h"
#include "worker/service.h"
#include "worker/settings.h"
#include "worker/watchdog.h"

#define STOP_MS 8000

struct daemon {
	const struct mq_options *options;
	struct mq_settings set;
	struct mq_statedir dir;
	struct mq_store *store;
	struct mq_devices devices;
	struct mq_events *events;
	struct mq_pool *pool;
	struct mq_assembler *assembler;
	struct mq_exports *exports;
	struct mq_copying copying;
	struct mq_schedule *schedule;
	struct mq_service *service;
	struct mq_remote remote;
	struct mq_service *remote_service; /* for other machines, or NULL */
	struct mq_retain retain;
	struct mq_publish *publish;
	struct mq_guard guard;
	struct mq_verbs verbs, remote_verbs;
	sigset_t signals;
	int signal_fd;
	struct mq_watch watch, work; /* the main loop; what is in flight */
	uint64_t watchdog_ends;
	bool refused; /* the start has failed */
	int64_t notify_ms, notified_ms; /* the service manager's watchdog: every so often; the last time */
};

static void notify(const char *state)
{
#ifdef HAVE_SYSTEMD
	(void)sd_notify(0, state);
#else
	(void)state;
#endif
}

/* Each part has an init, and a fini that is called once its init has succeeded. */

static void fini_nothing(struct daemon *d)
{
	(void)d;
}

static enum mq_status init_settings(struct daemon *d, struct mq_error *err)
{
	return mq_settings_read(d->options, &d->set, err);
}

static void fini_settings(struct daemon *d)
{
	mq_settings_clear(&d->set);
}

/* Before any thread starts, so that all of them have the signals blocked. */
static enum mq_status init_signals(struct daemon *d, struct mq_error *err)
{
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&d->signals);
	sigaddset(&d->signals, SIGTERM);
	sigaddset(&d->signals, SIGINT);
	if (sigprocmask(SIG_BLOCK, &d->signals, NULL))
		return mq_fail_errno(err, errno, "blocking signals");
	d->signal_fd = signalfd(-1, &d->signals, SFD_CLOEXEC | SFD_NONBLOCK);
	return d->signal_fd < 0 ? mq_fail_errno(err, errno, "signalfd") : MQ_OK;
}

static void fini_signals(struct daemon *d)
{
	close(d->signal_fd);
}

static enum mq_status init_statedir(struct daemon *d, struct mq_error *err)
{
	return mq_statedir_open(d->set.state_dir, &d->dir, err);
}

static void fini_statedir(struct daemon *d)
{
	if (d->refused)
		mq_statedir_undo(&d->dir);
	mq_statedir_close(&d->dir);
}

static enum mq_status init_watchdog(struct daemon *d, struct mq_error *err)
{
	enum mq_status s = mq_watchdog_open((int64_t)d->set.stuck_ms, d->dir.fd, MQ_STATEDIR_STUCK,
	                                    &d->watchdog_ends, err);

	if (s)
		return s;
	mq_watch_add(&d->watch, MQ_WATCH_MAIN, "the main loop");
	mq_watch_add(&d->work, MQ_WATCH_WHOLE, "what is in flight");
	mq_watch_mine(&d->watch);
#ifdef HAVE_SYSTEMD
	uint64_t usec;

	if (sd_watchdog_enabled(0, &usec) > 0)
		d->notify_ms = usec > 2000 ? (int64_t)(usec / 2000) : 1;
#endif
	return MQ_OK;
}

static void fini_watchdog(struct daemon *d)
{
	mq_watch_remove(&d->work);
	mq_watch_remove(&d->watch);
	mq_watchdog_close();
}

static enum mq_status init_preflight(struct daemon *d, struct mq_error *err)
{
	return mq_preflight(&d->set, err);
}

static enum mq_status init_store(struct daemon *d, struct mq_error *err)
{
	char *path;
	enum mq_status s;

	if (asprintf(&path, "%s/mandelq.db", d->dir.path) < 0)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	s = mq_store_open(path, &d->store, err);
	free(path);
	return s;
}

static void fini_store(struct daemon *d)
{
	mq_store_close(d->store);
}

static enum mq_status init_devices(struct daemon *d, struct mq_error *err)
{
	return mq_devices_open(d->options->repeated, d->options->count[MQ_OPT_DEVICE], d->set.threads,
	                       &d->devices, err);
}

static void fini_devices(struct daemon *d)
{
	/* Those that the scheduler has not taken over. */
	while (d->devices.count) {
		struct mq_backend *b = d->devices.backend[--d->devices.count];

		b->ops->close(b);
	}
}

static enum mq_status init_events(struct daemon *d, struct mq_error *err)
{
	return mq_events_open(&d->events, err);
}

static void fini_events(struct daemon *d)
{
	mq_events_close(d->events);
}

static enum mq_status init_pool(struct daemon *d, struct mq_error *err)
{
	return mq_pool_open(d->set.threads, &d->pool, err);
}

static void fini_pool(struct daemon *d)
{
	mq_pool_close(d->pool);
}

static enum mq_status init_exports(struct daemon *d, struct mq_error *err)
{
	return mq_exports_open(&d->dir, &d->exports, err);
}

static void fini_exports(struct daemon *d)
{
	mq_copying_end(&d->copying);
	mq_exports_close(d->exports);
}

static enum mq_status init_schedule(struct daemon *d, struct mq_error *err)
{
	struct mq_schedule_config c = {.store = d->store, .dir = &d->dir, .pool = d->pool,
	                               .events = d->events,
	                               .device_memory = d->set.device_memory,
	                               .idle_release_ms = (int64_t)d->set.idle_release_ms,
	                               .shortcuts = !d->options->count[MQ_OPT_NO_SHORTCUTS]};
	enum mq_status s = mq_assembler_open(&d->dir, d->pool, d->events, &d->assembler, err);

	if (s)
		return s;
	c.assembler = d->assembler;
	s = mq_schedule_open(&c, &d->devices, &d->schedule, err);
	if (s)
		mq_assembler_close(d->assembler);
	return s;
}

static void fini_schedule(struct daemon *d)
{
	mq_assembler_close(d->assembler);
	mq_schedule_close(d->schedule);
}

static enum mq_status init_recovery(struct daemon *d, struct mq_error *err)
{
	enum mq_status s = mq_schedule_recover(d->schedule, mq_clock_ms(), err);

	return s ? s : mq_store_commit(d->store, NULL, err);
}

static enum mq_status init_service(struct daemon *d, struct mq_error *err)
{
	return mq_service_open(d->set.endpoint, NULL, &d->service, err);
}

static void fini_service(struct daemon *d)
{
	mq_service_close(d->service);
}

static enum mq_status init_remote(struct daemon *d, struct mq_error *err)
{
	enum mq_status s;

	if (!d->set.remote)
		return MQ_OK;
	s = mq_remote_open(d->dir.path, &d->remote, err);
	if (s)
		return s;
	s = mq_service_open(d->set.remote, &d->remote, &d->remote_service, err);
	if (s)
		mq_remote_close(&d->remote);
	return s;
}

static void fini_remote(struct daemon *d)
{
	if (!d->remote_service)
		return;
	mq_service_close(d->remote_service);
	mq_remote_close(&d->remote);
}

static enum mq_status init_publish(struct daemon *d, struct mq_error *err)
{
	const struct mq_publish_config c = {d->store, d->schedule, &d->dir};

	return mq_publish_open(&c, d->set.endpoint, &d->publish, err);
}

static void fini_publish(struct daemon *d)
{
	mq_publish_close(d->publish);
}

static enum mq_status init_guard(struct daemon *d, struct mq_error *err)
{
	return mq_guard_open(&d->guard, d->set.client_memory, d->set.threads, err);
}

static void fini_guard(struct daemon *d)
{
	mq_guard_close(&d->guard);
}

/* What may refuse to start comes before what changes the database. */
static const struct part {
	enum mq_status (*init)(struct daemon *d, struct mq_error *err);
	void (*fini)(struct daemon *d);
} parts[] = {
	{init_settings, fini_settings}, {init_signals, fini_signals},   {init_statedir, fini_statedir},
	{init_watchdog, fini_watchdog}, {init_preflight, fini_nothing}, {init_devices, fini_devices},
	{init_store, fini_store},       {init_events, fini_events},     {init_pool, fini_pool},
	{init_exports, fini_exports},   {init_schedule, fini_schedule}, {init_recovery, fini_nothing},
	{init_service, fini_service},   {init_remote, fini_remote},     {init_publish, fini_publish},
	{init_guard, fini_guard},
};
#define PARTS (sizeof parts / sizeof parts[0])

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
	notify("WATCHDOG=1");
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

/* Until a signal asks to stop and what was in flight has been handed back. */
static enum mq_status loop(struct daemon *d, struct mq_error *err)
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
			notify("STOPPING=1");
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

static int run(struct daemon *d)
{
	struct mq_error err = {""};
	enum mq_status s = MQ_OK;
	size_t up = 0;

	while (!s && up < PARTS) {
		s = parts[up].init(d, &err);
		if (!s)
			up++;
	}
	if (s) {
		fprintf(stderr, "mandelqd: %s\n", err.text);
		d->refused = true;
		while (up)
			parts[--up].fini(d);
		return s == MQ_EINVAL || s == MQ_EVERSION ? 2 : 1;
	}
	d->verbs = (struct mq_verbs){d->store, d->schedule, d->exports, &d->dir, d->devices.note,
	                             mq_publish_endpoint(d->publish), mq_clock_ms(), geteuid(),
	                             d->set.limits, d->watchdog_ends, &d->copying};
	d->remote_verbs = d->verbs;
	d->remote_verbs.events = NULL; /* a socket of this machine */
	d->retain = (struct mq_retain){(int64_t)d->set.keep_for_ms, d->set.keep_bytes, 0};
	if (d->watchdog_ends)
		mq_log(MQ_LOG_INFO, "%s/" MQ_STATEDIR_STUCK ": the watchdog has ended a worker here %llu times",
		       d->dir.path, (unsigned long long)d->watchdog_ends);
	mq_log(MQ_LOG_INFO, "mandelqd %s serves %s, devices: %s", PACKAGE_VERSION, d->set.endpoint,
	       d->devices.note);
	if (d->remote_service)
		mq_log(MQ_LOG_INFO, "other machines are served at %s; --server-key='%s'",
		       mq_listener_endpoint(mq_service_listener(d->remote_service)), d->remote.keys.public_key);
	notify("READY=1");
	s = loop(d, &err);
	if (s) {
		/* Nothing in memory can be relied on: leave as kill -9 would. */
		mq_log(MQ_LOG_ERROR, "ending, to recover at the next start: %s", err.text);
		_exit(1);
	}
	while (up)
		parts[--up].fini(d);
	mq_log(MQ_LOG_INFO, "stopped");
	return 0;
}

int mq_daemon_run(const struct mq_options *options)
{
	static struct daemon d;

	d.options = options;
	return run(&d);
}
