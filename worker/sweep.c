/* sweep: see sweep.h. */
#include "config.h"

#include "worker/sweep.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "src/failpoint.h"
#include "src/log.h"
#include "worker/statedir.h"
#include "worker/watchdog.h"

struct folder {
	struct folder *next;
	int parent_fd;
	int64_t id;
};

struct mq_sweeper {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct folder *first, **last; /* under the lock */
	atomic_bool stop;             /* set under the lock */
};

static void sweep(const struct mq_sweeper *w, const struct folder *f)
{
	struct mq_error err = {""};
	enum mq_status s = mq_statedir_remove(f->parent_fd, f->id, &w->stop, &err);

	if (s && s != MQ_ECANCELLED)
		mq_log_job(MQ_LOG_WARN, f->id, "job %lld: %s; tried again at the next start",
		           (long long)f->id, err.text);
}

static struct folder *take(struct mq_sweeper *w)
{
	struct folder *f;

	pthread_mutex_lock(&w->lock);
	while (!w->first && !atomic_load(&w->stop))
		pthread_cond_wait(&w->more, &w->lock);
	f = atomic_load(&w->stop) ? NULL : w->first;
	if (f) {
		w->first = f->next;
		if (!w->first)
			w->last = &w->first;
	}
	pthread_mutex_unlock(&w->lock);
	return f;
}

static void *sweeper_main(void *arg)
{
	struct mq_sweeper *w = arg;
	struct folder *f;
	struct mq_watch watch;

	mq_watch_add(&watch, MQ_WATCH_PART, "the thread that removes files");
	mq_watch_mine(&watch);
	while ((f = take(w))) {
		mq_watch_begin(&watch);
		sweep(w, f);
		mq_watch_end(&watch);
		free(f);
	}
	mq_watch_remove(&watch);
	return NULL;
}

enum mq_status mq_sweeper_open(struct mq_sweeper **out, struct mq_error *err)
{
	struct mq_sweeper *w = calloc(1, sizeof *w);
	int e;

	if (!w)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for the sweeper");
	w->last = &w->first;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->more, NULL);
	e = pthread_create(&w->thread, NULL, sweeper_main, w);
	if (e) {
		free(w);
		return mq_fail_errno(err, e, "starting the thread that removes files");
	}
	*out = w;
	return MQ_OK;
}

void mq_sweeper_close(struct mq_sweeper *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	atomic_store(&w->stop, true);
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
	pthread_join(w->thread, NULL);
	while (w->first) {
		struct folder *f = w->first;

		w->first = f->next;
		free(f);
	}
	pthread_cond_destroy(&w->more);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

void mq_sweeper_add(struct mq_sweeper *w, int parent_fd, int64_t id)
{
	struct folder *f = mq_failpoint("sweep-alloc") ? NULL : malloc(sizeof *f);

	if (!f)
		return; /* the next start finds the folder */
	*f = (struct folder){NULL, parent_fd, id};
	pthread_mutex_lock(&w->lock);
	*w->last = f;
	w->last = &f->next;
	pthread_cond_signal(&w->more);
	pthread_mutex_unlock(&w->lock);
}
