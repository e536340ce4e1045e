/* watchdog: ends the process when a thread gets stuck, so that it is started again and recovers.
 *
 * Every thread of the worker has a mq_watch: busy from begin to end, and getting on while its counter
 * grows (src/alive.h). A thread that is busy and whose counter stands still for the set time is stuck:
 * a kernel that does not end, a lost wake-up, a disk that does not answer. Nothing can be done about it
 * from inside, so it is logged, counted in a file and the process aborts; what was in flight becomes a
 * suspect at the next start, as after any unclean end.
 *
 * One a process, like the log. Its own thread looks some times within the set time while anything is
 * busy and sleeps without waking up while nothing is. */
#ifndef MQ_WATCHDOG_H
#define MQ_WATCHDOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/status.h"

enum mq_watch_kind {
	MQ_WATCH_MAIN, /* the main loop */
	MQ_WATCH_PART, /* a thread that has a part in rendering */
	MQ_WATCH_WHOLE /* what passes through many threads: gets on when any part does */
};

/* Part of what it watches. */
struct mq_watch {
	const char *what;        /* for the log: "a device thread"; outlives it */
	atomic_ullong counter;
	atomic_bool busy;
	/* the watchdog's own */
	enum mq_watch_kind kind;
	unsigned long long seen;
	int64_t stuck_ms;
	struct mq_watch *next;
};

/* From add to remove the watchdog looks at it. Any thread, before or after mq_watchdog_open. */
void mq_watch_add(struct mq_watch *watch, enum mq_watch_kind kind, const char *what);
void mq_watch_remove(struct mq_watch *watch);

/* From now on this thread's mq_alive() counts here. */
void mq_watch_mine(struct mq_watch *watch);

/* Cheap: two atomic stores. Beginning again without an end is fine and is progress. */
void mq_watch_begin(struct mq_watch *watch);
void mq_watch_end(struct mq_watch *watch);

/* Starts watching; limit_ms 0: never ends the process. A line is added to the file `record` (in the
 * directory dirfd, which stays the caller's and must stay open) when it does. *ends: how many lines
 * there are, that is how often it has happened so far. */
enum mq_status mq_watchdog_open(int64_t limit_ms, int dirfd, const char *record, uint64_t *ends,
                                struct mq_error *err);
void mq_watchdog_close(void);

/* Looks now: comes back only if nothing is stuck. */
void mq_watchdog_check(void);

#endif
