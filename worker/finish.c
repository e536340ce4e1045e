/* finish: see finish.h. */
#include "config.h"

#include "worker/finish.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/alive.h"
#include "src/failpoint.h"
#include "src/image/preview.h"
#include "src/image/strip.h"

#define PREVIEW "preview.png"
#define PREVIEW_TMP ".preview.png.tmp"
/* Pieces of work under way, and strips a piece looks at before it goes to the end of the queue, so that
 * tiles of other jobs get their turn. */
#define PIECES 64
#define ONE_COLOUR (1u << 24)
#define STRIPS_A_TURN 8

struct verify {
	const struct mq_active *job;
	struct mq_pool *pool;
	const atomic_bool *giving_up;
	struct mq_png_reader *reader;
	struct mq_preview *preview;
	uint32_t *adler;
	atomic_uint colour;    /* of the first strip with one colour, and ONE_COLOUR; 0: none yet */
	atomic_bool varied;    /* there are two colours at least */
	atomic_ullong *alive; /* of the thread that waits */
	atomic_uint next;
	pthread_mutex_t lock;
	pthread_cond_t over;
	unsigned left;         /* pieces, under the lock */
	enum mq_status status; /* the first failure, under the lock */
	struct mq_error error;
	struct mq_work work[PIECES];
};

/* Almost every picture has two colours in its first strip: this costs next to nothing. */
static void look_for_colours(struct verify *v, const uint8_t *pixels, size_t bytes)
{
	unsigned channels = v->job->layout.channels, colour = ONE_COLOUR, none = 0;

	if (atomic_load_explicit(&v->varied, memory_order_relaxed))
		return;
	for (unsigned i = 0; i < channels; i++)
		colour |= (unsigned)pixels[i] << (8 * i);
	if (memcmp(pixels, pixels + channels, bytes - channels) ||
	    (!atomic_compare_exchange_strong(&v->colour, &none, colour) && none != colour))
		atomic_store(&v->varied, true);
}

static enum mq_status verify_strip(struct verify *v, uint32_t i, struct mq_pool_worker *w,
                                   struct mq_error *err)
{
	const struct mq_layout *l = &v->job->layout;
	uint32_t rows = mq_span_rows(l, (struct mq_span){i, 1});
	size_t row_bytes = (size_t)l->width * l->channels;
	struct mq_strip_encoder *encoder;
	uint8_t *pixels;
	enum mq_status s;

	mq_alive_for(v->alive);
	if (atomic_load_explicit(v->giving_up, memory_order_relaxed) || atomic_load(&v->job->dropped))
		return mq_fail(err, MQ_ECANCELLED, "verification was given up");
	s = mq_pool_encoder(w, rows * (row_bytes + 1), &encoder, err);
	if (!s)
		s = mq_pool_buffer(w, MQ_POOL_ROWS, rows * row_bytes, &pixels, err);
	if (!s)
		s = mq_png_strip(v->reader, encoder, i, pixels, &v->adler[i], err);
	if (s)
		return s;
	look_for_colours(v, pixels, rows * row_bytes);
	if (v->preview)
		mq_preview_add(v->preview, mq_strip_row0(l, i), rows, pixels);
	return MQ_OK;
}

static void verify_run(struct mq_work *work, struct mq_pool_worker *w)
{
	struct verify *v = work->subject;
	struct mq_error err = {""};
	enum mq_status s = MQ_OK;
	uint32_t i = 0;

	for (int turn = 0; turn < STRIPS_A_TURN && !s; turn++) {
		i = atomic_fetch_add(&v->next, 1);
		if (i >= v->job->layout.strips)
			break;
		s = verify_strip(v, i, w, &err);
	}
	if (!s && i < v->job->layout.strips) {
		mq_pool_add(v->pool, work, 1);
		return;
	}
	pthread_mutex_lock(&v->lock);
	if (s && !v->status) {
		v->status = s;
		v->error = err;
		atomic_store(&v->next, v->job->layout.strips); /* the others may stop */
	}
	if (--v->left == 0)
		pthread_cond_signal(&v->over);
	pthread_mutex_unlock(&v->lock);
}

static enum mq_status sync_picture(int fd, struct mq_error *err)
{
	int e = mq_failpoint("picture-fsync");

	if (!e && !fsync(fd))
		return MQ_OK;
	(void)mq_fail_errno(err, e ? e : errno, "syncing the picture");
	return MQ_ESYNC; /* never to be retried, whatever the errno */
}

/* The disk and the processors work at the same time. */
static enum mq_status verify_strips(struct verify *v, int fd, struct mq_error *err)
{
	uint32_t strips = v->job->layout.strips;
	uint32_t joined = 1;
	enum mq_status s, synced;

	v->left = strips < PIECES ? strips : PIECES;
	for (unsigned i = 0; i < v->left; i++)
		v->work[i] = (struct mq_work){verify_run, v, i, NULL};
	mq_pool_add(v->pool, v->work, v->left);
	synced = sync_picture(fd, err);
	if (synced)
		atomic_store(&v->next, strips); /* nobody needs to look any more */
	pthread_mutex_lock(&v->lock);
	while (v->left)
		pthread_cond_wait(&v->over, &v->lock);
	s = v->status;
	if (s && !synced && err)
		*err = v->error;
	pthread_mutex_unlock(&v->lock);
	if (s || synced)
		return synced ? synced : s;
	for (uint32_t i = 0; i < strips; i++) {
		const struct mq_layout *l = &v->job->layout;
		uint64_t rows = mq_span_rows(l, (struct mq_span){i, 1});

		joined = mq_adler_join(joined, v->adler[i], rows * ((uint64_t)l->width * l->channels + 1));
	}
	if (joined != mq_png_adler(v->reader))
		return mq_fail(err, MQ_ECORRUPT, "the picture read back has another Adler-32 than was written");
	return MQ_OK;
}

static enum mq_status write_preview(struct verify *v, int dirfd, uint32_t ppm, uint64_t *bytes,
                                    struct mq_error *err)
{
	int e = mq_failpoint("preview-create"), fd = -1;
	enum mq_status s;

	if (!e)
		fd = openat(dirfd, PREVIEW_TMP, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return mq_fail_errno(err, e ? e : errno, "making the preview");
	s = mq_preview_write(v->preview, fd, ppm, bytes, err);
	e = mq_failpoint("preview-fsync");
	if (!s && (e || fsync(fd))) {
		(void)mq_fail_errno(err, e ? e : errno, "syncing the preview");
		s = MQ_ESYNC; /* never to be retried, whatever the errno */
	}
	if (close(fd) && !s)
		s = mq_fail_errno(err, errno, "closing the preview");
	/* The folder is synced with the picture's rename, which follows. */
	e = mq_failpoint("preview-rename");
	if (!s && (e || renameat(dirfd, PREVIEW_TMP, dirfd, PREVIEW)))
		s = mq_fail_errno(err, e ? e : errno, "renaming the preview");
	if (s)
		(void)unlinkat(dirfd, PREVIEW_TMP, 0);
	return s;
}

static enum mq_status link_preview(int fd, int dirfd, const char *name, uint64_t *bytes,
                                   struct mq_error *err)
{
	struct stat st;

	if (fstat(fd, &st) || (unlinkat(dirfd, PREVIEW, 0) && errno != ENOENT) ||
	    linkat(dirfd, name, dirfd, PREVIEW, 0))
		return mq_fail_errno(err, errno, "naming the preview");
	*bytes = (uint64_t)st.st_size;
	return MQ_OK;
}

enum mq_status mq_finish_verify(int fd, int dirfd, const char *name,
                                const struct mq_png_header *header, const struct mq_active *job,
                                struct mq_pool *pool, const atomic_bool *giving_up,
                                uint64_t *preview_bytes, bool *flat, struct mq_error *err)
{
	struct verify *v = mq_failpoint("verify-alloc") ? NULL : calloc(1, sizeof *v);
	bool is_small = header->width <= MQ_PREVIEW_SIDE && header->height <= MQ_PREVIEW_SIDE;
	enum mq_status s = MQ_OK;

	if (v)
		v->adler = calloc(job->layout.strips, sizeof v->adler[0]);
	if (!v || !v->adler) {
		free(v);
		return mq_fail(err, MQ_ENOMEM_HOST, "host memory: asked for %zu bytes to verify a picture",
		               sizeof *v + job->layout.strips * sizeof(uint32_t));
	}
	v->job = job;
	v->pool = pool;
	v->giving_up = giving_up;
	v->alive = mq_alive_counter;
	pthread_mutex_init(&v->lock, NULL);
	pthread_cond_init(&v->over, NULL);
	s = mq_png_open(fd, header, &job->layout, &v->reader, err);
	if (!s && !is_small)
		s = mq_preview_open(header->width, header->height, header->channels, &job->shade,
		                    &v->preview, err);
	if (!s)
		s = verify_strips(v, fd, err);
	if (!s)
		s = is_small ? link_preview(fd, dirfd, name, preview_bytes, err)
		             : write_preview(v, dirfd, header->ppm, preview_bytes, err);
	*flat = !s && !atomic_load(&v->varied);
	mq_preview_close(v->preview);
	mq_png_close(v->reader);
	pthread_cond_destroy(&v->over);
	pthread_mutex_destroy(&v->lock);
	free(v->adler);
	free(v);
	return s;
}
