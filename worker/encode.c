/* encode: see encode.h. */
#include "config.h"

#include "worker/encode.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/failpoint.h"
#include "src/image/strip.h"
#include "src/image/tilefile.h"
#include "src/spare.h"

/* What belongs to a task while its strips are encoded. */
struct mq_encoding {
	struct mq_events *events;
	uint32_t strips;               /* of one tile */
	atomic_uint left;              /* strips of all tiles: the planes are needed */
	atomic_uint tile_left[2];      /* of each tile: its file is not begun */
	atomic_uint files_left;
	pthread_mutex_t lock;          /* of status and error */
	enum mq_status status;         /* the first failure */
	struct mq_error error;
	struct mq_strip_data *data[2]; /* a strip each; buffers owned */
	struct mq_work work[];         /* a strip each, tile by tile */
};

static void encoding_free(struct mq_encoding *e)
{
	for (int k = 0; k < 2; k++) {
		for (uint32_t i = 0; e->data[k] && i < e->strips; i++) {
			free((void *)e->data[k][i].picture);
			free((void *)e->data[k][i].counts);
			free((void *)e->data[k][i].smooth);
		}
		free(e->data[k]);
	}
	pthread_mutex_destroy(&e->lock);
	free(e);
}

static void encoding_fail(struct mq_encoding *e, enum mq_status status, const struct mq_error *err)
{
	pthread_mutex_lock(&e->lock);
	if (!e->status) {
		e->status = status;
		e->error = *err;
	}
	pthread_mutex_unlock(&e->lock);
}

/* Compressed bytes are kept at their own size, so that a tile takes what it needs and not the bound. */
static enum mq_status keep(const uint8_t *from, size_t bytes, const uint8_t **out,
                           struct mq_error *err)
{
	uint8_t *copy = mq_failpoint("encode-keep") ? NULL : mq_spare_malloc(bytes);

	if (!copy)
		return mq_fail(err, MQ_ENOMEM_HOST, "host memory: asked for %zu bytes for an encoded strip",
		               bytes);
	memcpy(copy, from, bytes);
	*out = copy;
	return MQ_OK;
}

/* The rows of a strip in one of the task's planes: as they lie there, or for the mirror image copied
 * upside down into work memory. */
static enum mq_status strip_rows(const struct mq_task *t, unsigned k, uint32_t index,
                                 const void *plane, size_t row_bytes, uint32_t rows,
                                 struct mq_pool_worker *w, const uint8_t **out, struct mq_error *err)
{
	uint32_t source = k ? t->tile[0].span.count - 1 - index : index;
	const uint8_t *from = (const uint8_t *)plane + (size_t)source * t->job->layout.strip_rows * row_bytes;
	uint8_t *copy;
	enum mq_status s;

	*out = from;
	if (!k)
		return MQ_OK;
	s = mq_pool_buffer(w, MQ_POOL_ROWS, rows * row_bytes, &copy, err);
	if (s)
		return s;
	for (uint32_t r = 0; r < rows; r++)
		memcpy(copy + r * row_bytes, from + (size_t)(rows - 1 - r) * row_bytes, row_bytes);
	*out = copy;
	return MQ_OK;
}

struct strip {
	const struct mq_task *task;
	unsigned k;     /* of which tile */
	uint32_t index; /* in it */
	uint32_t rows;
	struct mq_pool_worker *worker;
	struct mq_strip_encoder *encoder;
};

static enum mq_status encode_picture(const struct strip *p, struct mq_strip_data *data,
                                     struct mq_error *err)
{
	const struct mq_task *t = p->task;
	const struct mq_layout *l = &t->job->layout;
	size_t row_bytes = (size_t)l->width * l->channels;
	size_t room = mq_strip_bound(p->rows * (row_bytes + 1));
	struct mq_strip_result result = {0};
	const uint8_t *pixels;
	uint8_t *buffer;
	enum mq_status s;

	s = strip_rows(t, p->k, p->index, t->rendered.pixels, row_bytes, p->rows, p->worker, &pixels, err);
	if (!s)
		s = mq_pool_buffer(p->worker, MQ_POOL_OUT, room, &buffer, err);
	mq_strip_encoder_small(p->encoder, t->job->job->small);
	if (!s)
		s = mq_strip_encode(p->encoder, pixels, row_bytes, p->rows, l->channels,
		                    t->tile[p->k].span.first + p->index + 1 == l->strips, buffer, room, &result,
		                    err);
	if (!s)
		s = keep(buffer, result.bytes, &data->picture, err);
	if (s)
		return s;
	data->picture_bytes = result.bytes;
	data->adler = result.adler;
	data->filtered = result.filtered;
	return MQ_OK;
}

/* counts or smooth: 32-bit numbers. */
static enum mq_status encode_plane(const struct strip *p, const void *plane, const uint8_t **out,
                                   size_t *written, struct mq_error *err)
{
	size_t row_bytes = (size_t)p->task->job->layout.width * 4, bytes = p->rows * row_bytes;
	size_t room = mq_plane_bound(bytes);
	const uint8_t *rows;
	uint8_t *buffer;
	enum mq_status s;

	s = strip_rows(p->task, p->k, p->index, plane, row_bytes, p->rows, p->worker, &rows, err);
	if (!s)
		s = mq_pool_buffer(p->worker, MQ_POOL_OUT, room, &buffer, err);
	if (!s)
		s = mq_plane_encode(p->encoder, rows, bytes, buffer, room, written, err);
	if (!s)
		s = keep(buffer, *written, out, err);
	return s;
}

static enum mq_status encode_strip(struct mq_task *t, unsigned k, uint32_t index,
                                   struct mq_pool_worker *w, struct mq_error *err)
{
	const struct mq_layout *l = &t->job->layout;
	struct mq_strip_data *data = &t->encoding->data[k][index];
	struct strip p = {.task = t, .k = k, .index = index, .worker = w};
	enum mq_status s;

	p.rows = mq_span_rows(l, (struct mq_span){t->tile[k].span.first + index, 1});
	s = mq_pool_encoder(w, p.rows * ((size_t)l->width * l->channels + 1), &p.encoder, err);
	if (!s)
		s = encode_picture(&p, data, err);
	if (!s && t->rendered.counts) {
		s = encode_plane(&p, t->rendered.counts, &data->counts, &data->counts_bytes, err);
		if (!s)
			s = encode_plane(&p, t->rendered.smooth, &data->smooth, &data->smooth_bytes, err);
	}
	return s;
}

/* All strips of one tile are encoded: its file. */
static void write_tile(struct mq_task *t, unsigned k)
{
	struct mq_encoding *e = t->encoding;
	struct mq_task_tile *tile = &t->tile[k];
	struct mq_error err = {""};
	enum mq_status s;
	char name[64];

	pthread_mutex_lock(&e->lock);
	s = e->status;
	pthread_mutex_unlock(&e->lock);
	if (s)
		return;
	mq_tilefile_name(name, tile->span, tile->attempt);
	s = mq_tilefile_write(t->job->work_fd, name, t->job->id, tile->attempt, tile->span,
	                      t->job->layout.channels, e->data[k], &tile->file.bytes, tile->file.sha256,
	                      &err);
	if (s)
		encoding_fail(e, s, &err);
}

static void strip_run(struct mq_work *work, struct mq_pool_worker *w)
{
	struct mq_task *t = work->subject;
	struct mq_encoding *e = t->encoding;
	struct mq_events *events = e->events;
	struct mq_error err = {""};
	unsigned k = work->index / e->strips;
	enum mq_status s = atomic_load(&t->job->dropped)
	                           ? mq_fail(&err, MQ_ECANCELLED, "the job has ended")
	                           : encode_strip(t, k, work->index % e->strips, w, &err);

	if (s)
		encoding_fail(e, s, &err);
	if (atomic_fetch_sub(&e->left, 1) == 1)
		mq_device_slot_free(t->device, t->slot);
	if (atomic_fetch_sub(&e->tile_left[k], 1) != 1)
		return;
	write_tile(t, k);
	if (atomic_fetch_sub(&e->files_left, 1) != 1)
		return;
	t->status = e->status;
	t->error = e->error;
	t->encoding = NULL;
	encoding_free(e);
	mq_events_post(events, &t->event);
}

enum mq_status mq_encode_task(struct mq_task *t, struct mq_pool *pool, struct mq_events *events)
{
	uint32_t n = t->tile[0].span.count, all = n * t->tiles;
	struct mq_encoding *e =
		mq_failpoint("encode-alloc") ? NULL : calloc(1, sizeof *e + all * sizeof e->work[0]);
	bool short_of_memory = !e;

	if (e) {
		pthread_mutex_init(&e->lock, NULL);
		e->events = events;
		e->strips = n;
		atomic_init(&e->left, all);
		atomic_init(&e->files_left, t->tiles);
	}
	for (unsigned k = 0; e && k < t->tiles; k++) {
		atomic_init(&e->tile_left[k], n);
		e->data[k] = calloc(n, sizeof e->data[k][0]);
		short_of_memory |= !e->data[k];
	}
	if (short_of_memory) {
		if (e)
			encoding_free(e);
		return mq_fail(&t->error, MQ_ENOMEM_HOST, "host memory: asked for %zu bytes to encode a tile",
		               sizeof *e + all * (sizeof e->work[0] + sizeof e->data[0][0]));
	}
	for (uint32_t i = 0; i < all; i++)
		e->work[i] = (struct mq_work){strip_run, t, i, NULL};
	t->encoding = e;
	mq_pool_add(pool, e->work, all);
	return MQ_OK;
}
