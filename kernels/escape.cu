/* escape: the kernels of the CUDA backend and their launchers. escape_cuda.h says how they work
 * together, escape_steps.cuh how they calculate. Called by cuda.c. */
#include "kernels/escape_cuda.h"
#include "kernels/escape_steps.cuh"

#define THREADS 128u
#define WARP 32u

/* As the numbers in escape_steps.cuh. */
#define LOOK 64u  /* blocks of steps between two looks at the clock */
#define WAITING 8 /* lanes that stopped before they are looked after */
#define SPILL 16  /* a warp gives its samples away when no more go on and the list is empty */

/* i + 0.5, for i < 2^32. */
__device__ __forceinline__ double middle(uint32_t i)
{
	return __hiloint2double(0x43300000, (int)i) - (4503599627370496.0 - 0.5);
}

__device__ __forceinline__ struct mq_point point(const struct mq_cuda_task &t, uint32_t i, uint32_t j)
{
	struct mq_point c;

	c.x = fma(middle(i), t.grid.dx, t.grid.xmin);
	c.y = fma(-middle(j), t.grid.dy, t.grid.ymax);
	return c;
}

/* Where sample s of the batch lies. The N x N samples of a pixel follow one another. */
template <bool SUPER>
__device__ __forceinline__ struct mq_point locate(const struct mq_cuda_task &t, uint32_t s)
{
	uint32_t n = t.supersample, sub, q, row, col;

	if (!SUPER) {
		q = t.col + s;
		return point(t, q % t.width, t.row + q / t.width);
	}
	q = t.col + s / (n * n);
	sub = s % (n * n);
	row = t.row + q / t.width;
	col = q % t.width;
	return point(t, col * n + sub % n, row * n + sub / n);
}

/* The colour or gray value of a sample, and its planes if they are kept. z is as mq_escape_count
 * leaves it; unused inside. */
template <bool SMOOTH>
__device__ __forceinline__ uint32_t value(const struct mq_cuda_task &t, uint32_t s, struct mq_point c,
                                          struct mq_point z, uint32_t n)
{
	bool inside = n >= t.limit;
	double v = (double)n;

	if (!SMOOTH)
		return mq_gray(n, t.limit);
	if (!inside)
		v = v + mq_smooth_part(c.x, c.y, z);
	if (t.counts) {
		t.counts[s] = n;
		t.smooth[s] = (float)v;
	}
	if (t.channels == 1)
		return mq_gray(n, t.limit);
	return inside ? t.shade->inside : mq_colour(t.shade, v);
}

template <bool SUPER>
__device__ __forceinline__ void put(const struct mq_cuda_task &t, uint32_t s, uint32_t colour)
{
	if (SUPER) {
		t.colours[s] = colour;
	} else if (t.channels == 1) {
		t.pixels[s] = (uint8_t)colour;
	} else {
		uint8_t *p = t.pixels + (size_t)s * 3;

		p[0] = (uint8_t)colour;
		p[1] = (uint8_t)(colour >> 8);
		p[2] = (uint8_t)(colour >> 16);
	}
}

/* As put(), for 32 samples in a row: three bytes a pixel leave as words. */
template <bool SUPER>
__device__ __forceinline__ void put_warp(const struct mq_cuda_task &t, uint32_t s, uint32_t lane,
                                         uint32_t colour)
{
	uint32_t first, a, b, shift;

	if (SUPER || t.channels == 1 || s - lane + WARP > t.samples) {
		if (s < t.samples)
			put<SUPER>(t, s, colour);
		return;
	}
	/* Word w holds the bytes from 4w on: those of pixel 4w/3 from byte 4w%3, and of the next. */
	first = lane * 4 / 3;
	shift = lane * 4 % 3 * 8;
	a = __shfl_sync(FULL, colour, first & 31) & 0xffffff;
	b = __shfl_sync(FULL, colour, (first + 1) & 31) & 0xffffff;
	if (lane < 24)
		((uint32_t *)(t.pixels + (size_t)(s - lane) * 3))[lane] = a >> shift | b << (24 - shift);
}

/* Room in a list for the lanes of `who`; the first lane adds. */
__device__ __forceinline__ uint32_t reserve(uint32_t *count, unsigned who, uint32_t lane)
{
	int leader = __ffs(who) - 1;
	uint32_t base = 0;

	if (lane == (uint32_t)leader)
		base = atomicAdd(count, (uint32_t)__popc(who));
	base = __shfl_sync(FULL, base, leader);
	return base + __popc(who & ((1u << lane) - 1));
}

__device__ __forceinline__ void put_entry(struct mq_cuda_entry *e, uint32_t s, double x, double y,
                                          uint32_t n)
{
	e->x = x;
	e->y = y;
	e->sample = s;
	e->n = n;
}

__device__ __forceinline__ void count_inside(const struct mq_cuda_task &t, uint32_t inside)
{
	if (inside)
		atomicAdd((unsigned long long *)&t.control->counter[blockIdx.x % MQ_CUDA_COUNTERS].inside,
		          (unsigned long long)inside);
}

/* Puts the samples that need more steps into list 0. False: it is full, and the warp's samples are to
 * be done again. */
__device__ __forceinline__ bool leave(const struct mq_cuda_task &t, uint32_t s, uint32_t lane, bool more,
                                      unsigned who, struct mq_point z, uint32_t n)
{
	uint32_t at = reserve(&t.control->count[0], who, lane);
	bool fits = at < t.capacity;
	bool full = __any_sync(FULL, more && !fits);

	if (more && fits)
		put_entry(&t.list[0][at], full ? MQ_CUDA_NOTHING : s, z.x, z.y, n);
	return !full;
}

/* 32 samples. False: they are to be done again. */
template <bool SMOOTH, bool SUPER>
__device__ __forceinline__ bool first_warp(const struct mq_cuda_task &t, uint32_t s, uint32_t lane,
                                           struct mq_point c, uint32_t *inside)
{
	bool present = s < t.samples, more;
	struct mq_point z;
	uint32_t n, colour = 0;
	unsigned who;

	more = first_steps(t, present, c, &z, &n);
	who = __ballot_sync(FULL, more);
	if (who && !leave(t, s, lane, more, who, z, n))
		return false;
	if (present && !more) {
		*inside += n >= t.limit;
		colour = value<SMOOTH>(t, s, c, z, n);
	}
	__syncwarp();
	put_warp<SUPER>(t, s, lane, colour);
	return true;
}

template <bool SMOOTH, bool SUPER>
__global__ void __launch_bounds__(THREADS)
first_kernel(const __grid_constant__ struct mq_cuda_task t, bool again)
{
	uint32_t chunk = (blockIdx.x * THREADS + threadIdx.x) / WARP, lane = threadIdx.x % WARP;
	uint32_t s = chunk * MQ_CUDA_CHUNK + lane, inside = 0;
	unsigned todo = 0xff, full = 0;
	struct mq_point c;
	double column;
	bool straight;

	if (t.control->batch != t.batch || s - lane >= t.samples)
		return;
	if (again)
		todo = t.todo[chunk];
	if (!todo)
		return;
	if (__any_sync(FULL, *(volatile uint32_t *)&t.control->count[0] + MQ_CUDA_CHUNK > t.capacity))
		full = todo;
	/* Most chunks lie in one row. */
	straight = !SUPER && (t.col + s - lane) % t.width + MQ_CUDA_CHUNK <= t.width;
	c = locate<SUPER>(t, s);
	column = middle((t.col + s) % t.width);
	for (unsigned k = 0; k < 8 && !full; k++, s += WARP, column += 32.0) {
		if (straight)
			c.x = fma(column, t.grid.dx, t.grid.xmin);
		else
			c = locate<SUPER>(t, s);
		if ((todo >> k & 1) && s - lane < t.samples &&
		    !first_warp<SMOOTH, SUPER>(t, s, lane, c, &inside))
			full = todo >> k << k;
	}
	for (unsigned d = WARP / 2; d; d /= 2)
		inside += __shfl_xor_sync(FULL, inside, d);
	if (lane == 0) {
		t.todo[chunk] = (uint8_t)full;
		if (full)
			atomicAdd(&t.control->put_off, (uint32_t)__popc(full));
		count_inside(t, inside);
	}
}

template <bool SUPER>
__device__ __forceinline__ bool take(const struct mq_cuda_task &t, const struct mq_cuda_entry *e,
                                     struct orbit *o)
{
	struct mq_point c;

	o->sample = e->sample;
	if (o->sample == MQ_CUDA_NOTHING)
		return false;
	c = locate<SUPER>(t, o->sample);
	o->re4 = 4 * c.x;
	o->im2 = 2 * c.y;
	o->x = 2 * e->x;
	o->y = 2 * e->y;
	o->n = e->n;
	o->careful = t.careful || mq_norm2(c.x, c.y) >= MQ_ESCAPE_R2 - 0x1p-20;
	mark(o);
	return true;
}

__device__ __forceinline__ uint64_t now_ns()
{
	uint64_t t;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
	return t;
}

/* Entries of list `from` for the idle lanes. False: there are none left. */
template <bool SUPER>
__device__ __forceinline__ bool refill(const struct mq_cuda_task &t, unsigned from, uint32_t entries,
                                       uint32_t lane, struct orbit *o, bool *active)
{
	unsigned idle = __ballot_sync(FULL, !*active);
	uint32_t at = reserve(&t.control->taken, idle, lane);

	if (!*active && at < entries)
		*active = take<SUPER>(t, &t.list[from][at], o);
	return !__any_sync(FULL, (idle >> lane & 1) && at >= entries);
}

/* The last block ends the round: the list that was read is empty, and perhaps the batch is done. */
__device__ __forceinline__ void end_round(const struct mq_cuda_task &t, unsigned from, bool after_first)
{
	struct mq_cuda_control *c = t.control;

	__threadfence();
	__syncthreads();
	if (threadIdx.x != 0 || atomicAdd(&c->blocks, 1u) != gridDim.x - 1)
		return;
	__threadfence();
	if (after_first)
		c->left = atomicExch(&c->put_off, 0u);
	c->count[from] = 0;
	c->taken = 0;
	c->blocks = 0;
	if (c->left == 0 && atomicAdd(&c->count[1 - from], 0u) == 0)
		c->batch = t.batch + 1;
}

template <bool SMOOTH, bool SUPER>
__global__ void __launch_bounds__(THREADS)
rest_kernel(const __grid_constant__ struct mq_cuda_task t, unsigned from, bool after_first, bool last)
{
	uint32_t entries = min(t.control->count[from], t.capacity), lane = threadIdx.x % WARP;
	uint32_t inside = 0;
	uint64_t start = now_ns();
	struct orbit o = {};
	bool active = false, some = true;
	int spill = last ? 0 : SPILL;

	if (t.control->batch != t.batch)
		return;
	for (;;) {
		bool late = __any_sync(FULL, now_ns() - start > t.budget_ns);
		unsigned have;
		int enough;

		if (some)
			some = refill<SUPER>(t, from, entries, lane, &o, &active);
		have = __ballot_sync(FULL, active);
		if (!have && !some)
			break;
		if (late || (!some && __popc(have) <= spill)) {
			if (have) {
				uint32_t at = reserve(&t.control->count[1 - from], have, lane);

				if (active)
					put_entry(&t.list[1 - from][at], o.sample, 0.5 * o.x, 0.5 * o.y,
					          o.n);
			}
			active = false;
			continue;
		}

		/* Lanes stop one by one; they are looked after together. */
		bool run = active && !o.careful;
		enough = some ? __popc(have) - WAITING : __popc(have) * 3 / 4;
		enough = max(enough, 0);
		for (unsigned i = 0; i < LOOK; i++) {
			if (run)
				run = block(&o, t.limit, t.shortcuts);
			if (__popc(__ballot_sync(FULL, run)) <= enough)
				break;
		}

		bool end = active && !run && exact_block(&o, t.limit, t.shortcuts);

		__syncwarp();
		inside += __popc(__ballot_sync(FULL, end && o.n >= t.limit));
		if (end) {
			struct mq_point z = { 0.5 * o.x, 0.5 * o.y };
			struct mq_point c = { 0.25 * o.re4, 0.5 * o.im2 };

			put<SUPER>(t, o.sample, value<SMOOTH>(t, o.sample, c, z, o.n));
			active = false;
		}
		__syncwarp();
	}
	if (lane == 0)
		count_inside(t, inside);
	end_round(t, from, after_first);
}

/* A thread a pixel. */
__global__ void mean_kernel(const __grid_constant__ struct mq_cuda_task t)
{
	uint32_t n = t.supersample * t.supersample, p = blockIdx.x * blockDim.x + threadIdx.x;
	const uint32_t *in = t.colours + (size_t)p * n;
	const struct mq_shade *shade = t.shade;
	uint32_t r = 0, g = 0, b = 0;

	if (t.control->batch != t.batch + 1 || p >= t.samples / n)
		return;
	for (uint32_t i = 0; i < n; i++) {
		r += shade->decode[in[i] & 255];
		g += shade->decode[in[i] >> 8 & 255];
		b += shade->decode[in[i] >> 16 & 255];
	}
	put<false>(t, p, shade->encode[mq_mean(r, n)] | (uint32_t)shade->encode[mq_mean(g, n)] << 8 |
	                         (uint32_t)shade->encode[mq_mean(b, n)] << 16);
}

static bool is_smooth(const struct mq_cuda_task *t)
{
	return t->channels == 3 || t->counts;
}

extern "C" int mq_cuda_first(const struct mq_cuda_task *t, bool again, cudaStream_t stream)
{
	unsigned blocks = (t->samples - 1) / (MQ_CUDA_CHUNK * (THREADS / WARP)) + 1;

	if (t->supersample > 1 && is_smooth(t))
		first_kernel<true, true><<<blocks, THREADS, 0, stream>>>(*t, again);
	else if (t->supersample > 1)
		first_kernel<false, true><<<blocks, THREADS, 0, stream>>>(*t, again);
	else if (is_smooth(t))
		first_kernel<true, false><<<blocks, THREADS, 0, stream>>>(*t, again);
	else
		first_kernel<false, false><<<blocks, THREADS, 0, stream>>>(*t, again);
	return (int)cudaGetLastError();
}

extern "C" int mq_cuda_rest(const struct mq_cuda_task *t, unsigned from, bool after_first, bool last,
                            unsigned blocks, cudaStream_t stream)
{
	if (t->supersample > 1 && is_smooth(t))
		rest_kernel<true, true><<<blocks, THREADS, 0, stream>>>(*t, from, after_first, last);
	else if (t->supersample > 1)
		rest_kernel<false, true><<<blocks, THREADS, 0, stream>>>(*t, from, after_first, last);
	else if (is_smooth(t))
		rest_kernel<true, false><<<blocks, THREADS, 0, stream>>>(*t, from, after_first, last);
	else
		rest_kernel<false, false><<<blocks, THREADS, 0, stream>>>(*t, from, after_first, last);
	return (int)cudaGetLastError();
}

extern "C" int mq_cuda_mean(const struct mq_cuda_task *t, cudaStream_t stream)
{
	uint32_t pixels = t->samples / (t->supersample * t->supersample);

	mean_kernel<<<(pixels - 1) / THREADS + 1, THREADS, 0, stream>>>(*t);
	return (int)cudaGetLastError();
}

extern "C" int mq_cuda_load(unsigned *blocks)
{
	const void *kernels[] = {
		(const void *)first_kernel<false, false>, (const void *)first_kernel<false, true>,
		(const void *)first_kernel<true, false>,  (const void *)first_kernel<true, true>,
		(const void *)rest_kernel<false, false>,  (const void *)rest_kernel<false, true>,
		(const void *)rest_kernel<true, false>,   (const void *)rest_kernel<true, true>,
		(const void *)mean_kernel,
	};
	cudaFuncAttributes attributes;
	cudaError_t e = cudaSuccess;
	int device, processors, fit;

	for (size_t i = 0; i < sizeof kernels / sizeof kernels[0] && e == cudaSuccess; i++)
		e = cudaFuncGetAttributes(&attributes, kernels[i]);
	if (e == cudaSuccess)
		e = cudaGetDevice(&device);
	if (e == cudaSuccess)
		e = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
	if (e == cudaSuccess)
		e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&fit, rest_kernel<true, true>, THREADS, 0);
	/* Half of what fits keeps the processors busy: more samples then go through each lane, so that
	 * fewer lanes idle at the end, and the other half is for another tile. */
	if (e == cudaSuccess)
		*blocks = (unsigned)processors * (unsigned)(fit > 1 ? (fit + 1) / 2 : 1);
	return (int)e;
}
