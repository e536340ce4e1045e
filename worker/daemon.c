/* daemon: see daemon.h. The parts come up in order and go down in the reverse order; the main loop (loop.c)
 * runs in between.
 *
 * When what is in memory cannot be relied on any more (a failed commit, a broken device) the process
 * ends: recovery at the next start is the same code as after kill -9. */
#include "config.h"

#include "worker/daemon.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/signalfd.h>
#include <unistd.h>
#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include "src/clock.h"
#include "src/log.h"
#include "worker/daemon_private.h"
#include "worker/metrics.h"
#include "worker/preflight.h"

void mq_daemon_notify(const char *state)
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
	return mq_option_blame(d->set.state_dir_origin, mq_statedir_open(d->set.state_dir, &d->dir, err), err);
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
	const struct mq_devices_asked asked = {d->options->repeated, d->options->repeated_origin,
	                                       d->options->count[MQ_OPT_DEVICE]};

	return mq_devices_open(&asked, d->set.threads, &d->devices, err);
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
	return mq_option_blame(d->set.endpoint_origin,
	                       mq_service_open(d->set.endpoint, NULL, &d->service, err), err);
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
	s = mq_option_blame(d->set.remote_origin,
	                    mq_service_open(d->set.remote, &d->remote, &d->remote_service, err), err);
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
	mq_metrics_begin();
	mq_daemon_notify("READY=1");
	s = mq_daemon_loop(d, &err);
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
