/* pool: see pool.h. */
#include "config.h"

#include "worker/pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "src/failpoint.h"
#include "src/image/strip.h"
#include "src/spare.h"
#include "worker/watchdog.h"

struct mq_pool_worker {
	struct mq_pool *pool;
	pthread_t thread;
	struct mq_watch watch;
	struct mq_strip_encoder *encoder;
	size_t encoder_max;
	uint8_t *buffer[MQ_POOL_USES];
	size_t buffer_max[MQ_POOL_USES];
	bool busy; /* under the pool's lock */
};

struct mq_pool {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct mq_work *first, **last;
	bool stop;
	unsigned count;
	struct mq_pool_worker worker[];
};

enum mq_status mq_pool_encoder(struct mq_pool_worker *w, size_t filtered,
                               struct mq_strip_encoder **out, struct mq_error *err)
{
	enum mq_status s;

	if (!w->encoder || w->encoder_max < filtered) {
		mq_strip_encoder_close(w->encoder);
		w->encoder = NULL;
		s = mq_strip_encoder_open(filtered, &w->encoder, err);
		if (s)
			return s;
		w->encoder_max = filtered;
	}
	*out = w->encoder;
	return MQ_OK;
}

enum mq_status mq_pool_buffer(struct mq_pool_worker *w, enum mq_pool_use use, size_t bytes,
                              uint8_t **out, struct mq_error *err)
{
	if (w->buffer_max[use] < bytes) {
		free(w->buffer[use]);
		w->buffer_max[use] = 0;
		w->buffer[use] = mq_failpoint("pool-alloc") ? NULL : mq_spare_malloc(bytes);
		if (!w->buffer[use])
			return mq_fail(err, MQ_ENOMEM_HOST, "host memory: asked for %zu bytes for a strip", bytes);
		w->buffer_max[use] = bytes;
	}
	*out = w->buffer[use];
	return MQ_OK;
}

static void worker_trim(struct mq_pool_worker *w)
{
	mq_strip_encoder_close(w->encoder);
	w->encoder = NULL;
	w->encoder_max = 0;
	for (int i = 0; i < MQ_POOL_USES; i++) {
		free(w->buffer[i]);
		w->buffer[i] = NULL;
		w->buffer_max[i] = 0;
	}
}

static void *worker_main(void *arg)
{
	struct mq_pool_worker *w = arg;
	struct mq_pool *pool = w->pool;
	struct mq_work *work;

	mq_watch_mine(&w->watch);
	pthread_mutex_lock(&pool->lock);
	for (;;) {
		while (!pool->first && !pool->stop)
			pthread_cond_wait(&pool->more, &pool->lock);
		if (pool->stop)
			break;
		work = pool->first;
		pool->first = work->next;
		if (!pool->first)
			pool->last = &pool->first;
		w->busy = true;
		pthread_mutex_unlock(&pool->lock);
		mq_watch_begin(&w->watch);
		work->run(work, w);
		mq_watch_end(&w->watch);
		pthread_mutex_lock(&pool->lock);
		w->busy = false;
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

enum mq_status mq_pool_open(unsigned threads, struct mq_pool **out, struct mq_error *err)
{
	struct mq_pool *pool = calloc(1, sizeof *pool + threads * sizeof pool->worker[0]);
	int e;

	if (!pool)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for %u encoder threads", threads);
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->more, NULL);
	pool->last = &pool->first;
	for (pool->count = 0; pool->count < threads; pool->count++) {
		struct mq_pool_worker *w = &pool->worker[pool->count];

		w->pool = pool;
		mq_watch_add(&w->watch, MQ_WATCH_PART, "an encoder thread");
		e = pthread_create(&w->thread, NULL, worker_main, w);
		if (e) {
			mq_watch_remove(&w->watch);
			mq_pool_close(pool);
			return mq_fail_errno(err, e, "starting encoder thread %u of %u", pool->count + 1, threads);
		}
	}
	*out = pool;
	return MQ_OK;
}

void mq_pool_close(struct mq_pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->stop = true;
	pthread_cond_broadcast(&pool->more);
	pthread_mutex_unlock(&pool->lock);
	for (unsigned i = 0; i < pool->count; i++) {
		pthread_join(pool->worker[i].thread, NULL);
		mq_watch_remove(&pool->worker[i].watch);
		worker_trim(&pool->worker[i]);
	}
	pthread_cond_destroy(&pool->more);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

void mq_pool_add(struct mq_pool *pool, struct mq_work *works, size_t count)
{
	if (!count)
		return;
	for (size_t i = 0; i + 1 < count; i++)
		works[i].next = &works[i + 1];
	works[count - 1].next = NULL;
	pthread_mutex_lock(&pool->lock);
	*pool->last = works;
	pool->last = &works[count - 1].next;
	if (count == 1)
		pthread_cond_signal(&pool->more);
	else
		pthread_cond_broadcast(&pool->more);
	pthread_mutex_unlock(&pool->lock);
}

void mq_pool_trim(struct mq_pool *pool)
{
	pthread_mutex_lock(&pool->lock);
	for (unsigned i = 0; i < pool->count; i++)
		if (!pool->worker[i].busy)
			worker_trim(&pool->worker[i]);
	pthread_mutex_unlock(&pool->lock);
}
