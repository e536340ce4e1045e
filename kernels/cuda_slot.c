/* cuda_slot: see cuda_slot.h. */
#include "config.h"

#include "kernels/cuda_slot.h"

#include <string.h>
#include <unistd.h>

#include "src/failpoint.h"

/* Entries of a list: one for this many bytes of the slot, within bounds. */
#define LIST_SHARE 8u
#define LIST_MIN (1u << 14)
#define LIST_MAX (1u << 20)
/* Samples of a batch with supersampling, for each entry of a list. */
#define SAMPLES_SHARE 4u

#define ALIGN 256u

enum mq_status mq_cuda_device_error(struct mq_error *err, cudaError_t e, const char *what)
{
	return mq_fail(err, MQ_EDEVICE, "%s: %s (%s)", what, cudaGetErrorString(e), cudaGetErrorName(e));
}

static uint64_t align(uint64_t n)
{
	return (n + (ALIGN - 1)) & ~(uint64_t)(ALIGN - 1);
}

/* Where a slot's parts lie in its one allocation on the device, behind its planes. */
struct plan {
	uint64_t colours, list[2], todo, shade, control, total;
	uint32_t capacity, samples;
};

static void plan_slot(struct plan *p, uint64_t bytes)
{
	uint64_t capacity = bytes / LIST_SHARE, most;

	if (capacity < LIST_MIN)
		capacity = LIST_MIN;
	if (capacity > LIST_MAX)
		capacity = LIST_MAX;
	p->capacity = (uint32_t)capacity;
	p->samples = p->capacity * SAMPLES_SHARE;
	most = bytes < MQ_CUDA_PIXELS_MAX ? bytes : MQ_CUDA_PIXELS_MAX;
	if (most < p->samples)
		most = p->samples;
	p->colours = align(bytes);
	p->list[0] = p->colours + align(p->samples * sizeof(uint32_t));
	p->list[1] = p->list[0] + align(capacity * sizeof(struct mq_cuda_entry));
	p->todo = p->list[1] + align(capacity * sizeof(struct mq_cuda_entry));
	p->shade = p->todo + align(most / MQ_CUDA_CHUNK + 1);
	p->control = p->shade + align(sizeof(struct mq_shade));
	p->total = p->control + align(sizeof(struct mq_cuda_control));
}

void mq_cuda_slot_free(struct mq_cuda_slot *s)
{
	/* Failures here are those of a context that is lost anyway. */
	if (s->stream)
		cudaStreamSynchronize(s->stream);
	if (s->done)
		cudaEventDestroy(s->done);
	if (s->end)
		cudaEventDestroy(s->end);
	if (s->begin)
		cudaEventDestroy(s->begin);
	if (s->stream)
		cudaStreamDestroy(s->stream);
	if (s->device)
		cudaFree(s->device);
	if (s->control)
		cudaFreeHost(s->control);
	if (s->host)
		cudaFreeHost(s->host);
	memset(s, 0, sizeof *s);
}

static enum mq_status no_device_memory(struct mq_error *err, uint64_t asked)
{
	size_t available = 0, total = 0;

	cudaGetLastError();
	if (cudaMemGetInfo(&available, &total) != cudaSuccess)
		cudaGetLastError();
	return mq_fail(err, MQ_ENOMEM_DEVICE,
	               "out of device memory: asked for %llu bytes, %llu of %llu are free",
	               (unsigned long long)asked, (unsigned long long)available,
	               (unsigned long long)total);
}

enum mq_status mq_cuda_no_host_memory(struct mq_error *err, uint64_t asked)
{
	long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	unsigned long long available = 0;

	cudaGetLastError();
	if (pages > 0 && page > 0)
		available = (unsigned long long)pages * (unsigned long long)page;
	return mq_fail(err, MQ_ENOMEM_HOST,
	               "out of host memory: asked for %llu bytes of pinned memory, %llu are free",
	               (unsigned long long)asked, available);
}

/* The result of an allocation on the host or, in the device, of `asked` bytes. */
static enum mq_status allocated(struct mq_error *err, cudaError_t e, bool device, uint64_t asked)
{
	if (e == cudaSuccess)
		return MQ_OK;
	if (e != cudaErrorMemoryAllocation)
		return mq_cuda_device_error(err, e, device ? "cudaMalloc" : "cudaHostAlloc");
	return device ? no_device_memory(err, asked) : mq_cuda_no_host_memory(err, asked);
}

static enum mq_status slot_events(struct mq_cuda_slot *s, struct mq_error *err)
{
	cudaError_t e = cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking);

	if (e == cudaSuccess)
		e = cudaEventCreate(&s->begin);
	if (e == cudaSuccess)
		e = cudaEventCreate(&s->end);
	if (e == cudaSuccess)
		e = cudaEventCreateWithFlags(&s->done, cudaEventBlockingSync | cudaEventDisableTiming);
	if (e == cudaErrorMemoryAllocation)
		return no_device_memory(err, 0);
	return e == cudaSuccess ? MQ_OK : mq_cuda_device_error(err, e, "cannot make a stream");
}

enum mq_status mq_cuda_slot_take(struct mq_cuda_slot *s, uint64_t bytes, struct mq_error *err)
{
	struct plan p;
	enum mq_status st;
	size_t small;
	int fault = mq_failpoint("cuda-reserve");

	plan_slot(&p, bytes);
	if (fault == MQ_FAULT_OOM)
		return no_device_memory(err, p.total);
	if (fault)
		return mq_cuda_no_host_memory(err, bytes);
	st = slot_events(s, err);
	if (st)
		return st;
	st = allocated(err, cudaMalloc((void **)&s->device, p.total), true, p.total);
	if (st)
		return st;
	st = allocated(err, cudaHostAlloc((void **)&s->host, bytes, cudaHostAllocDefault), false, bytes);
	if (st)
		return st;
	small = sizeof *s->control + sizeof *s->shade;
	st = allocated(err, cudaHostAlloc((void **)&s->control, small, cudaHostAllocDefault), false,
	               small);
	if (st)
		return st;
	s->shade = (struct mq_shade *)(s->control + 1);
	s->device_control = (struct mq_cuda_control *)(s->device + p.control);
	s->device_shade = (struct mq_shade *)(s->device + p.shade);
	s->task.control = s->device_control;
	s->task.colours = (uint32_t *)(s->device + p.colours);
	s->task.list[0] = (struct mq_cuda_entry *)(s->device + p.list[0]);
	s->task.list[1] = (struct mq_cuda_entry *)(s->device + p.list[1]);
	s->task.todo = s->device + p.todo;
	s->task.shade = s->device_shade;
	s->task.capacity = p.capacity;
	s->samples_max = p.samples;
	return MQ_OK;
}

