/* export: see export.h. */
#include "config.h"

#include "worker/export.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/failpoint.h"
#include "worker/space.h"
#include "worker/watchdog.h"

#define FORGOTTEN_MS 5000

struct mq_export {
	struct mq_export *next;    /* in the list of all */
	struct mq_export *queued;  /* in the list of those to prepare */
	uint64_t handle;
	int64_t owner;             /* who opened it */
	int64_t used_ms;
	int64_t job;       /* 0: none */
	bool picture;      /* all of it */
	uint64_t estimate; /* bytes that the file may take */
	/* settled once `done` is true; until then the preparing thread's own */
	atomic_bool done;
	enum mq_status status;
	struct mq_error error;
	struct mq_part file; /* without a job there is nothing to make: only fd, bytes and sha256 are used */
	double promised;     /* how much of it main has made */
	bool left;           /* under the lock: the preparing thread frees it */
};

struct mq_exports {
	struct mq_statedir *dir;
	struct mq_export *all;
	unsigned count;
	uint64_t next_handle;
	pthread_t thread;
	struct mq_watch watch;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct mq_export *first, **last; /* to prepare, under the lock */
	struct mq_export *preparing;     /* under the lock */
	bool stop;
};

static void export_free(struct mq_export *x)
{
	if (x->file.fd >= 0)
		close(x->file.fd);
	if (x->file.source_dir >= 0)
		close(x->file.source_dir);
	mq_active_release(x->file.job);
	free(x);
}

static void *exports_main(void *arg)
{
	struct mq_exports *xs = arg;
	struct mq_export *x;

	mq_watch_mine(&xs->watch);
	pthread_mutex_lock(&xs->lock);
	for (;;) {
		while (!xs->first && !xs->stop)
			pthread_cond_wait(&xs->changed, &xs->lock);
		if (xs->stop)
			break;
		x = xs->first;
		xs->first = x->queued;
		if (!xs->first)
			xs->last = &xs->first;
		xs->preparing = x;
		pthread_mutex_unlock(&xs->lock);
		mq_watch_begin(&xs->watch);
		x->status = mq_part_make(&x->file, &x->error);
		mq_watch_end(&xs->watch);
		atomic_store(&x->done, true);
		pthread_mutex_lock(&xs->lock);
		xs->preparing = NULL;
		if (x->left)
			export_free(x);
	}
	pthread_mutex_unlock(&xs->lock);
	return NULL;
}

enum mq_status mq_exports_open(struct mq_statedir *dir, struct mq_exports **out, struct mq_error *err)
{
	struct mq_exports *xs = calloc(1, sizeof *xs);
	int e;

	if (!xs)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for downloads");
	xs->dir = dir;
	xs->last = &xs->first;
	/* Not from 1: a handle of an earlier run of the worker should not mean another file now. */
	xs->next_handle = (uint64_t)getpid() << 20;
	pthread_mutex_init(&xs->lock, NULL);
	pthread_cond_init(&xs->changed, NULL);
	mq_watch_add(&xs->watch, MQ_WATCH_PART, "the download thread");
	e = pthread_create(&xs->thread, NULL, exports_main, xs);
	if (e) {
		mq_watch_remove(&xs->watch);
		pthread_cond_destroy(&xs->changed);
		pthread_mutex_destroy(&xs->lock);
		free(xs);
		return mq_fail_errno(err, e, "starting the download thread");
	}
	*out = xs;
	return MQ_OK;
}

/* Takes x out of the queue. True: the thread has it in hands, and frees it as soon as it can; the main
 * loop does not wait for a disk. */
static bool withdraw(struct mq_exports *xs, struct mq_export *x)
{
	atomic_store(&x->file.unwanted, true);
	pthread_mutex_lock(&xs->lock);
	for (struct mq_export **p = &xs->first; *p; p = &(*p)->queued)
		if (*p == x) {
			*p = x->queued;
			if (!*p)
				xs->last = p;
			break;
		}
	x->left = xs->preparing == x;
	bool left = x->left;

	pthread_mutex_unlock(&xs->lock);
	return left;
}

static void export_remove(struct mq_exports *xs, struct mq_export **at)
{
	struct mq_export *x = *at;

	*at = x->next;
	xs->count--;
	if (!x->file.job || !withdraw(xs, x))
		export_free(x);
}

void mq_exports_close(struct mq_exports *xs)
{
	if (!xs)
		return;
	pthread_mutex_lock(&xs->lock);
	xs->stop = true;
	pthread_cond_broadcast(&xs->changed);
	pthread_mutex_unlock(&xs->lock);
	while (xs->all)
		export_remove(xs, &xs->all);
	pthread_join(xs->thread, NULL);
	mq_watch_remove(&xs->watch);
	pthread_cond_destroy(&xs->changed);
	pthread_mutex_destroy(&xs->lock);
	free(xs);
}

static struct mq_export **find(struct mq_exports *xs, uint64_t handle)
{
	struct mq_export **p = &xs->all;

	while (*p && (*p)->handle != handle)
		p = &(*p)->next;
	return p;
}

static void export_state(const struct mq_export *x, struct mq_export_state *out)
{
	/* One that failed already is not ready: the next poll says why. */
	*out = (struct mq_export_state){.handle = x->handle, .ready = atomic_load(&x->done) && !x->status};
	if (out->ready) {
		out->progress = 1;
		out->bytes = x->file.bytes;
		memcpy(out->sha256, x->file.sha256, sizeof out->sha256);
	} else {
		out->progress = x->promised;
		if (x->file.job)
			out->progress = (double)atomic_load(&x->file.rows_done) / x->file.region.height;
	}
}

/* The file as it lies there. */
static enum mq_status begin_whole(struct mq_export *x, const struct mq_export_request *q,
                                  struct mq_error *err)
{
	struct stat st;

	x->file.fd = openat(x->file.source_dir, mq_part_source(q->what),
	                    O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (x->file.fd < 0 || fstat(x->file.fd, &st))
		return mq_fail_errno(err, errno, "%s of job %lld", mq_part_source(q->what), (long long)q->job);
	if (!S_ISREG(st.st_mode))
		return mq_fail(err, MQ_ECORRUPT, "%s of job %lld is no plain file", mq_part_source(q->what),
		               (long long)q->job);
	x->file.bytes = (uint64_t)st.st_size;
	x->picture = q->what == MQ_EXPORT_PICTURE;
	if (q->sha256)
		snprintf(x->file.sha256, sizeof x->file.sha256, "%s", q->sha256);
	atomic_store(&x->done, true);
	return MQ_OK;
}

/* Bytes that files which are being made do not hold yet. */
static uint64_t promised(const struct mq_exports *xs)
{
	uint64_t sum = 0;
	struct stat st;

	for (const struct mq_export *x = xs->all; x; x = x->next)
		if (x->file.job && !atomic_load(&x->done) && !fstat(x->file.fd, &st) &&
		    (uint64_t)st.st_size < x->estimate)
			sum += x->estimate - (uint64_t)st.st_size;
	return sum;
}

enum mq_status mq_exports_room(struct mq_exports *xs, uint64_t bytes, const char *what, struct mq_error *err)
{
	return mq_space_beside(xs->dir, bytes, promised(xs), what, err);
}

static enum mq_status check_room(struct mq_exports *xs, struct mq_export *x, struct mq_error *err)
{
	bool region = x->file.what == MQ_EXPORT_PICTURE;
	struct stat st = {0};
	char what[64];

	if (region && fstatat(x->file.source_dir, mq_part_source(x->file.what), &st, AT_SYMLINK_NOFOLLOW))
		return mq_fail_errno(err, errno, "%s of job %lld", mq_part_source(x->file.what),
		                     (long long)x->job);
	x->estimate = mq_part_bytes(&x->file, (uint64_t)st.st_size);
	snprintf(what, sizeof what, "%s of job %lld", region ? "this region" : "counts", (long long)x->job);
	return mq_exports_room(xs, x->estimate, what, err);
}

/* An unnamed file in the work folder, and the job as the preparing thread needs it. */
static enum mq_status begin_part(struct mq_exports *xs, struct mq_export *x,
                                 const struct mq_export_request *q, struct mq_error *err)
{
	enum mq_status s = mq_active_open(xs->dir, q->job, q->row->spec, true, false, &x->file.job, err);
	struct mq_layout layout;

	/* The region was checked against the row, and the strips are cut by the settings. */
	if (!s)
		s = mq_active_agrees(x->file.job->job, q->row, &layout, err);
	if (s)
		return s;
	x->file.what = q->what;
	x->file.region = q->region ? *q->region
	                           : (struct mq_region){0, 0, x->file.job->job->width, x->file.job->job->height};
	s = check_room(xs, x, err);
	if (s)
		return s;

	int e = mq_failpoint("export-create");

	if (!e)
		x->file.fd = openat(xs->dir->work_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (x->file.fd < 0)
		return mq_fail_errno(err, e ? e : errno, "making a download's temporary file");
	pthread_mutex_lock(&xs->lock);
	*xs->last = x;
	xs->last = &x->queued;
	pthread_cond_broadcast(&xs->changed);
	pthread_mutex_unlock(&xs->lock);
	return MQ_OK;
}

static unsigned open_of(const struct mq_exports *xs, int64_t owner)
{
	unsigned n = 0;

	for (const struct mq_export *x = xs->all; x; x = x->next)
		n += x->owner == owner;
	return n;
}

/* Which gives way when all are taken: of the user with the most the one used longest ago, if that user has
 * more than the one who asks, or it seems forgotten (a client that was killed). Its client opens it again. */
static struct mq_export **dispensable(struct mq_exports *xs, int64_t owner, int64_t now_ms)
{
	struct mq_export **best = NULL;
	unsigned most = 0;

	for (struct mq_export **p = &xs->all; *p; p = &(*p)->next) {
		unsigned n = open_of(xs, (*p)->owner);

		if (!(*p)->file.job && !atomic_load(&(*p)->done))
			continue; /* the main thread is at work on it */
		if (!best || n > most || (n == most && (*p)->used_ms < (*best)->used_ms)) {
			best = p;
			most = n;
		}
	}
	if (best && most <= open_of(xs, owner) && now_ms - (*best)->used_ms < FORGOTTEN_MS)
		return NULL;
	return best;
}

static enum mq_status export_new(struct mq_exports *xs, int64_t owner, int64_t now_ms,
                                 struct mq_export **out, struct mq_error *err)
{
	struct mq_export *x, **old;

	if (xs->count >= MQ_EXPORT_MAX) {
		old = dispensable(xs, owner, now_ms);
		if (!old)
			return mq_fail(err, MQ_EBUSY, "%u downloads are open: try again when one has ended",
			               xs->count);
		export_remove(xs, old);
	}
	x = mq_failpoint("export-alloc") ? NULL : calloc(1, sizeof *x);
	if (!x)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a download");
	x->file.fd = x->file.source_dir = -1;
	x->handle = xs->next_handle + 1;
	x->owner = owner;
	x->used_ms = now_ms;
	*out = x;
	return MQ_OK;
}

static void export_add(struct mq_exports *xs, struct mq_export *x, struct mq_export_state *out)
{
	xs->next_handle++;
	x->next = xs->all;
	xs->all = x;
	xs->count++;
	export_state(x, out);
}

enum mq_status mq_export_promise(struct mq_exports *xs, int64_t owner, int64_t now_ms,
                                 struct mq_export_state *out, struct mq_error *err)
{
	struct mq_export *x = NULL;
	enum mq_status s = export_new(xs, owner, now_ms, &x, err);

	if (!s)
		export_add(xs, x, out);
	return s;
}

bool mq_export_promised(struct mq_exports *xs, uint64_t handle, double progress)
{
	struct mq_export *x = *find(xs, handle);

	if (x)
		x->promised = progress;
	return x;
}

void mq_export_settle(struct mq_exports *xs, uint64_t handle, int fd, enum mq_status status,
                      const struct mq_error *err)
{
	struct mq_export *x = *find(xs, handle);
	struct stat st;

	if (!x) {
		if (fd >= 0)
			close(fd);
		return;
	}
	x->file.fd = fd;
	x->status = status;
	if (status)
		x->error = *err;
	else if (fstat(fd, &st))
		x->status = mq_fail_errno(&x->error, errno, "looking at a file to hand out");
	else
		x->file.bytes = (uint64_t)st.st_size;
	atomic_store(&x->done, true);
}

enum mq_status mq_export_begin(struct mq_exports *xs, const struct mq_export_request *q,
                               int64_t now_ms, struct mq_export_state *out, struct mq_error *err)
{
	bool whole = (q->what == MQ_EXPORT_PICTURE && !q->region) || q->what == MQ_EXPORT_PREVIEW;
	struct mq_export *x = NULL;
	enum mq_status s = export_new(xs, q->owner, now_ms, &x, err);

	if (s)
		return s;
	x->job = q->job;
	s = mq_statedir_job(xs->dir->pictures_fd, q->job, MQ_MAKE_NOT, &x->file.source_dir, err);
	if (!s)
		s = whole ? begin_whole(x, q, err) : begin_part(xs, x, q, err);
	if (s) {
		export_free(x);
		return s;
	}
	export_add(xs, x, out);
	return MQ_OK;
}

/* Finds a handle that is in order and marks it as used; one whose preparing failed goes. */
static enum mq_status use(struct mq_exports *xs, uint64_t handle, int64_t now_ms,
                          struct mq_export **out, struct mq_error *err)
{
	struct mq_export **at = find(xs, handle), *x = *at;
	enum mq_status s;

	if (!x)
		return mq_fail(err, MQ_ESTALE, "the download has expired: fetch again");
	if (atomic_load(&x->done) && x->status) {
		s = mq_fail(err, x->status, "%s", x->error.text);
		export_remove(xs, at);
		return s;
	}
	x->used_ms = now_ms;
	*out = x;
	return MQ_OK;
}

enum mq_status mq_export_poll(struct mq_exports *xs, uint64_t handle, int64_t now_ms,
                              struct mq_export_state *out, struct mq_error *err)
{
	struct mq_export *x;
	enum mq_status s = use(xs, handle, now_ms, &x, err);

	if (!s)
		export_state(x, out);
	return s;
}

enum mq_status mq_export_read(struct mq_exports *xs, uint64_t handle, uint64_t offset, void *buffer,
                              size_t len, int64_t now_ms, size_t *got, struct mq_error *err)
{
	struct mq_export *x;
	enum mq_status s = use(xs, handle, now_ms, &x, err);
	ssize_t n;

	if (s)
		return s;
	if (!atomic_load(&x->done))
		return mq_fail(err, MQ_ESTATE, "the download is still being prepared");
	if (offset > x->file.bytes)
		return mq_fail(err, MQ_EINVAL, "offset is past the end");
	n = pread(x->file.fd, buffer, len, (off_t)offset);
	if (n < 0)
		return mq_fail_errno(err, errno, "reading a download");
	*got = (size_t)n;
	return MQ_OK;
}

int64_t mq_export_job(struct mq_exports *xs, uint64_t handle, bool *whole)
{
	const struct mq_export *x = *find(xs, handle);

	*whole = x && x->picture;
	return x ? x->job : 0;
}

void mq_export_end(struct mq_exports *xs, uint64_t handle)
{
	struct mq_export **at = find(xs, handle);

	if (*at)
		export_remove(xs, at);
}

int64_t mq_exports_expire(struct mq_exports *xs, int64_t now_ms)
{
	int64_t next = -1;

	for (struct mq_export **p = &xs->all; *p;) {
		int64_t left = (*p)->used_ms + MQ_EXPORT_IDLE_MS - now_ms;

		if (left <= 0) {
			export_remove(xs, p);
			continue;
		}
		if (next < 0 || left < next)
			next = left;
		p = &(*p)->next;
	}
	return next;
}
