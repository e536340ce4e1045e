/* daemon_private: what the daemon's two files share: the parts (daemon.c brings them up and down) and the
 * loop that runs while all are up (loop.c). */
#ifndef MQ_DAEMON_PRIVATE_H
#define MQ_DAEMON_PRIVATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "worker/copying.h"
#include "worker/devices.h"
#include "worker/guard.h"
#include "worker/publish.h"
#include "worker/remote.h"
#include "worker/retain.h"
#include "worker/schedule.h"
#include "worker/service.h"
#include "worker/settings.h"
#include "worker/watchdog.h"

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

/* Tells the service manager, if there is one. */
void mq_daemon_notify(const char *state);

/* Until a signal asks to stop and what was in flight has been handed back. A failure: nothing in memory can
 * be relied on. */
enum mq_status mq_daemon_loop(struct daemon *d, struct mq_error *err);

#endif
