/* cpu: the CPU backend: worker threads, slots and their memory. Called by the device threads of the
 * worker through kernels/backend.h; the arithmetic is in escape_*.c, the colouring in resolve.c.
 *
 * A tile is cut into chunks (rows, or parts of wide rows) that threads take one by one, from the
 * oldest tile that has some left, so no core idles at the end of a tile while another waits. All
 * state is under one mutex; a chunk is some 100 microseconds of work, so it is hardly contended. A
 * row whose imaginary part is exactly the negative of another row's in the same tile is copied from
 * it: every operation of a step commutes with the change of sign of y and im, rounding included. */
#include "config.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kernels/backend.h"
#include "kernels/escape.h"
#include "kernels/escape_cpu.h"
#include "src/alive.h"
#include "src/failpoint.h"
#include "src/spare.h"

#define CHUNK_MIN 4096u /* samples; under this, taking a chunk costs as much as its work */
#define NO_MIRROR UINT64_MAX

struct slot {
	struct slot *later; /* in the list of tiles with chunks left to take */
	const struct mq_scene *scene;
	uint8_t *memory;    /* counts, smooth (if kept), pixels: so each is aligned */
	uint32_t row0, rows;
	uint64_t mirror;    /* row r of the picture mirrors row mirror - r, or NO_MIRROR */
	uint32_t cols;      /* pixels a chunk is wide */
	uint32_t parts;     /* chunks side by side */
	uint32_t height;    /* rows a chunk is high */
	uint64_t next, total; /* chunks */
	unsigned running;   /* chunks taken and not finished */
	bool under_way;
	atomic_bool cancelled;
	double seconds;
	uint64_t inside;
	atomic_ullong *alive; /* of the device's thread, for which the workers work */
};

struct worker {
	struct cpu *cpu;
	pthread_t thread;
	struct mq_samples *samples;
	void *scratch;
};

struct cpu {
	struct mq_backend base;
	const struct mq_isa *isa;
	unsigned threads; /* that run */
	struct worker *workers;

	pthread_mutex_t lock; /* for all that follows */
	pthread_cond_t work, done;
	bool stop, cancelling;
	struct slot *oldest, *newest; /* tiles with chunks left to take */

	struct slot *slots;
	unsigned slot_count;
	uint64_t slot_bytes;
	uint8_t *memory;
	size_t memory_size;
};

struct planes {
	uint32_t *counts;
	float *smooth;
	uint8_t *pixels;
};

static struct cpu *cpu_of(struct mq_backend *b)
{
	return (struct cpu *)b; /* base comes first */
}

static struct planes planes_of(const struct slot *s)
{
	size_t area = (size_t)s->rows * s->scene->width;
	struct planes p = { .pixels = s->memory };

	if (s->scene->keep_counts) {
		p.counts = (uint32_t *)s->memory;
		p.smooth = (float *)(s->memory + 4 * area);
		p.pixels = s->memory + 8 * area;
	}
	return p;
}

/* Whether row r of the picture has a mirror image in the tile, and which. */
static bool find_mirror(const struct slot *s, uint32_t row, uint32_t *image)
{
	const struct mq_scene *scene = s->scene;
	uint64_t n = scene->supersample, other, k;

	if (s->mirror == NO_MIRROR || s->mirror < row)
		return false;
	other = s->mirror - row;
	if (other < s->row0 || other - s->row0 >= s->rows || other == row)
		return false;
	for (k = 0; k < n; k++) {
		double a = mq_sample_im(&scene->grid, (double)(row * n + k));
		double b = mq_sample_im(&scene->grid, (double)(other * n + n - 1 - k));

		if (a != -b)
			return false;
	}
	*image = (uint32_t)other;
	return true;
}

/* The sum of a row's number and its mirror's, from im(j) = ymax - (j + 1/2) dy; a guess that
 * find_mirror() checks row by row. */
static uint64_t guess_mirror(const struct mq_scene *scene)
{
	double sum = 2 * scene->grid.ymax / (scene->grid.dy * scene->supersample) - 1;

	if (!(sum >= 0 && sum < 2.0 * scene->height))
		return NO_MIRROR;
	return (uint64_t)(sum + 0.5);
}

/* One rendered row of a chunk: its kept planes, its count of inside samples, its mirror image. */
static uint64_t finish_row(const struct cpu *cpu, struct slot *s, const struct mq_samples *samples,
                           uint32_t row, uint32_t first_row, uint32_t col, uint32_t cols)
{
	const struct mq_scene *scene = s->scene;
	struct planes p = planes_of(s);
	size_t n = scene->supersample, width = scene->width, channels = scene->shade->channels;
	size_t at = (size_t)(row - s->row0) * width + col, from = (row - first_row) * n * n * cols;
	uint64_t inside = cpu->isa->inside(samples->counts + from, n * n * cols, scene->limit);
	size_t to;
	uint32_t image;

	if (scene->keep_counts) {
		memcpy(p.counts + at, samples->counts + from, cols * sizeof *p.counts);
		memcpy(p.smooth + at, samples->smooth + from, cols * sizeof *p.smooth);
	}
	if (!find_mirror(s, row, &image))
		return inside;
	to = (size_t)(image - s->row0) * width + col;
	memcpy(p.pixels + to * channels, p.pixels + at * channels, cols * channels);
	if (scene->keep_counts) {
		memcpy(p.counts + to, p.counts + at, cols * sizeof *p.counts);
		memcpy(p.smooth + to, p.smooth + at, cols * sizeof *p.smooth);
	}
	return 2 * inside;
}

static bool render_rows(struct worker *w, struct slot *s, uint32_t row, uint32_t rows, uint32_t col,
                        uint32_t cols, uint64_t *inside)
{
	const struct mq_scene *scene = s->scene;
	const struct mq_isa *isa = w->cpu->isa;
	uint32_t n = scene->supersample, r;
	struct mq_patch patch = {
		.scene = scene, .col0 = col * n, .row0 = row * n, .cols = cols * n, .rows = rows * n,
		.cancel = &s->cancelled,
	};
	size_t at = (size_t)(row - s->row0) * scene->width + col;

	if (!isa->render(&patch, w->samples, w->scratch))
		return false;
	mq_resolve(isa, scene, w->samples, cols, rows, planes_of(s).pixels + at * scene->shade->channels);
	for (r = row; r < row + rows; r++)
		*inside += finish_row(w->cpu, s, w->samples, r, row, col, cols);
	return true;
}

/* Renders a chunk: runs of rows between those that are made as somebody's mirror image. */
static bool render_chunk(struct worker *w, struct slot *s, uint64_t chunk, uint64_t *inside)
{
	uint32_t col = (uint32_t)(chunk % s->parts) * s->cols;
	uint32_t row = (uint32_t)(chunk / s->parts) * s->height + s->row0;
	uint32_t cols = s->scene->width - col < s->cols ? s->scene->width - col : s->cols;
	uint32_t left = s->row0 + s->rows - row, end = row + (left < s->height ? left : s->height);
	uint32_t first = row, image;

	for (; row < end; row++) {
		if (!find_mirror(s, row, &image) || image > row)
			continue;
		if (first < row && !render_rows(w, s, first, row - first, col, cols, inside))
			return false;
		first = row + 1;
	}
	return first >= end || render_rows(w, s, first, end - first, col, cols, inside);
}

static double thread_seconds(void)
{
	struct timespec t = { 0 };

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* a figure only; 0 if there is no such clock */
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* With the lock held, which it lets go while it renders. */
static void run_chunk(struct worker *w, struct slot *s)
{
	struct cpu *cpu = w->cpu;
	uint64_t chunk = s->next++, inside = 0;
	double begun;

	if (s->next == s->total) {
		cpu->oldest = s->later;
		if (!cpu->oldest)
			cpu->newest = NULL;
	}
	s->running++;
	pthread_mutex_unlock(&cpu->lock);
	mq_alive_counter = s->alive;
	mq_alive();
	(void)mq_failpoint("cpu-chunk");
	begun = thread_seconds();
	(void)render_chunk(w, s, chunk, &inside); /* false only after s->cancelled, which wait() sees */
	begun = thread_seconds() - begun;
	pthread_mutex_lock(&cpu->lock);
	s->seconds += begun;
	s->inside += inside;
	if (--s->running == 0 && s->next == s->total)
		pthread_cond_broadcast(&cpu->done);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct cpu *cpu = w->cpu;

	pthread_mutex_lock(&cpu->lock);
	while (!cpu->stop) {
		if (cpu->oldest)
			run_chunk(w, cpu->oldest);
		else
			pthread_cond_wait(&cpu->work, &cpu->lock);
	}
	pthread_mutex_unlock(&cpu->lock);
	return NULL;
}

/* With the lock held: every tile under way loses the chunks that nobody has taken. */
static void give_up(struct cpu *cpu)
{
	unsigned i;

	for (i = 0; i < cpu->slot_count; i++) {
		struct slot *s = &cpu->slots[i];

		if (s->under_way) {
			atomic_store_explicit(&s->cancelled, true, memory_order_relaxed);
			s->next = s->total;
		}
	}
	cpu->oldest = cpu->newest = NULL;
	pthread_cond_broadcast(&cpu->done);
}

static void cpu_cancel(struct mq_backend *b, bool on)
{
	struct cpu *cpu = cpu_of(b);

	pthread_mutex_lock(&cpu->lock);
	cpu->cancelling = on;
	if (on)
		give_up(cpu);
	pthread_mutex_unlock(&cpu->lock);
}

static void cpu_info(struct mq_backend *b, struct mq_device_info *out)
{
	struct cpu *cpu = cpu_of(b);
	char model[80];

	memset(out, 0, sizeof *out);
	mq_host_model(model, sizeof model);
	snprintf(out->name, sizeof out->name, "cpu");
	snprintf(out->model, sizeof out->model, "%s, %s, %u thread%s", model, cpu->isa->name, cpu->threads,
	         cpu->threads == 1 ? "" : "s");
	out->memory_free = mq_host_memory("MemAvailable");
	out->memory_total = mq_host_memory("MemTotal");
	out->threads = cpu->threads;
}

static void release(struct cpu *cpu)
{
	if (cpu->memory)
		munmap(cpu->memory, cpu->memory_size);
	free(cpu->slots);
	cpu->memory = NULL;
	cpu->memory_size = 0;
	cpu->slots = NULL;
	cpu->slot_count = 0;
	cpu->slot_bytes = 0;
}

static enum mq_status fail_memory(struct mq_error *err, unsigned slots, uint64_t bytes)
{
	return mq_fail(err, MQ_ENOMEM_HOST,
	               "out of host memory: %u buffers of %" PRIu64 " bytes asked, %" PRIu64 " free", slots,
	               bytes, mq_host_memory("MemAvailable"));
}

static enum mq_status cpu_reserve(struct mq_backend *b, unsigned slots, uint64_t bytes,
                                  struct mq_error *err)
{
	struct cpu *cpu = cpu_of(b);
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), pitch, size;
	void *memory = MAP_FAILED;
	struct slot *table = NULL;
	int fault;
	unsigned i;

	pthread_mutex_lock(&cpu->lock);
	release(cpu);
	pthread_mutex_unlock(&cpu->lock);
	if (bytes == 0 || slots == 0)
		return MQ_OK;

	fault = mq_failpoint("cpu-reserve");
	if (fault && fault != ENOMEM && fault != MQ_FAULT_OOM)
		return mq_fail_errno(err, fault, "reserving buffers");
	if (!fault && !__builtin_add_overflow(bytes, page - 1, &pitch)) {
		pitch -= pitch % page;
		if (!__builtin_mul_overflow(pitch, (uint64_t)slots, &size) && size <= SIZE_MAX) {
			table = calloc(slots, sizeof *table);
			memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		}
	}
	if (!table || memory == MAP_FAILED || !mq_spare_left()) {
		if (memory != MAP_FAILED)
			munmap(memory, size);
		free(table);
		return fail_memory(err, slots, bytes);
	}
	for (i = 0; i < slots; i++)
		table[i].memory = (uint8_t *)memory + i * pitch;
	pthread_mutex_lock(&cpu->lock);
	cpu->memory = memory;
	cpu->memory_size = size;
	cpu->slots = table;
	cpu->slot_count = slots;
	cpu->slot_bytes = bytes;
	pthread_mutex_unlock(&cpu->lock);
	return MQ_OK;
}

/* Cuts the tile so that every thread gets several chunks, unless they would be too small. */
static void cut(struct slot *s, unsigned threads)
{
	uint64_t area = (uint64_t)s->scene->supersample * s->scene->supersample, wanted, pixels;
	uint32_t width = s->scene->width;

	wanted = (uint64_t)width * s->rows * area / (8 * (uint64_t)threads);
	if (wanted > MQ_CPU_CHUNK)
		wanted = MQ_CPU_CHUNK;
	if (wanted < CHUNK_MIN)
		wanted = CHUNK_MIN;
	pixels = wanted > area ? wanted / area : 1;
	s->parts = (uint32_t)((width + pixels - 1) / pixels);
	s->cols = (width + s->parts - 1) / s->parts;
	s->parts = (width + s->cols - 1) / s->cols;
	s->height = (uint32_t)(pixels / s->cols);
	if (s->height > s->rows)
		s->height = s->rows;
	s->total = (uint64_t)s->parts * ((s->rows + s->height - 1) / s->height);
}

static enum mq_status cpu_submit(struct mq_backend *b, unsigned slot, const struct mq_scene *scene,
                                 uint32_t row0, uint32_t rows, struct mq_error *err)
{
	struct cpu *cpu = cpu_of(b);
	uint64_t bytes = (uint64_t)rows * scene->width *
	                 mq_pixel_bytes(scene->shade->channels, scene->keep_counts);
	struct slot *s;

	if (slot >= cpu->slot_count || cpu->slots[slot].under_way || bytes > cpu->slot_bytes || rows == 0 ||
	    (uint64_t)scene->supersample * scene->supersample > MQ_CPU_CHUNK)
		return mq_fail(err, MQ_EINTERNAL, "tile of %" PRIu64 " bytes does not suit slot %u", bytes, slot);
	if (mq_failpoint("cpu-submit"))
		return mq_fail(err, MQ_EDEVICE, "the device is broken, by a failpoint");
	s = &cpu->slots[slot];
	pthread_mutex_lock(&cpu->lock);
	*s = (struct slot){ .scene = scene, .memory = s->memory, .row0 = row0, .rows = rows,
		            .alive = mq_alive_counter };
	s->mirror = scene->shortcuts && !cpu->isa->plain ? guess_mirror(scene) : NO_MIRROR;
	cut(s, cpu->threads);
	s->under_way = true;
	if (cpu->cancelling) {
		atomic_store_explicit(&s->cancelled, true, memory_order_relaxed);
		s->next = s->total;
	} else {
		if (cpu->newest)
			cpu->newest->later = s;
		else
			cpu->oldest = s;
		cpu->newest = s;
		pthread_cond_broadcast(&cpu->work);
	}
	pthread_mutex_unlock(&cpu->lock);
	return MQ_OK;
}

/* seconds is CPU time summed over the threads: core-seconds. */
static enum mq_status cpu_wait(struct mq_backend *b, unsigned slot, struct mq_rendered *out,
                               struct mq_error *err)
{
	struct cpu *cpu = cpu_of(b);
	struct planes p;
	struct slot *s;
	bool cancelled;

	if (slot >= cpu->slot_count || !cpu->slots[slot].under_way)
		return mq_fail(err, MQ_EINTERNAL, "slot %u is not under way", slot);
	s = &cpu->slots[slot];
	pthread_mutex_lock(&cpu->lock);
	while (s->next < s->total || s->running)
		pthread_cond_wait(&cpu->done, &cpu->lock);
	s->under_way = false;
	cancelled = atomic_load_explicit(&s->cancelled, memory_order_relaxed);
	pthread_mutex_unlock(&cpu->lock);
	if (cancelled)
		return mq_fail(err, MQ_ECANCELLED, "rendering was cancelled");
	p = planes_of(s);
	*out = (struct mq_rendered){
		.pixels = p.pixels, .counts = p.counts, .smooth = p.smooth,
		.seconds = s->seconds, .inside = s->inside,
	};
	return MQ_OK;
}

static void cpu_close(struct mq_backend *b)
{
	struct cpu *cpu = cpu_of(b);
	unsigned i;

	pthread_mutex_lock(&cpu->lock);
	cpu->stop = true;
	give_up(cpu);
	pthread_cond_broadcast(&cpu->work);
	pthread_mutex_unlock(&cpu->lock);
	for (i = 0; i < cpu->threads; i++)
		pthread_join(cpu->workers[i].thread, NULL);
	release(cpu);
	for (i = 0; cpu->workers[i].cpu; i++) {
		free(cpu->workers[i].samples);
		free(cpu->workers[i].scratch);
	}
	free(cpu->workers);
	pthread_cond_destroy(&cpu->done);
	pthread_cond_destroy(&cpu->work);
	pthread_mutex_destroy(&cpu->lock);
	free(cpu);
}

static const struct mq_backend_ops cpu_ops = {
	.close = cpu_close,
	.info = cpu_info,
	.reserve = cpu_reserve,
	.submit = cpu_submit,
	.wait = cpu_wait,
	.cancel = cpu_cancel,
};

/* Starts one worker with all signals blocked: they belong to the main thread. */
static int start_worker(struct cpu *cpu, struct worker *w)
{
	sigset_t all, old;
	int rc;

	w->cpu = cpu;
	w->samples = calloc(1, sizeof *w->samples);
	if (!w->samples)
		return ENOMEM;
	if (cpu->isa->scratch) {
		rc = posix_memalign(&w->scratch, 64, (cpu->isa->scratch + 63) / 64 * 64);
		if (rc)
			return rc;
	}
	sigfillset(&all);
	rc = pthread_sigmask(SIG_BLOCK, &all, &old);
	if (rc)
		return rc;
	rc = pthread_create(&w->thread, NULL, worker_main, w);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return rc;
}

enum mq_status mq_cpu_open(unsigned threads, struct mq_backend **out, struct mq_error *err)
{
	const struct mq_isa *isa = NULL;
	struct cpu *cpu;
	enum mq_status status = mq_isa_pick(&isa, err);
	int rc = mq_failpoint("cpu-open");
	unsigned i;

	if (status)
		return status;
	if (threads == 0)
		return mq_fail(err, MQ_EINVAL, "a CPU device needs at least one thread");
	if (rc)
		return mq_fail_errno(err, rc == MQ_FAULT_OOM ? ENOMEM : rc, "starting %u threads", threads);
	cpu = calloc(1, sizeof *cpu);
	if (!cpu)
		return mq_fail_errno(err, ENOMEM, "starting %u threads", threads);
	cpu->workers = calloc((size_t)threads + 1, sizeof *cpu->workers);
	if (!cpu->workers) {
		free(cpu);
		return mq_fail_errno(err, ENOMEM, "starting %u threads", threads);
	}
	cpu->base.ops = &cpu_ops;
	cpu->isa = isa;
	pthread_mutex_init(&cpu->lock, NULL);
	pthread_cond_init(&cpu->work, NULL);
	pthread_cond_init(&cpu->done, NULL);
	for (i = 0; i < threads; i++) {
		rc = start_worker(cpu, &cpu->workers[i]);
		if (rc) {
			cpu_close(&cpu->base);
			return mq_fail_errno(err, rc, "starting %u threads", threads);
		}
		cpu->threads++;
	}
	*out = &cpu->base;
	return MQ_OK;
}
