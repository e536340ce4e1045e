/* escape_drive: the last of escape_x86.h's stages: the few long orbits of a patch, each lane at its own step.
 * A lane that escapes, reaches its limit or comes back to a state seen before is given the next orbit at
 * once. Included by escape_x86.h only, behind the structures and stages that it uses. */
#ifndef MQ_ESCAPE_DRIVE_H
#define MQ_ESCAPE_DRIVE_H

static void renew(struct lanes *d, unsigned l)
{
	int64_t n = d->base[l] + d->blocks * DRIVE_STEPS;

	d->seen_x[l] = d->x[d->turn][l];
	d->seen_y[l] = d->y[d->turn][l];
	d->look[l] = d->blocks + 1 + n / (4 * DRIVE_STEPS);
}

/* The next waiting orbit into lane l; without one the lane stays idle, at 0. */
static void refill(const struct run *r, unsigned l)
{
	struct orbits *o = &r->s->waiting;
	struct lanes *d = &r->s->lanes;
	unsigned i;

	d->busy -= d->at[l] >= 0;
	if (o->count == 0) {
		d->x[d->turn][l] = d->y[d->turn][l] = d->re[l] = d->im[l] = 0;
		d->seen_x[l] = d->seen_y[l] = 1;
		d->at[l] = -1;
		d->look[l] = d->end[l] = INT64_MAX;
		return;
	}
	i = --o->count;
	d->x[d->turn][l] = o->x[i];
	d->y[d->turn][l] = o->y[i];
	d->re[l] = o->re[i];
	d->im[l] = o->im[i];
	d->at[l] = o->at[i];
	d->base[l] = o->n[i] - d->blocks * DRIVE_STEPS;
	d->end[l] = d->blocks + (r->limit - o->n[i] + DRIVE_STEPS - 1) / DRIVE_STEPS;
	d->look[l] = INT64_MAX;
	if (r->scene->shortcuts)
		renew(d, l);
	else
		d->seen_x[l] = d->seen_y[l] = 1e10; /* no state that has not escaped */
	d->busy++;
}

/* Lets no event of lane l pass. */
static inline void expect(struct lanes *d, unsigned l)
{
	if (d->look[l] < d->event)
		d->event = d->look[l];
	if (d->end[l] < d->event)
		d->event = d->end[l];
}

/* Lanes that escaped in the last block go to finish(), from their state before it. */
static void take_out(const struct run *r, uint64_t lanes)
{
	struct lanes *d = &r->s->lanes;
	unsigned before = d->turn ^ 1;

	for (; lanes; lanes &= lanes - 1) {
		unsigned l = (unsigned)__builtin_ctzll(lanes);

		push(&r->s->done, d->x[before][l], d->y[before][l], d->re[l], d->im[l], d->at[l],
		     d->base[l] + (d->blocks - 1) * DRIVE_STEPS);
		refill(r, l);
		expect(d, l);
	}
	if (r->s->done.count >= FINISH_AT)
		finish(r, &r->s->done);
}

static void take_inside(const struct run *r, uint64_t lanes)
{
	struct lanes *d = &r->s->lanes;

	for (; lanes; lanes &= lanes - 1) {
		unsigned l = (unsigned)__builtin_ctzll(lanes);

		put_inside(r, (size_t)d->at[l]);
		refill(r, l);
		expect(d, l);
	}
}

/* Lanes past their limit are inside; others may have a new state to compare with. */
static void happen(const struct run *r)
{
	struct lanes *d = &r->s->lanes;
	uint64_t inside = 0;
	unsigned l;

	d->event = INT64_MAX;
	for (l = 0; l < GROUP; l++) {
		if (d->blocks >= d->end[l])
			inside |= (uint64_t)1 << l;
		else if (d->blocks >= d->look[l])
			renew(d, l);
		expect(d, l);
	}
	take_inside(r, inside);
}

/* After a block in which the lanes of `out` escaped, and those of `same` are in the state seen. That
 * state comes back for ever, as a step depends on nothing else: the orbit never escapes. A lane may
 * pass its limit within the block: if it has escaped, finish() finds whether before the limit. */
static void settle(const struct run *r, uint64_t out, uint64_t same)
{
	take_out(r, out);
	take_inside(r, same & ~out);
	if (r->s->lanes.blocks >= r->s->lanes.event)
		happen(r);
}

/* Runs the lanes until more orbits are needed to fill them all, or (drain) until none is busy.
 * False: cancelled. */
V_FN bool drive_lanes(struct run *r, bool drain, bool ring)
{
	struct lanes *d = &r->s->lanes;
	unsigned l;

	if (d->busy < GROUP) {
		for (l = 0; l < GROUP; l++) {
			if (d->at[l] < 0)
				refill(r, l);
			expect(d, l);
		}
	}
	while (drain ? d->busy > 0 : d->busy == GROUP) {
		unsigned from = d->turn, to = d->turn ^ 1;
		vm on[V_UNROLL];
		uint64_t out_bits = 0, same_bits = 0;

		if (atomic_load_explicit(r->patch->cancel, memory_order_relaxed))
			return false;
		group_steps(d->x[from], d->y[from], d->re, d->im, d->x[to], d->y[to], on, DRIVE_STEPS, ring);
		d->turn = to;
		if (++d->blocks % ALIVE_BLOCKS == 0)
			mq_alive();
		EACH_VECTOR {
			vd x = vd_load(d->x[to] + u * V_LANES), y = vd_load(d->y[to] + u * V_LANES);
			vm same = vm_and(vd_same(x, vd_load(d->seen_x + u * V_LANES)),
			                 vd_same(y, vd_load(d->seen_y + u * V_LANES)));

			out_bits |= (uint64_t)(vm_bits(on[u]) ^ ALL_LANES) << (u * V_LANES);
			same_bits |= (uint64_t)vm_bits(same) << (u * V_LANES);
		}
		if ((out_bits | same_bits) || d->blocks >= d->event)
			settle(r, out_bits, same_bits);
	}
	return true;
}

static bool drive(struct run *r, bool drain)
{
	return r->ring ? drive_lanes(r, drain, true) : drive_lanes(r, drain, false);
}

#endif
