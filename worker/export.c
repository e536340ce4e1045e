/* export: see export.h. */
#include "config.h"

#include "worker/export.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/alive.h"
#include "src/failpoint.h"
#include "src/image/npy.h"
#include "src/image/png.h"
#include "src/image/strip.h"
#include "src/image/tilefile.h"
#include "src/spare.h"
#include "worker/watchdog.h"

struct mq_export {
	struct mq_export *next;    /* in the list of all */
	struct mq_export *queued;  /* in the list of those to prepare */
	uint64_t handle;
	int64_t used_ms;
	int fd;
	int64_t picture;   /* the job whose whole picture this is, or 0 */
	uint64_t read_to;  /* read without a gap up to here */
	/* settled once `done` is true; until then the preparing thread's own */
	atomic_bool done;
	enum mq_status status;
	struct mq_error error;
	uint64_t bytes;
	char sha256[65];
	/* for the preparing thread */
	struct mq_active *job;
	enum mq_export_what what;
	struct mq_region region;
	int source_dir;
	_Atomic uint32_t rows_done;
	double part; /* without a job: how much of it main has made */
	atomic_bool unwanted;
	bool left;                 /* under the lock: the preparing thread frees it */
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

static const char *const file_name[] = {"picture.png", "preview.png", "counts.mqc", "counts.mqc"};

/* Rows of the region, one after another; a strip is decoded when its first row is asked for. */
struct rows {
	struct mq_export *x;
	struct mq_png_reader *png;
	struct mq_countfile *counts;
	struct mq_strip_encoder *work;
	uint8_t *strip;      /* decoded */
	uint32_t strip_index; /* that it holds, or UINT32_MAX */
	size_t pixel_bytes;
};

static enum mq_status rows_get(void *arg, uint32_t y, uint8_t *out, struct mq_error *err)
{
	struct rows *r = arg;
	struct mq_export *x = r->x;
	const struct mq_layout *l = &x->job->layout;
	uint32_t row = x->region.y + y, index = row / l->strip_rows;
	size_t row_bytes = (size_t)l->width * r->pixel_bytes;
	uint32_t rows = mq_span_rows(l, (struct mq_span){index, 1}), adler;
	enum mq_status s = MQ_OK;

	if (atomic_load_explicit(&x->unwanted, memory_order_relaxed))
		return mq_fail(err, MQ_ECANCELLED, "the download was given up");
	if (r->strip_index != index) {
		r->strip_index = UINT32_MAX;
		if (r->png)
			s = mq_png_strip(r->png, r->work, index, r->strip, &adler, err);
		else
			s = mq_countfile_plane(r->counts, index, x->what == MQ_EXPORT_SMOOTH, r->strip,
			                       rows * row_bytes, err);
		if (s)
			return s;
		r->strip_index = index;
	}
	memcpy(out, r->strip + (row - index * l->strip_rows) * row_bytes + x->region.x * r->pixel_bytes,
	       x->region.width * r->pixel_bytes);
	mq_alive();
	atomic_store_explicit(&x->rows_done, y + 1, memory_order_relaxed);
	return MQ_OK;
}

static enum mq_status write_all(int fd, const void *bytes, size_t len, struct mq_error *err)
{
	const char *p = bytes;
	int e = mq_failpoint("export-write");

	if (e)
		return mq_fail_errno(err, e, "writing a download's temporary file");
	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return mq_fail_errno(err, errno, "writing a download's temporary file");
		p += n;
		len -= (size_t)n;
	}
	return MQ_OK;
}

static enum mq_status write_npy(struct rows *r, struct mq_error *err)
{
	struct mq_export *x = r->x;
	size_t row_bytes = (size_t)x->region.width * 4;
	char header[MQ_NPY_HEADER_MAX];
	size_t n = mq_npy_header(header, x->what == MQ_EXPORT_SMOOTH, x->region.height, x->region.width);
	uint8_t *row = malloc(row_bytes);
	enum mq_status s;

	if (!row)
		return mq_fail(err, MQ_ENOMEM_HOST, "host memory: asked for %zu bytes for a row", row_bytes);
	s = write_all(x->fd, header, n, err);
	for (uint32_t y = 0; !s && y < x->region.height; y++) {
		s = rows_get(r, y, row, err);
		if (!s)
			s = write_all(x->fd, row, row_bytes, err);
	}
	free(row);
	return s;
}

/* Size and SHA-256 of what has been written. */
static enum mq_status seal(struct mq_export *x, struct mq_error *err)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	unsigned char digest[32], *buffer = malloc(1 << 18);
	enum mq_status s = MQ_OK;
	uint64_t at = 0;
	ssize_t n;

	if (!md || !buffer || !EVP_DigestInit_ex(md, EVP_sha256(), NULL)) {
		s = mq_fail(err, MQ_ENOMEM_HOST, "no memory for a checksum");
		goto out;
	}
	while ((n = pread(x->fd, buffer, 1 << 18, (off_t)at)) > 0) {
		mq_alive();
		if (atomic_load_explicit(&x->unwanted, memory_order_relaxed)) {
			s = mq_fail(err, MQ_ECANCELLED, "the download was given up");
			goto out;
		}
		EVP_DigestUpdate(md, buffer, (size_t)n);
		at += (uint64_t)n;
	}
	if (n < 0) {
		s = mq_fail_errno(err, errno, "reading a download's temporary file");
		goto out;
	}
	EVP_DigestFinal_ex(md, digest, NULL);
	for (int i = 0; i < 32; i++)
		snprintf(x->sha256 + 2 * i, 3, "%02x", digest[i]);
	x->bytes = at;
out:
	EVP_MD_CTX_free(md);
	free(buffer);
	return s;
}

static enum mq_status prepare(struct mq_export *x, struct mq_error *err)
{
	const struct mq_job *job = x->job->job;
	const struct mq_layout *l = &x->job->layout;
	struct mq_png_header header = {job->width, job->height, l->channels, job->ppm, x->job->text};
	struct rows r = {.x = x, .strip_index = UINT32_MAX};
	uint32_t strip_rows = l->strip_rows < l->height ? l->strip_rows : l->height;
	enum mq_status s = MQ_OK;
	int source = -1;

	r.pixel_bytes = x->what == MQ_EXPORT_PICTURE ? l->channels : 4;
	r.strip = mq_spare_malloc((size_t)strip_rows * l->width * r.pixel_bytes);
	if (!r.strip)
		return mq_fail(err, MQ_ENOMEM_HOST, "host memory: asked for %zu bytes for a strip",
		               (size_t)strip_rows * l->width * r.pixel_bytes);
	if (x->what == MQ_EXPORT_PICTURE) {
		source = openat(x->source_dir, file_name[x->what], O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		if (source < 0)
			s = mq_fail_errno(err, errno, "the picture of job %lld", (long long)x->job->id);
		if (!s)
			s = mq_png_open(source, &header, l, &r.png, err);
		if (!s)
			s = mq_strip_encoder_open(strip_rows * ((size_t)l->width * l->channels + 1), &r.work, err);
		if (!s)
			s = mq_png_write_rows(x->fd, x->region.width, x->region.height, l->channels, job->ppm,
			                      rows_get, &r, err);
	} else {
		s = mq_countfile_open(x->source_dir, file_name[x->what], x->job->id, l->strips, &r.counts, err);
		if (!s)
			s = write_npy(&r, err);
	}
	if (!s)
		s = seal(x, err);
	mq_strip_encoder_close(r.work);
	mq_png_close(r.png);
	mq_countfile_close(r.counts);
	if (source >= 0)
		close(source);
	free(r.strip);
	return s;
}

static void export_free(struct mq_export *x)
{
	if (x->fd >= 0)
		close(x->fd);
	if (x->source_dir >= 0)
		close(x->source_dir);
	mq_active_release(x->job);
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
		x->status = prepare(x, &x->error);
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
	atomic_store(&x->unwanted, true);
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
	if (!x->job || !withdraw(xs, x))
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
		out->bytes = x->bytes;
		memcpy(out->sha256, x->sha256, sizeof out->sha256);
	} else {
		out->progress = x->job ? (double)atomic_load(&x->rows_done) / x->region.height : x->part;
	}
}

/* The file as it lies there. */
static enum mq_status begin_whole(struct mq_export *x, const struct mq_export_request *q,
                                  struct mq_error *err)
{
	struct stat st;

	x->fd = openat(x->source_dir, file_name[q->what], O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (x->fd < 0 || fstat(x->fd, &st))
		return mq_fail_errno(err, errno, "%s of job %lld", file_name[q->what], (long long)q->job);
	x->bytes = (uint64_t)st.st_size;
	if (q->what == MQ_EXPORT_PICTURE)
		x->picture = q->job;
	if (q->sha256)
		snprintf(x->sha256, sizeof x->sha256, "%s", q->sha256);
	atomic_store(&x->done, true);
	return MQ_OK;
}

/* An unnamed file in the work folder, and the job as the preparing thread needs it. */
static enum mq_status begin_part(struct mq_exports *xs, struct mq_export *x,
                                 const struct mq_export_request *q, struct mq_error *err)
{
	enum mq_status s = mq_active_open(xs->dir, q->job, q->spec, true, false, &x->job, err);

	if (s)
		return s;
	x->what = q->what;
	x->region = q->region ? *q->region
	                      : (struct mq_region){0, 0, x->job->job->width, x->job->job->height};
	int e = mq_failpoint("export-create");

	if (!e)
		x->fd = openat(xs->dir->work_fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
	if (x->fd < 0)
		return mq_fail_errno(err, e ? e : errno, "making a download's temporary file");
	pthread_mutex_lock(&xs->lock);
	*xs->last = x;
	xs->last = &x->queued;
	pthread_cond_broadcast(&xs->changed);
	pthread_mutex_unlock(&xs->lock);
	return MQ_OK;
}

static enum mq_status export_new(struct mq_exports *xs, int64_t now_ms, struct mq_export **out,
                                 struct mq_error *err)
{
	struct mq_export *x;

	if (xs->count >= MQ_EXPORT_MAX)
		return mq_fail(err, MQ_EBUSY, "%u downloads are open: try again when one has ended", xs->count);
	x = mq_failpoint("export-alloc") ? NULL : calloc(1, sizeof *x);
	if (!x)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a download");
	x->fd = x->source_dir = -1;
	x->handle = xs->next_handle + 1;
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

enum mq_status mq_export_promise(struct mq_exports *xs, int64_t now_ms, struct mq_export_state *out,
                                 struct mq_error *err)
{
	struct mq_export *x = NULL;
	enum mq_status s = export_new(xs, now_ms, &x, err);

	if (!s)
		export_add(xs, x, out);
	return s;
}

bool mq_export_promised(struct mq_exports *xs, uint64_t handle, double progress)
{
	struct mq_export *x = *find(xs, handle);

	if (x)
		x->part = progress;
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
	x->fd = fd;
	x->status = status;
	if (status)
		x->error = *err;
	else if (fstat(fd, &st))
		x->status = mq_fail_errno(&x->error, errno, "looking at a file to hand out");
	else
		x->bytes = (uint64_t)st.st_size;
	atomic_store(&x->done, true);
}

enum mq_status mq_export_begin(struct mq_exports *xs, const struct mq_export_request *q,
                               int64_t now_ms, struct mq_export_state *out, struct mq_error *err)
{
	bool whole = (q->what == MQ_EXPORT_PICTURE && !q->region) || q->what == MQ_EXPORT_PREVIEW;
	struct mq_export *x = NULL;
	enum mq_status s = export_new(xs, now_ms, &x, err);

	if (s)
		return s;
	s = mq_statedir_job(xs->dir->pictures_fd, q->job, MQ_MAKE_NOT, &x->source_dir, err);
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
	if (offset > x->bytes)
		return mq_fail(err, MQ_EINVAL, "offset is past the end");
	n = pread(x->fd, buffer, len, (off_t)offset);
	if (n < 0)
		return mq_fail_errno(err, errno, "reading a download");
	*got = (size_t)n;
	if (offset <= x->read_to && offset + (uint64_t)n > x->read_to)
		x->read_to = offset + (uint64_t)n;
	return MQ_OK;
}

int64_t mq_export_whole_read(struct mq_exports *xs, uint64_t handle)
{
	const struct mq_export *x = *find(xs, handle);

	return x && atomic_load(&x->done) && x->read_to == x->bytes ? x->picture : 0;
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
