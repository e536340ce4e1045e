/* cuda: the CUDA backend's host side: devices, slots (cuda_slot.h), and rounds of kernels
 * (escape_cuda.h) until a tile is done. Called by whoever opens backends; everything but cancel()
 * from the device's own thread.
 *
 * A CUDA error other than "out of memory" stays with the context for good, so it is reported as
 * MQ_EDEVICE and never retried. */
#include "config.h"

#include <cuda_runtime_api.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/backend.h"
#include "kernels/cuda_slot.h"
#include "kernels/escape_cuda.h"
#include "src/alive.h"
#include "src/failpoint.h"

/* Batches that are put into the stream before the host looks at control, and the time that each of
 * their two runs of rest may take: together at most 0.24 s, after which a cancel is seen. */
#define BATCHES_AHEAD 3u
#define BUDGET_NS 40000000u
/* How long wait() watches before it sleeps. */
#define WATCH_NS 50000

struct cuda_backend {
	struct mq_backend base;
	int device;
	unsigned blocks; /* of each run of rest */
	unsigned slots;
	uint64_t bytes;
	struct mq_cuda_slot *slot;
	struct mq_device_info info;
	atomic_bool cancel;
};

static struct cuda_backend *self(struct mq_backend *b)
{
	return (struct cuda_backend *)b;
}

static void release(struct cuda_backend *b)
{
	for (unsigned i = 0; i < b->slots; i++)
		mq_cuda_slot_free(&b->slot[i]);
	free(b->slot);
	b->slot = NULL;
	b->slots = 0;
	b->bytes = 0;
}

static enum mq_status use_device(struct cuda_backend *b, struct mq_error *err)
{
	cudaError_t e = cudaSetDevice(b->device);

	return e == cudaSuccess ? MQ_OK : mq_cuda_device_error(err, e, "cudaSetDevice");
}

static enum mq_status cuda_reserve(struct mq_backend *base, unsigned slots, uint64_t bytes,
                                   struct mq_error *err)
{
	struct cuda_backend *b = self(base);
	enum mq_status st = use_device(b, err);

	if (st)
		return st;
	release(b);
	if (bytes == 0 || slots == 0)
		return MQ_OK;
	b->slot = calloc(slots, sizeof *b->slot);
	if (!b->slot)
		return mq_cuda_no_host_memory(err, slots * sizeof *b->slot);
	b->slots = slots;
	b->bytes = bytes;
	for (unsigned i = 0; i < slots; i++) {
		st = mq_cuda_slot_take(&b->slot[i], bytes, err);
		if (st) {
			release(b);
			return st;
		}
	}
	return MQ_OK;
}

/* Sets task to batch number `batch` of the slot's tile. */
static void set_batch(struct mq_cuda_slot *s, uint32_t batch)
{
	struct mq_cuda_task *t = &s->task;
	uint64_t all = (uint64_t)s->rows * s->scene.width;
	uint64_t first = (uint64_t)batch * s->batch_pixels, pixels = all - first;
	uint8_t *at = s->device;

	if (pixels > s->batch_pixels)
		pixels = s->batch_pixels;
	t->batch = batch;
	t->samples = (uint32_t)pixels * t->supersample * t->supersample;
	t->row = s->row0 + (uint32_t)(first / t->width);
	t->col = (uint32_t)(first % t->width);
	t->counts = NULL;
	t->smooth = NULL;
	if (s->scene.keep_counts) {
		t->counts = (uint32_t *)at + first;
		t->smooth = (float *)at + all + first;
		at += all * 8;
	}
	t->pixels = at + first * t->channels;
}

/* The kernels of one round of the batch that task is set to. */
static cudaError_t launch_round(struct cuda_backend *b, struct mq_cuda_slot *s, bool begun)
{
	const struct mq_cuda_task *t = &s->task;
	/* A list that is half full is worked off before it gets more. */
	bool first = !begun || s->control->count[0] <= t->capacity / 2;
	int e = cudaSuccess;

	if (first)
		e = mq_cuda_first(t, begun, s->stream);
	if (e == cudaSuccess)
		e = mq_cuda_rest(t, 0, first, false, b->blocks, s->stream);
	if (e == cudaSuccess)
		e = mq_cuda_rest(t, 1, false, true, b->blocks, s->stream);
	if (e == cudaSuccess && t->supersample > 1)
		e = mq_cuda_mean(t, s->stream);
	return (cudaError_t)e;
}

/* Puts the next rounds into the stream, and behind them the copy of the tile, which is in vain if it
 * then is not done. control (the host's) says how far it is. */
static enum mq_status send(struct cuda_backend *b, struct mq_cuda_slot *s, struct mq_error *err)
{
	uint32_t batch = s->control->batch, end = s->batches;
	uint64_t used = (uint64_t)s->rows * s->scene.width *
	                mq_pixel_bytes(s->task.channels, s->scene.keep_counts);
	cudaError_t e;

	if (end - batch > BATCHES_AHEAD)
		end = batch + BATCHES_AHEAD;
	e = mq_failpoint("cuda-launch") ? cudaErrorLaunchFailure : cudaEventRecord(s->begin, s->stream);
	for (; batch < end && e == cudaSuccess; batch++) {
		set_batch(s, batch);
		/* What was sent behind a batch that did not finish has done nothing. */
		e = launch_round(b, s, batch == s->control->batch && batch < s->sent);
	}
	if (batch > s->sent)
		s->sent = batch;
	if (e == cudaSuccess)
		e = cudaEventRecord(s->end, s->stream);
	if (e == cudaSuccess)
		e = cudaMemcpyAsync(s->control, s->device_control, sizeof *s->control,
		                    cudaMemcpyDeviceToHost, s->stream);
	if (e == cudaSuccess && batch == s->batches)
		e = cudaMemcpyAsync(s->host, s->device, used, cudaMemcpyDeviceToHost, s->stream);
	if (e == cudaSuccess)
		e = cudaEventRecord(s->done, s->stream);
	return e == cudaSuccess ? MQ_OK : mq_cuda_device_error(err, e, "cannot start the kernels");
}

/* False when halving by the exponent could be seen in a result: see escape_steps.cuh. An imaginary
 * part that is not zero is at least half an ulp of dy or an ulp of ymax. */
static bool fast_steps_exact(const struct mq_grid *g)
{
	const double tiny = 0x1p-800;

	return g->dy >= tiny && (g->ymax == 0 || g->ymax >= tiny || g->ymax <= -tiny);
}

/* Brings the tables to the device unless they are there. */
static cudaError_t send_shade(struct mq_cuda_slot *s, const struct mq_shade *shade)
{
	if (s->has_shade && memcmp(s->shade, shade, sizeof *shade) == 0)
		return cudaSuccess;
	memcpy(s->shade, shade, sizeof *shade);
	s->has_shade = true;
	return cudaMemcpyAsync(s->device_shade, s->shade, sizeof *shade, cudaMemcpyHostToDevice,
	                       s->stream);
}

static void set_scene(struct mq_cuda_slot *s, const struct mq_scene *scene)
{
	struct mq_cuda_task *t = &s->task;
	uint32_t n2 = scene->supersample * scene->supersample;
	uint64_t pixels;

	t->grid = scene->grid;
	t->width = scene->width;
	t->supersample = scene->supersample;
	t->limit = scene->limit;
	t->channels = scene->shade->channels;
	t->budget_ns = BUDGET_NS;
	t->shortcuts = scene->shortcuts;
	t->careful = !fast_steps_exact(&scene->grid);
	s->scene = *scene;
	s->scene.shade = NULL;
	s->batch_pixels = n2 > 1 ? s->samples_max / n2 : MQ_CUDA_PIXELS_MAX;
	pixels = (uint64_t)s->rows * scene->width;
	s->batches = (uint32_t)((pixels - 1) / s->batch_pixels + 1);
}

static enum mq_status cuda_submit(struct mq_backend *base, unsigned slot, const struct mq_scene *scene,
                                  uint32_t row0, uint32_t rows, struct mq_error *err)
{
	struct cuda_backend *b = self(base);
	struct mq_cuda_slot *s = b->slot + slot;
	uint64_t used = (uint64_t)rows * scene->width *
	                mq_pixel_bytes(scene->shade->channels, scene->keep_counts);
	enum mq_status st;
	cudaError_t e;

	if (slot >= b->slots || s->under_way || rows == 0 || used > b->bytes)
		return mq_fail(err, MQ_EINTERNAL, "a tile of %llu bytes does not fit slot %u",
		               (unsigned long long)used, slot);
	st = use_device(b, err);
	if (st)
		return st;
	s->row0 = row0;
	s->rows = rows;
	s->ms = 0;
	s->sent = 0;
	s->given_up = atomic_load(&b->cancel);
	set_scene(s, scene);
	if (!s->given_up) {
		memset(s->control, 0, sizeof *s->control);
		e = cudaMemsetAsync(s->device_control, 0, sizeof *s->control, s->stream);
		if (e == cudaSuccess && (s->task.channels == 3 || s->task.supersample > 1))
			e = send_shade(s, scene->shade);
		if (e != cudaSuccess)
			return mq_cuda_device_error(err, e, "cannot prepare a tile");
		st = send(b, s, err);
		if (st)
			return st;
	}
	s->under_way = true;
	return MQ_OK;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A tile often ends sooner than a sleeping thread wakes up: so watch a little first. */
static cudaError_t wait_event(cudaEvent_t event)
{
	uint64_t start = now_ns();

	do {
		cudaError_t e = cudaEventQuery(event);

		if (e != cudaErrorNotReady)
			return e;
		sched_yield();
	} while (now_ns() - start < WATCH_NS);
	return cudaEventSynchronize(event);
}

/* Waits for what is in the stream. */
static enum mq_status wait_round(struct mq_cuda_slot *s, struct mq_error *err)
{
	float ms = 0;
	cudaError_t e = mq_failpoint("cuda-wait") ? cudaErrorUnknown : wait_event(s->done);

	if (e == cudaSuccess)
		e = cudaEventElapsedTime(&ms, s->begin, s->end);
	if (e != cudaSuccess)
		return mq_cuda_device_error(err, e, "a tile failed");
	s->ms += (double)ms;
	return MQ_OK;
}

static void set_result(const struct mq_cuda_slot *s, struct mq_rendered *out)
{
	uint64_t pixels = (uint64_t)s->rows * s->scene.width;

	memset(out, 0, sizeof *out);
	out->pixels = s->host;
	if (s->scene.keep_counts) {
		out->counts = (const uint32_t *)s->host;
		out->smooth = (const float *)s->host + pixels;
		out->pixels = s->host + pixels * 8;
	}
	out->seconds = s->ms * 1e-3;
	for (unsigned i = 0; i < MQ_CUDA_COUNTERS; i++)
		out->inside += s->control->counter[i].inside;
}

static enum mq_status cuda_wait(struct mq_backend *base, unsigned slot, struct mq_rendered *out,
                                struct mq_error *err)
{
	struct cuda_backend *b = self(base);
	struct mq_cuda_slot *s = b->slot + slot;
	enum mq_status st;

	if (slot >= b->slots || !s->under_way)
		return mq_fail(err, MQ_EINTERNAL, "slot %u is not under way", slot);
	s->under_way = false;
	st = use_device(b, err);
	while (!st && !s->given_up) {
		st = wait_round(s, err);
		if (st)
			break;
		mq_alive();
		if (atomic_load(&b->cancel))
			s->given_up = true;
		else if (s->control->batch == s->batches)
			break;
		else
			st = send(b, s, err);
	}
	if (st)
		return st;
	if (s->given_up)
		return mq_fail(err, MQ_ECANCELLED, "cancelled");
	set_result(s, out);
	return MQ_OK;
}

static void cuda_cancel(struct mq_backend *base, bool on)
{
	atomic_store(&self(base)->cancel, on);
}

static void cuda_info(struct mq_backend *base, struct mq_device_info *out)
{
	struct cuda_backend *b = self(base);
	size_t available, total;

	if (cudaSetDevice(b->device) == cudaSuccess &&
	    cudaMemGetInfo(&available, &total) == cudaSuccess) {
		b->info.memory_free = available;
		b->info.memory_total = total;
	}
	*out = b->info;
}

static void cuda_close(struct mq_backend *base)
{
	struct cuda_backend *b = self(base);

	cudaSetDevice(b->device);
	release(b);
	free(b);
}

static const struct mq_backend_ops cuda_ops = {
	.close = cuda_close,
	.info = cuda_info,
	.reserve = cuda_reserve,
	.submit = cuda_submit,
	.wait = cuda_wait,
	.cancel = cuda_cancel,
};

static void old_driver(char why[256])
{
	int driver = 0, runtime = 0;

	cudaDriverGetVersion(&driver);
	cudaRuntimeGetVersion(&runtime);
	if (driver == 0)
		snprintf(why, 256, "no NVIDIA driver found");
	else
		snprintf(why, 256, "driver for CUDA %d.%d found, one for CUDA %d.%d needed", driver / 1000,
		         driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}

unsigned mq_cuda_count(char why[256])
{
	int count = 0;
	cudaError_t e;

	why[0] = '\0';
	/* Has an effect only before the driver starts, which is here; the fastest first otherwise. */
	setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
	e = cudaGetDeviceCount(&count);
	cudaGetLastError();
	if (e == cudaErrorInsufficientDriver)
		old_driver(why);
	else if (e == cudaErrorNoDevice || (e == cudaSuccess && count <= 0))
		snprintf(why, 256, "no CUDA device found");
	else if (e != cudaSuccess)
		snprintf(why, 256, "CUDA cannot be used: %s (%s)", cudaGetErrorString(e),
		         cudaGetErrorName(e));
	return e == cudaSuccess && count > 0 ? (unsigned)count : 0;
}

enum mq_status mq_cuda_find(const char *uuid, unsigned *index, struct mq_error *err)
{
	char why[256], (*all)[MQ_UUID_SIZE];
	unsigned count = mq_cuda_count(why);
	enum mq_status st = MQ_OK;

	if (!count)
		return mq_fail(err, MQ_EINVAL, "there is no %.40s: %s", uuid, why);
	all = calloc(count, sizeof *all);
	if (!all)
		return mq_cuda_no_host_memory(err, count * sizeof *all);
	for (unsigned i = 0; !st && i < count; i++) {
		struct cudaDeviceProp prop;
		cudaError_t e = cudaGetDeviceProperties(&prop, (int)i);

		if (e == cudaSuccess)
			mq_uuid_format((const unsigned char *)prop.uuid.bytes, all[i]);
		else
			st = mq_cuda_device_error(err, e, "cannot ask for a device's UUID");
	}
	if (!st)
		st = mq_uuid_find(uuid, (const char(*)[MQ_UUID_SIZE])all, count, index, err);
	free(all);
	return st;
}

enum mq_status mq_cuda_open(unsigned index, struct mq_backend **out, struct mq_error *err)
{
	struct cudaDeviceProp prop;
	struct cuda_backend *b;
	char why[256];
	unsigned count = mq_cuda_count(why);
	enum mq_status st;
	cudaError_t e;

	if (index >= count)
		return mq_fail(err, MQ_EINVAL, "no CUDA device %u: %s", index,
		               count ? "the numbers begin at 0" : why);
	b = calloc(1, sizeof *b);
	if (!b)
		return mq_fail(err, MQ_ENOMEM_HOST, "out of host memory: asked for %zu bytes", sizeof *b);
	b->base.ops = &cuda_ops;
	b->device = (int)index;
	atomic_init(&b->cancel, false);
	st = use_device(b, err);
	if (st)
		goto fail;
	e = cudaGetDeviceProperties(&prop, b->device);
	if (e == cudaSuccess)
		e = (cudaError_t)mq_cuda_load(&b->blocks);
	if (e != cudaSuccess) {
		st = mq_cuda_device_error(err, e, "cannot use the device");
		goto fail;
	}
	snprintf(b->info.name, sizeof b->info.name, "cuda:%u", index);
	snprintf(b->info.model, sizeof b->info.model, "%.127s", prop.name);
	mq_uuid_format((const unsigned char *)prop.uuid.bytes, b->info.uuid);
	*out = &b->base;
	return MQ_OK;
fail:
	free(b);
	return st;
}
