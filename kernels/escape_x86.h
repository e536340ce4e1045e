/* escape_x86: the vector template. An instruction set's .c defines the operations (vd_*, vi_*, vm_*:
 * escape_avx2.c says what each must do), V_LANES, V_UNROLL (vectors in flight), V_ISA (the table it
 * makes) and V_NAME, and includes this last.
 *
 * A patch goes through three stages, in blocks of BLOCK samples:
 *   first()  the first steps on neighbouring samples, tested at each step;
 *   pass()   what is left in a block, packed into full vectors, all at the same step;
 *   drive()  the few long orbits of the whole patch, each lane at its own step, refilled at once.
 * The last two test for escape only every so many steps, keep the state from before, and let
 * finish() run those that escaped again from there, tested at each step.
 *
 * Why that never changes a count. The arithmetic is that of escape.h, so a state is the same bits
 * whoever computes it. Testing late is exact if an orbit that has left |z|^2 < 4 never comes back:
 * with |z| >= 2 (1 - 2^-50) and |c|^2 < 4 - 2^-20, so |c| < 2 - 2^-22, the next |z| is at least
 * |z|^2 - |c| >= |z| + 2^-23, and rounding takes off 2^-49 |z|^2 at most, which the growth exceeds
 * for every |z| >= 2. After an overflow |z|^2 is infinite or NaN for good: an infinite x or y makes
 * the other infinite or NaN at the next step. With |c|^2 >= 4 the count is 0. For the ring between,
 * `ring` makes every step tested. */
#include <string.h>

#include "kernels/escape.h"
#include "kernels/escape_cpu.h"
#include "kernels/escape_vec.h"
#include "src/alive.h"

#define GROUP (V_LANES * V_UNROLL)
#define BLOCK 1024u
#define ROOM (BLOCK + 2 * GROUP)
#define FIRST_STEPS 12u   /* of first() */
#define PASS_STEPS 24u    /* between two tests of pass() */
#define PASS_END 512u     /* the step at which drive() takes over */
#define PASS_MIN (4 * GROUP) /* or when so few samples are left in the block */
#define DRIVE_STEPS 120    /* between two tests of drive(): a multiple of most short periods */
#define ALIVE_BLOCKS 2048  /* of DRIVE_STEPS: some milliseconds */
#define ALL_LANES ((1u << V_LANES) - 1)
#define FINISH_AT (8 * GROUP)

#define RING 0x1p-20 /* width of the ring of |c|^2 under 4 */
#define PIECE 64u    /* loops of a length that is known are made vectors of at -O2 too */

#define EACH_VECTOR _Pragma("GCC unroll 8") for (unsigned u = 0; u < V_UNROLL; u++)

/* Where each step is tested a vector has more state: fewer of them, so that it stays in registers. */
#define V_TESTED 3u
#define TESTED (V_LANES * V_TESTED)
#define EACH_TESTED _Pragma("GCC unroll 8") for (unsigned u = 0; u < V_TESTED; u++)

_Static_assert(V_UNROLL == 6, "v_steps() names them");
_Static_assert(GROUP <= MQ_CPU_SLACK && GROUP <= 64, "first() writes past the end; lanes are bits");

/* Orbits, packed; at: number of the sample in the patch; n: steps survived. */
struct orbits {
	double x[ROOM], y[ROOM], re[ROOM], im[ROOM];
	int64_t at[ROOM], n[ROOM];
	unsigned count;
};

/* What drive() has in its lanes: carried from block to block. A lane with at < 0 is idle. */
struct lanes {
	double x[2][GROUP], y[2][GROUP]; /* now, and before the last steps: now is [turn] */
	double re[GROUP], im[GROUP];
	double seen_x[GROUP], seen_y[GROUP]; /* the state that Brent's search compares with */
	int64_t at[GROUP], base[GROUP];      /* base + DRIVE_STEPS * blocks: steps survived */
	int64_t look[GROUP], end[GROUP];     /* blocks at which seen_* is renewed, the limit is reached */
	int64_t blocks, event;               /* event: the least of look and end */
	unsigned turn, busy;
};

struct scratch {
	double re[ROOM], im[ROOM];
	struct orbits live, waiting, done;
	struct lanes lanes;
};

struct run {
	const struct mq_patch *patch;
	const struct mq_scene *scene;
	struct mq_samples *out;
	struct scratch *s;
	int64_t limit;
	bool smooth; /* colours or smooth counts are wanted */
	bool ring;   /* a sample lies where every step must be tested */
};

static inline void put_inside(const struct run *r, size_t at)
{
	r->out->counts[at] = (uint32_t)r->limit;
	if (r->smooth) {
		r->out->colours[at] = r->scene->shade->inside;
		r->out->smooth[at] = (float)(uint32_t)r->limit;
	}
}

static inline void push(struct orbits *o, double x, double y, double re, double im, int64_t at, int64_t n)
{
	unsigned i = o->count++;

	o->x[i] = x;
	o->y[i] = y;
	o->re[i] = re;
	o->im[i] = im;
	o->at[i] = at;
	o->n[i] = n;
}

/* Appends the lanes of `bits`, all of them n steps old. */
V_FN void push_lanes(struct orbits *o, unsigned bits, vd x, vd y, vd re, vd im, vi at, int64_t n)
{
	unsigned i = o->count;

	vd_store(o->x + i, vd_compress(x, bits));
	vd_store(o->y + i, vd_compress(y, bits));
	vd_store(o->re + i, vd_compress(re, bits));
	vd_store(o->im + i, vd_compress(im, bits));
	vi_store(o->at + i, vi_compress(at, bits));
	vi_store(o->n + i, vi_set(n));
	o->count = i + (unsigned)__builtin_popcount(bits);
}

/* Fills up the last group with orbits that escape at once. */
static void pad(struct orbits *o)
{
	unsigned i;

	for (i = o->count; i < o->count + GROUP; i++) {
		o->re[i] = 4;
		o->x[i] = o->y[i] = o->im[i] = 0;
		o->n[i] = 0;
	}
}

/* ---- finish ---- */

/* Orbits number i to i + TESTED - 1 of done, which escape within DRIVE_STEPS. */
V_FN void finish_group(const struct run *r, const struct orbits *o, unsigned i, bool smooth)
{
	uint32_t count[TESTED], colour[TESTED];
	float value[TESTED];
	vd x[V_TESTED], y[V_TESTED], re[V_TESTED], im[V_TESTED];
	vm on[V_TESTED], any = vm_all();
	vi n[V_TESTED];
	unsigned k, l, valid = o->count - i < TESTED ? o->count - i : TESTED;

	EACH_TESTED {
		x[u] = vd_load(o->x + i + u * V_LANES);
		y[u] = vd_load(o->y + i + u * V_LANES);
		re[u] = vd_load(o->re + i + u * V_LANES);
		im[u] = vd_load(o->im + i + u * V_LANES);
		n[u] = vi_load(o->n + i + u * V_LANES);
		on[u] = vm_all();
	}
	for (k = 0; k < DRIVE_STEPS && vm_bits(any); k++) {
		any = vm_none();
		EACH_TESTED {
			vd nx = x[u], ny = y[u];

			v_step(&nx, &ny, re[u], im[u]);
			x[u] = smooth ? vd_pick(on[u], nx, x[u]) : nx;
			y[u] = smooth ? vd_pick(on[u], ny, y[u]) : ny;
			on[u] = vm_and(on[u], vd_lt(v_norm2(nx, ny), vd_set(MQ_ESCAPE_R2)));
			n[u] = vi_count(n[u], on[u]);
			any = vm_or(any, on[u]);
		}
	}
	EACH_TESTED {
		vi_store32(count + u * V_LANES, n[u]);
		if (smooth)
			v_shade(r->scene, re[u], im[u], x[u], y[u], n[u], colour + u * V_LANES, value + u * V_LANES);
	}
	for (l = 0; l < valid; l++) {
		size_t at = (size_t)o->at[i + l];

		if (count[l] >= r->limit) {
			put_inside(r, at);
			continue;
		}
		r->out->counts[at] = count[l];
		if (smooth) {
			r->out->colours[at] = colour[l];
			r->out->smooth[at] = value[l];
		}
	}
}

static void finish(const struct run *r, struct orbits *o)
{
	unsigned i;

	pad(o);
	if (r->smooth)
		for (i = 0; i < o->count; i += TESTED)
			finish_group(r, o, i, true);
	else
		for (i = 0; i < o->count; i += TESTED)
			finish_group(r, o, i, false);
	o->count = 0;
}

/* ---- first ---- */

V_FN void first_group(struct run *r, size_t at, unsigned i, bool smooth)
{
	struct scratch *s = r->s;
	vd x[V_TESTED], y[V_TESTED], re[V_TESTED], im[V_TESTED];
	vm on[V_TESTED], in[V_TESTED], any = vm_none(), ring = vm_none();
	vi n[V_TESTED], lane = v_lane_numbers();
	unsigned k, steps = r->limit - 1 < FIRST_STEPS ? (unsigned)r->limit - 1 : FIRST_STEPS;

	EACH_TESTED {
		vd r2;

		x[u] = re[u] = vd_load(s->re + i + u * V_LANES);
		y[u] = im[u] = vd_load(s->im + i + u * V_LANES);
		/* The first step gives c itself (or a zero of the other sign, which no |z|^2 shows). */
		r2 = v_norm2(re[u], im[u]);
		on[u] = vd_lt(r2, vd_set(MQ_ESCAPE_R2));
		ring = vm_or(ring, vm_andnot(vd_lt(r2, vd_set(MQ_ESCAPE_R2 - RING)), on[u]));
		in[u] = vm_none();
		if (r->scene->shortcuts)
			in[u] = v_known_inside(re[u], im[u]);
		on[u] = vm_andnot(in[u], on[u]);
		n[u] = vi_count(vi_set(0), on[u]);
		any = vm_or(any, on[u]);
	}
	r->ring |= vm_bits(ring) != 0;
	for (k = 0; k < steps && vm_bits(any); k++) {
		any = vm_none();
		EACH_TESTED {
			vd nx = x[u], ny = y[u];

			v_step(&nx, &ny, re[u], im[u]);
			x[u] = smooth ? vd_pick(on[u], nx, x[u]) : nx;
			y[u] = smooth ? vd_pick(on[u], ny, y[u]) : ny;
			on[u] = vm_and(on[u], vd_lt(v_norm2(nx, ny), vd_set(MQ_ESCAPE_R2)));
			n[u] = vi_count(n[u], on[u]);
			any = vm_or(any, on[u]);
		}
	}
	EACH_TESTED {
		unsigned bits = vm_bits(on[u]), inside = vm_bits(in[u]), l;
		size_t to = at + u * V_LANES;

		vi_store32(r->out->counts + to, vi_pick(in[u], vi_set(r->limit), n[u]));
		if (smooth && (bits | inside) != ALL_LANES)
			v_shade(r->scene, re[u], im[u], x[u], y[u], n[u], r->out->colours + to, r->out->smooth + to);
		if (steps + 1 == r->limit) { /* lanes still on are inside */
			inside |= bits;
			bits = 0;
		}
		if (smooth)
			for (l = 0; l < V_LANES; l++)
				if (inside >> l & 1)
					put_inside(r, to + l);
		if (bits)
			push_lanes(&s->live, bits, x[u], y[u], re[u], im[u],
			           vi_add(lane, vi_set((int64_t)to)), (int64_t)steps + 1);
	}
}

static void first(struct run *r, size_t at, unsigned count)
{
	struct scratch *s = r->s;
	unsigned i;

	for (i = count; i < count + GROUP; i++) { /* vectors past the end escape at once */
		s->re[i] = 4;
		s->im[i] = 0;
	}
	if (r->smooth)
		for (i = 0; i < count; i += TESTED)
			first_group(r, at + i, i, true);
	else
		for (i = 0; i < count; i += TESTED)
			first_group(r, at + i, i, false);
}

/* ---- pass ---- */

/* k steps of a group, from x and y to to_x and to_y; on: lanes that have not escaped. Tested at the end only,
 * or (ring) at every step. */
V_FN void group_steps(const double *x, const double *y, const double *re, const double *im, double *to_x,
                      double *to_y, vm *on, unsigned k, bool ring)
{
	if (!ring) {
		v_steps(x, y, re, im, to_x, to_y, k);
		EACH_VECTOR
			on[u] = vd_lt(v_norm2(vd_load(to_x + u * V_LANES), vd_load(to_y + u * V_LANES)),
			              vd_set(MQ_ESCAPE_R2));
		return;
	}
	EACH_VECTOR {
		vd a = vd_load(x + u * V_LANES), b = vd_load(y + u * V_LANES);
		vd re_ = vd_load(re + u * V_LANES), im_ = vd_load(im + u * V_LANES);

		on[u] = vm_all();
		for (unsigned i = 0; i < k; i++) {
			v_step(&a, &b, re_, im_);
			on[u] = vm_and(on[u], vd_lt(v_norm2(a, b), vd_set(MQ_ESCAPE_R2)));
		}
		vd_store(to_x + u * V_LANES, a);
		vd_store(to_y + u * V_LANES, b);
	}
}

/* Part of pass(): sorts the lanes of a group, k steps on at x and y, into those kept and those that escaped,
 * whose state before is still in the list. */
V_FN void sort_group(struct run *r, unsigned i, unsigned count, const double *x, const double *y,
                     const vm *on, int64_t n)
{
	struct orbits *o = &r->s->live;
	unsigned kept = o->count;

	EACH_VECTOR {
		unsigned from = i + u * V_LANES, left = count > from ? count - from : 0;
		unsigned valid = left >= V_LANES ? ALL_LANES : (1u << left) - 1;
		unsigned bits = vm_bits(on[u]) & valid;
		vd re = vd_load(o->re + from), im = vd_load(o->im + from);
		vi at = vi_load(o->at + from);

		if (bits != valid)
			push_lanes(&r->s->done, valid & ~bits, vd_load(o->x + from), vd_load(o->y + from), re, im,
			           at, n);
		vd_store(o->x + kept, vd_compress(vd_load(x + u * V_LANES), bits));
		vd_store(o->y + kept, vd_compress(vd_load(y + u * V_LANES), bits));
		vd_store(o->re + kept, vd_compress(re, bits));
		vd_store(o->im + kept, vd_compress(im, bits));
		vi_store(o->at + kept, vi_compress(at, bits));
		kept += (unsigned)__builtin_popcount(bits);
	}
	o->count = kept;
}

/* Likewise, a group of which none escaped. */
V_FN void keep_group(struct orbits *o, unsigned i, const double *x, const double *y)
{
	unsigned kept = o->count;

	EACH_VECTOR {
		unsigned from = i + u * V_LANES, to = kept + u * V_LANES;

		vd_store(o->x + to, vd_load(x + u * V_LANES));
		vd_store(o->y + to, vd_load(y + u * V_LANES));
		if (kept != i) {
			vd_store(o->re + to, vd_load(o->re + from));
			vd_store(o->im + to, vd_load(o->im + from));
			vi_store(o->at + to, vi_load(o->at + from));
		}
	}
	o->count = kept + GROUP;
}

/* k steps of all live orbits, which are n steps old. */
V_FN void pass(struct run *r, unsigned k, int64_t n, bool ring)
{
	struct orbits *o = &r->s->live;
	unsigned i, count = o->count;

	pad(o);
	o->count = 0;
	for (i = 0; i < count; i += GROUP) {
		double x[GROUP], y[GROUP];
		vm on[V_UNROLL], all = vm_all();

		group_steps(o->x + i, o->y + i, o->re + i, o->im + i, x, y, on, k, ring);
		EACH_VECTOR
			all = vm_and(all, on[u]);
		if (vm_bits(all) == ALL_LANES)
			keep_group(o, i, x, y); /* pads escape, so the group is full */
		else
			sort_group(r, i, count, x, y, on, n);
		if (r->s->done.count >= FINISH_AT)
			finish(r, &r->s->done);
	}
}

/* All live orbits, n steps old, up to where drive() is better; what is left goes to waiting. */
static void passes(struct run *r, int64_t n)
{
	struct orbits *o = &r->s->live;
	unsigned i;

	while (n < r->limit && n < PASS_END && o->count >= PASS_MIN) {
		unsigned k = r->limit - n < PASS_STEPS ? (unsigned)(r->limit - n) : PASS_STEPS;

		if (r->ring)
			pass(r, k, n, true);
		else
			pass(r, k, n, false);
		n += k;
	}
	for (i = 0; i < o->count; i++) {
		if (n >= r->limit)
			put_inside(r, (size_t)o->at[i]);
		else
			push(&r->s->waiting, o->x[i], o->y[i], o->re[i], o->im[i], o->at[i], n);
	}
	o->count = 0;
}

#include "kernels/escape_drive.h"

/* ---- the whole ---- */

/* Coordinates of `count` samples from number `at` of the patch on. */
static void place(const struct run *r, size_t at, unsigned count)
{
	const struct mq_grid *g = &r->scene->grid;
	uint32_t cols = r->patch->cols, row = (uint32_t)(at / cols), col = (uint32_t)(at % cols);
	unsigned i = 0;

	while (i < count) {
		unsigned end = count - i < cols - col ? count : i + (cols - col);
		vd im = vd_set(mq_sample_im(g, (double)r->patch->row0 + row));
		vd middle = vd_add(vd_set((double)r->patch->col0 + col + 0.5), vd_from_int(v_lane_numbers()));

		/* mq_sample_re(); what is written past the end is written again, or past the block. */
		for (; i < end; i += V_LANES) {
			vd_store(r->s->re + i, vd_fma(middle, vd_set(g->dx), vd_set(g->xmin)));
			vd_store(r->s->im + i, im);
			middle = vd_add(middle, vd_set(V_LANES));
		}
		i = end;
		col = 0;
		row++;
	}
}

static bool render(const struct mq_patch *patch, struct mq_samples *out, void *scratch)
{
	const struct mq_scene *scene = patch->scene;
	struct run r = {
		.patch = patch, .scene = scene, .out = out, .s = scratch, .limit = scene->limit,
		.smooth = scene->shade->channels == 3 || scene->keep_counts,
	};
	size_t total = (size_t)patch->cols * patch->rows, at;
	unsigned l;

	r.s->live.count = r.s->waiting.count = r.s->done.count = 0;
	r.s->lanes.busy = r.s->lanes.turn = 0;
	r.s->lanes.blocks = 0;
	r.s->lanes.event = INT64_MAX;
	for (l = 0; l < GROUP; l++)
		r.s->lanes.at[l] = -1;
	for (at = 0; at < total; at += BLOCK) {
		unsigned count = total - at < BLOCK ? (unsigned)(total - at) : BLOCK;

		place(&r, at, count);
		first(&r, at, count);
		passes(&r, r.limit - 1 < FIRST_STEPS ? r.limit : FIRST_STEPS + 1);
		if (!drive(&r, false))
			return false;
	}
	if (!drive(&r, true))
		return false;
	finish(&r, &r.s->done);
	return !atomic_load_explicit(patch->cancel, memory_order_relaxed);
}

static void gray(const uint32_t *restrict counts, size_t n, uint32_t limit, uint8_t *restrict out)
{
	size_t i = 0, k;

	for (; n - i >= PIECE; i += PIECE)
		for (k = 0; k < PIECE; k++)
			out[i + k] = (uint8_t)mq_gray(counts[i + k], limit);
	for (; i < n; i++)
		out[i] = (uint8_t)mq_gray(counts[i], limit);
}

static size_t inside(const uint32_t *counts, size_t n, uint32_t limit)
{
	size_t sum = 0, i = 0, k;

	for (; n - i >= PIECE; i += PIECE) {
		uint32_t part = 0;

		for (k = 0; k < PIECE; k++)
			part += counts[i + k] >= limit;
		sum += part;
	}
	for (; i < n; i++)
		sum += counts[i] >= limit;
	return sum;
}

const struct mq_isa V_ISA = {
	.name = V_NAME, .scratch = sizeof(struct scratch), .render = render, .gray = gray, .inside = inside,
};
