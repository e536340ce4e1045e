/* watchdog: see watchdog.h. */
#include "worker/watchdog.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include "src/alive.h"
#include "src/clock.h"
#include "src/log.h"
#include "src/message.h"

#define LOOKS 8           /* within the set time */
#define LOOK_MAX_MS 10000
#define LAST_WORDS_S 5    /* to write the record, on a disk that may be what is stuck */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	struct mq_watch *all;   /* under the lock, like what follows */
	bool open, stop;
	atomic_bool asleep;     /* set under the lock */
	int64_t limit_ms, look_ms, looked_ms;
	int record_fd;
} dog = {.lock = PTHREAD_MUTEX_INITIALIZER, .record_fd = -1};

void mq_watch_add(struct mq_watch *w, enum mq_watch_kind kind, const char *what)
{
	w->what = what;
	w->kind = kind;
	w->seen = 0;
	w->stuck_ms = 0;
	atomic_init(&w->counter, 0);
	atomic_init(&w->busy, false);
	pthread_mutex_lock(&dog.lock);
	w->next = dog.all;
	dog.all = w;
	pthread_mutex_unlock(&dog.lock);
}

void mq_watch_remove(struct mq_watch *w)
{
	pthread_mutex_lock(&dog.lock);
	for (struct mq_watch **p = &dog.all; *p; p = &(*p)->next)
		if (*p == w) {
			*p = w->next;
			break;
		}
	pthread_mutex_unlock(&dog.lock);
}

void mq_watch_mine(struct mq_watch *w)
{
	mq_alive_counter = &w->counter;
}

void mq_watch_begin(struct mq_watch *w)
{
	mq_alive_for(&w->counter);
	if (atomic_load_explicit(&w->busy, memory_order_relaxed))
		return;
	/* Both sides write, then read what the other has written: one of them sees it. */
	atomic_store(&w->busy, true);
	if (!atomic_load(&dog.asleep))
		return;
	pthread_mutex_lock(&dog.lock);
	pthread_cond_signal(&dog.wake);
	pthread_mutex_unlock(&dog.lock);
}

void mq_watch_end(struct mq_watch *w)
{
	atomic_store(&w->busy, false);
}

static bool any_busy(void)
{
	for (const struct mq_watch *w = dog.all; w; w = w->next)
		if (atomic_load(&w->busy))
			return true;
	return false;
}

/* The log first: standard error hangs less often than a disk. */
static _Noreturn void end_process(const struct mq_watch *w)
{
	char now[32], line[256];
	int n;

	(void)alarm(LAST_WORDS_S); /* its default action ends the process */
	mq_log(MQ_LOG_ERROR, "%s made no progress for %.1f s: ending, to recover at the next start",
	       w->what, (double)w->stuck_ms / 1e3);
	mq_time_format(mq_clock_wall_ms(), now);
	n = snprintf(line, sizeof line, "%s %s made no progress for %.1f s\n", now, w->what,
	             (double)w->stuck_ms / 1e3);
	if (dog.record_fd >= 0 && write(dog.record_fd, line, (size_t)n) == n)
		(void)fsync(dog.record_fd); /* a record for people: nothing depends on it */
	abort();
}

static void look_at(struct mq_watch *w, unsigned long long total, int64_t passed_ms)
{
	unsigned long long n = w->kind == MQ_WATCH_WHOLE ? total : atomic_load(&w->counter);

	if (!atomic_load(&w->busy) || n != w->seen) {
		w->seen = n;
		w->stuck_ms = 0;
		return;
	}
	w->stuck_ms += passed_ms;
	/* The thread that is stuck says more than the whole that waits for it. */
	if (w->stuck_ms >= dog.limit_ms + (w->kind == MQ_WATCH_WHOLE ? 2 * dog.look_ms : 0))
		end_process(w);
}

/* With the lock held. Time in which nobody looked (the process or the machine was stopped) does not
 * count: nothing could get on in it. */
static void look(void)
{
	int64_t now = mq_clock_ms(), passed = now - dog.looked_ms;
	unsigned long long total = 0;

	if (passed > 2 * dog.look_ms)
		passed = 2 * dog.look_ms;
	dog.looked_ms = now;
	for (const struct mq_watch *w = dog.all; w; w = w->next)
		if (w->kind == MQ_WATCH_PART)
			total += atomic_load(&w->counter);
	for (struct mq_watch *w = dog.all; w; w = w->next)
		look_at(w, total, passed);
}

void mq_watchdog_check(void)
{
	pthread_mutex_lock(&dog.lock);
	if (dog.open)
		look();
	pthread_mutex_unlock(&dog.lock);
}

static void nap(void)
{
	int64_t until = mq_clock_ms() + dog.look_ms;
	struct timespec t = {until / 1000, until % 1000 * 1000000};

	while (!dog.stop && mq_clock_ms() < until)
		(void)pthread_cond_timedwait(&dog.wake, &dog.lock, &t); /* the loop asks the clock */
}

static void *dog_main(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&dog.lock);
	while (!dog.stop) {
		atomic_store(&dog.asleep, true);
		while (!dog.stop && !any_busy()) {
			pthread_cond_wait(&dog.wake, &dog.lock);
			dog.looked_ms = mq_clock_ms();
		}
		atomic_store(&dog.asleep, false);
		nap();
		if (!dog.stop)
			look();
	}
	pthread_mutex_unlock(&dog.lock);
	return NULL;
}

static enum mq_status open_record(int dirfd, const char *name, uint64_t *ends, struct mq_error *err)
{
	char buffer[4096];
	ssize_t n;

	*ends = 0;
	dog.record_fd = openat(dirfd, name, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (dog.record_fd < 0)
		return mq_fail_errno(err, errno, "opening %s", name);
	while ((n = read(dog.record_fd, buffer, sizeof buffer)) > 0)
		for (ssize_t i = 0; i < n; i++)
			*ends += buffer[i] == '\n';
	if (n < 0)
		return mq_fail_errno(err, errno, "reading %s", name);
	return MQ_OK;
}

static int start_thread(void)
{
	pthread_condattr_t attr;
	int e = pthread_condattr_init(&attr);

	if (!e)
		e = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	if (!e)
		e = pthread_cond_init(&dog.wake, &attr);
	if (!e)
		e = pthread_create(&dog.thread, NULL, dog_main, NULL);
	(void)pthread_condattr_destroy(&attr);
	return e;
}

enum mq_status mq_watchdog_open(int64_t limit_ms, int dirfd, const char *record, uint64_t *ends,
                                struct mq_error *err)
{
	enum mq_status s = open_record(dirfd, record, ends, err);
	int e = 0;

	dog.limit_ms = limit_ms;
	dog.look_ms = limit_ms / LOOKS < LOOK_MAX_MS ? limit_ms / LOOKS + 1 : LOOK_MAX_MS;
	dog.looked_ms = mq_clock_ms();
	dog.stop = false;
	if (!s && limit_ms) {
		e = start_thread();
		dog.open = !e;
	}
	if (e)
		s = mq_fail_errno(err, e, "starting the watchdog");
	if (s)
		mq_watchdog_close();
	return s;
}

void mq_watchdog_close(void)
{
	if (dog.open) {
		pthread_mutex_lock(&dog.lock);
		dog.stop = true;
		pthread_cond_signal(&dog.wake);
		pthread_mutex_unlock(&dog.lock);
		pthread_join(dog.thread, NULL);
		pthread_cond_destroy(&dog.wake);
		dog.open = false;
	}
	if (dog.record_fd >= 0)
		close(dog.record_fd);
	dog.record_fd = -1;
}
