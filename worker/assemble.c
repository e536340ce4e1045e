/* assemble: see assemble.h. */
#include "config.h"

#include "worker/assemble.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/alive.h"
#include "src/failpoint.h"
#include "src/image/png.h"
#include "src/image/tilefile.h"
#include "worker/finish.h"
#include "worker/watchdog.h"

#define PICTURE "picture.png"
#define PICTURE_TMP ".picture.png.tmp"
#define COUNTS "counts.mqc"

struct mq_assembler {
	struct mq_statedir *dir;
	struct mq_pool *pool;
	struct mq_events *events;
	pthread_t thread[MQ_ASSEMBLER_THREADS];
	unsigned threads;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct mq_assembly *first, **last;
	bool stop;          /* under the lock */
	atomic_bool giving_up;
};

void mq_assembly_free(struct mq_assembly *a)
{
	if (!a)
		return;
	mq_active_release(a->job);
	free(a->tiles);
	free(a->is_bad);
	free(a);
}

/* The files that an assembly writes. */
struct making {
	struct mq_assembly *a;
	int dirfd, fd;
	struct mq_png_writer *png;
	struct mq_countfile_writer *counts;
	uint64_t counts_bytes;
};

static enum mq_status open_tile(const struct mq_assembly *a, size_t i, struct mq_tilefile **out,
                                struct mq_error *err)
{
	const struct mq_done_tile *t = &a->tiles[i];
	char name[64];

	mq_alive();
	mq_tilefile_name(name, t->span, t->attempt);
	return mq_tilefile_open(a->job->work_fd, name, a->job->id, t->span, a->job->layout.channels,
	                        t->file.bytes, t->file.sha256, out, err);
}

/* Tiles that are opened, and so checked, side by side before they are joined one after another. */
#define WINDOW 64

struct window {
	const struct mq_assembly *a;
	size_t first;
	atomic_ullong *alive;  /* of the thread that waits */
	pthread_mutex_t lock;
	pthread_cond_t over;
	size_t left;           /* under the lock */
	struct mq_tilefile *file[WINDOW];
	enum mq_status status[WINDOW];
	struct mq_error error[WINDOW];
	struct mq_work work[WINDOW];
};

static void window_run(struct mq_work *work, struct mq_pool_worker *worker)
{
	struct window *w = work->subject;
	uint32_t i = work->index;

	(void)worker;
	w->status[i] = open_tile(w->a, w->first + i, &w->file[i], &w->error[i]);
	mq_alive_for(w->alive);
	pthread_mutex_lock(&w->lock);
	if (--w->left == 0)
		pthread_cond_signal(&w->over);
	pthread_mutex_unlock(&w->lock);
}

/* Opens n tiles from `first` on. */
static void window_open(struct window *w, struct mq_pool *pool, size_t first, size_t n)
{
	w->first = first;
	w->left = n;
	for (size_t i = 0; i < n; i++) {
		w->file[i] = NULL;
		w->work[i] = (struct mq_work){window_run, w, (uint32_t)i, NULL};
	}
	mq_pool_add(pool, w->work, n);
	pthread_mutex_lock(&w->lock);
	while (w->left)
		pthread_cond_wait(&w->over, &w->lock);
	pthread_mutex_unlock(&w->lock);
}

static void window_close(struct window *w, size_t n)
{
	for (size_t i = 0; i < n; i++)
		mq_tilefile_close(w->file[i]);
}

/* After one tile was found damaged: looks at all that follow, so that one round mends them all. */
static void mark_bad(struct mq_assembly *a, size_t from)
{
	a->is_bad[from] = true;
	a->bad = 1;
	for (size_t i = from + 1; i < a->count; i++) {
		struct mq_tilefile *file;

		if (open_tile(a, i, &file, NULL)) {
			a->is_bad[i] = true;
			a->bad++;
		} else {
			mq_tilefile_close(file);
		}
	}
}

static enum mq_status join_tile(struct making *m, struct window *w, size_t i)
{
	struct mq_assembly *a = m->a;
	struct mq_strip_data strip;
	struct mq_tilefile *file = w->file[i - w->first];
	enum mq_status s = w->status[i - w->first];

	mq_alive();
	if (s) {
		a->error = w->error[i - w->first];
		if (s == MQ_ECORRUPT || s == MQ_ENOENT || s == MQ_EIO) {
			mark_bad(a, i);
			return MQ_ECORRUPT;
		}
		return s;
	}
	for (uint32_t k = 0; !s && k < a->tiles[i].span.count; k++) {
		mq_tilefile_strip(file, k, &strip);
		s = mq_png_add(m->png, strip.picture, strip.picture_bytes, strip.adler, strip.filtered,
		               a->tiles[i].span.first + k + 1 == a->job->layout.strips, NULL, &a->error);
		if (!s && m->counts)
			s = mq_countfile_add(m->counts, &strip, &a->error);
	}
	return s;
}

static enum mq_status join_window(struct mq_assembler *as, struct making *m, struct window *w,
                                  size_t first)
{
	struct mq_assembly *a = m->a;
	size_t n = a->count - first < WINDOW ? a->count - first : WINDOW;
	enum mq_status s = MQ_OK;

	if (atomic_load(&as->giving_up) || atomic_load(&a->job->dropped))
		return mq_fail(&a->error, MQ_ECANCELLED, "assembly was given up");
	window_open(w, as->pool, first, n);
	for (size_t i = 0; !s && i < n; i++)
		s = join_tile(m, w, first + i);
	window_close(w, n);
	return s;
}

static enum mq_status join_all(struct mq_assembler *as, struct making *m)
{
	struct window *w = mq_failpoint("window-alloc") ? NULL : calloc(1, sizeof *w);
	enum mq_status s = MQ_OK;

	if (!w)
		return mq_fail(&m->a->error, MQ_ENOMEM_HOST, "host memory: asked for %zu bytes to assemble",
		               sizeof *w);
	w->a = m->a;
	w->alive = mq_alive_counter;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->over, NULL);
	for (size_t first = 0; !s && first < m->a->count; first += WINDOW)
		s = join_window(as, m, w, first);
	pthread_cond_destroy(&w->over);
	pthread_mutex_destroy(&w->lock);
	free(w);
	return s;
}

static enum mq_status join_tiles(struct mq_assembler *as, struct making *m,
                                 const struct mq_png_header *header, uint64_t *bytes,
                                 uint8_t sha256[32])
{
	struct mq_assembly *a = m->a;
	enum mq_status s = mq_png_create(m->fd, header, &m->png, &a->error);

	if (!s && a->job->job->keep_counts)
		s = mq_countfile_create(m->dirfd, COUNTS, a->job->id, a->job->layout.strips, &m->counts,
		                        &a->error);
	if (!s)
		s = join_all(as, m);
	if (!s) {
		s = mq_png_finish(m->png, bytes, sha256, &a->error);
		m->png = NULL;
	}
	if (!s && m->counts) {
		s = mq_countfile_finish(m->counts, &m->counts_bytes, &a->error);
		m->counts = NULL;
	}
	return s;
}

static void hex(char out[65], const uint8_t sha256[32])
{
	for (int i = 0; i < 32; i++)
		snprintf(out + 2 * i, 3, "%02x", sha256[i]);
}

static enum mq_status publish(struct making *m)
{
	struct mq_error *err = &m->a->error;
	int e = mq_failpoint("picture-rename");

	if (e || renameat(m->dirfd, PICTURE_TMP, m->dirfd, PICTURE))
		return mq_fail_errno(err, e ? e : errno, "renaming the picture");
	e = mq_failpoint("picture-dirsync");
	if (!e && !fsync(m->dirfd))
		return MQ_OK;
	(void)mq_fail_errno(err, e ? e : errno, "syncing the folder of the picture");
	return MQ_ESYNC; /* never to be retried, whatever the errno */
}

static enum mq_status assemble(struct mq_assembler *as, struct mq_assembly *a)
{
	struct making m = {.a = a, .dirfd = -1, .fd = -1};
	struct mq_png_header header = {a->job->job->width, a->job->job->height, a->job->layout.channels,
	                               a->job->job->ppm, a->job->text};
	uint64_t bytes = 0, preview = 0;
	uint8_t sha256[32];
	bool flat = false;
	enum mq_status s;
	int e;

	mq_failpoint_assembly(a->job->id);
	s = mq_statedir_job(as->dir->pictures_fd, a->job->id, MQ_MAKE_DURABLE, &m.dirfd, &a->error);
	if (s)
		return s;
	e = mq_failpoint("picture-create");
	if (!e)
		m.fd = openat(m.dirfd, PICTURE_TMP, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		              0600);
	if (m.fd < 0)
		s = mq_fail_errno(&a->error, e ? e : errno, "making the picture's file");
	if (!s)
		s = join_tiles(as, &m, &header, &bytes, sha256);
	if (!s)
		s = mq_finish_verify(m.fd, m.dirfd, PICTURE_TMP, &header, a->job, as->pool, &as->giving_up, &preview,
		                     &flat, &a->error);
	if (!s)
		s = publish(&m);
	if (!s) {
		a->output.picture_bytes = (int64_t)bytes;
		a->output.preview_bytes = (int64_t)preview;
		a->output.counts_bytes = (int64_t)m.counts_bytes;
		a->output.flat = flat;
		hex(a->output.picture_sha256, sha256);
	}
	mq_png_abort(m.png);
	mq_countfile_abort(m.counts);
	if (m.fd >= 0)
		close(m.fd);
	if (s)
		(void)unlinkat(m.dirfd, PICTURE_TMP, 0); /* gone already, or tried again at the next start */
	close(m.dirfd);
	return s;
}

static void *assembler_main(void *arg)
{
	struct mq_assembler *as = arg;
	struct mq_assembly *a;
	struct mq_watch watch;

	mq_watch_add(&watch, MQ_WATCH_PART, "an assembly thread");
	mq_watch_mine(&watch);
	pthread_mutex_lock(&as->lock);
	for (;;) {
		while (!as->first && !as->stop)
			pthread_cond_wait(&as->more, &as->lock);
		if (!as->first)
			break;
		a = as->first;
		as->first = a->next;
		if (!as->first)
			as->last = &as->first;
		pthread_mutex_unlock(&as->lock);
		mq_watch_begin(&watch);
		a->status = assemble(as, a);
		mq_watch_end(&watch);
		mq_events_post(as->events, &a->event);
		pthread_mutex_lock(&as->lock);
	}
	pthread_mutex_unlock(&as->lock);
	mq_watch_remove(&watch);
	return NULL;
}

enum mq_status mq_assembler_open(struct mq_statedir *dir, struct mq_pool *pool,
                                 struct mq_events *events, struct mq_assembler **out,
                                 struct mq_error *err)
{
	struct mq_assembler *as = calloc(1, sizeof *as);
	int e = 0;

	if (!as)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for the assembler");
	as->dir = dir;
	as->pool = pool;
	as->events = events;
	as->last = &as->first;
	pthread_mutex_init(&as->lock, NULL);
	pthread_cond_init(&as->more, NULL);
	while (!e && as->threads < MQ_ASSEMBLER_THREADS) {
		e = pthread_create(&as->thread[as->threads], NULL, assembler_main, as);
		if (!e)
			as->threads++;
	}
	if (e) {
		mq_assembler_close(as);
		return mq_fail_errno(err, e, "starting an assembly thread");
	}
	*out = as;
	return MQ_OK;
}

void mq_assembler_close(struct mq_assembler *as)
{
	if (!as)
		return;
	atomic_store(&as->giving_up, true);
	pthread_mutex_lock(&as->lock);
	as->stop = true;
	pthread_cond_broadcast(&as->more);
	pthread_mutex_unlock(&as->lock);
	for (unsigned i = 0; i < as->threads; i++)
		pthread_join(as->thread[i], NULL);
	pthread_cond_destroy(&as->more);
	pthread_mutex_destroy(&as->lock);
	free(as);
}

void mq_assembler_add(struct mq_assembler *as, struct mq_assembly *a)
{
	pthread_mutex_lock(&as->lock);
	a->next = NULL;
	*as->last = a;
	as->last = &a->next;
	pthread_cond_signal(&as->more);
	pthread_mutex_unlock(&as->lock);
}
