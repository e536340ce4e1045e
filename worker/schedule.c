/* schedule: see schedule.h. This file: which tile goes where next. */
#include "config.h"

#include "worker/schedule_private.h"

#include <stdlib.h>
#include <string.h>

#include "src/failpoint.h"
#include "src/log.h"
#include "worker/metrics.h"

/* Tiles a device holds beyond those in its slots, so that it never waits for a commit. */
#define QUEUE_AHEAD 2
#define BATCH 32
/* A tile is split before it starts when the job's tiles so far say that it would take longer. */
#define TILE_SECONDS_MAX 1.0
/* How long tiles of a dropped job may take yet before the device gives up what it does. */
#define SLOW_CANCEL_MS 1000
/* When the scheduler's own memory is out: how long it waits. */
#define MEMORY_RETRY_MS 1000

struct mq_active *mq_schedule_find(const struct mq_schedule *s, int64_t job)
{
	struct mq_active *a = s->active;

	while (a && a->id != job)
		a = a->next;
	return a;
}

enum mq_status mq_schedule_active(struct mq_schedule *s, int64_t job, int64_t now_ms,
                                  struct mq_active **out, struct mq_error *err)
{
	struct mq_active *a = mq_schedule_find(s, job);
	struct mq_job_row row;
	struct mq_error why = {""};
	enum mq_status status;

	*out = a;
	if (a)
		return MQ_OK;
	status = mq_store_job_get(s->c.store, job, &row, &why);
	if (!status) {
		struct mq_layout layout;

		status = mq_active_open(s->c.dir, job, row.spec, s->c.shortcuts, true, &a, &why);
		if (!status) {
			status = mq_active_agrees(a->job, &row, &layout, &why);
			if (status)
				mq_active_release(a);
		}
		mq_job_row_clear(&row);
	}
	if (status == MQ_ENOSPC)
		return mq_outcome_pause(s, job, why.text, now_ms, err);
	if (status == MQ_ECORRUPT) {
		mq_log_job(MQ_LOG_ERROR, job, "job %lld is set aside: %s", (long long)job, why.text);
		status = mq_store_job_move(s->c.store, job, MQ_JOB_FAILED, NULL, why.text, now_ms, err);
		if (!status)
			mq_tidy_ended(s, job);
		return status;
	}
	if (status)
		return mq_fail(err, status, "%s", why.text);
	a->next = s->active;
	s->active = a;
	*out = a;
	return MQ_OK;
}

enum mq_status mq_schedule_open(const struct mq_schedule_config *config, struct mq_devices *devices,
                                struct mq_schedule **out, struct mq_error *err)
{
	struct mq_schedule *s = calloc(1, sizeof *s);
	enum mq_status status = MQ_OK;

	if (!s)
		status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for the scheduler");
	for (unsigned i = 0; i < devices->count; i++) {
		struct mq_backend *b = devices->backend[i];

		if (!status) {
			struct mq_unit *u = &s->unit[s->count];

			status = mq_device_open(b, config->pool, config->events, &u->device, err);
			if (!status) {
				s->count++;
				mq_device_info(u->device, &u->info);
				continue;
			}
		}
		b->ops->close(b);
	}
	devices->count = 0;
	if (status) {
		mq_schedule_close(s);
		return status;
	}
	s->c = *config;
	for (unsigned i = 0; i < s->count; i++)
		mq_memory_init(s, &s->unit[i]);
	s->suspects = s->look = s->look_assembly = true;
	*out = s;
	return MQ_OK;
}

/* What threads told after the last turn. */
static void drop_events(struct mq_schedule *s)
{
	struct mq_event *e = s->c.events ? mq_events_take(s->c.events) : NULL, *next;

	for (; e; e = next) {
		next = e->next;
		if (e->kind == MQ_EVENT_TASK) {
			struct mq_task *t = e->subject;

			mq_active_release(t->job);
			free(t);
		} else if (e->kind == MQ_EVENT_ASSEMBLY) {
			mq_assembly_free(e->subject);
		}
	}
}

void mq_schedule_close(struct mq_schedule *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < s->count; i++)
		mq_device_close(s->unit[i].device);
	drop_events(s);
	while (s->active) {
		struct mq_active *a = s->active;

		s->active = a->next;
		mq_active_release(a);
	}
	free(s->orphans);
	free(s);
}

enum mq_status mq_schedule_recover(struct mq_schedule *s, int64_t now_ms, struct mq_error *err)
{
	struct mq_recovery r = {0};
	int64_t held = 0;
	enum mq_status status = mq_store_recover(s->c.store, now_ms, &r, err);

	if (!status)
		status = mq_store_meta_get(s->c.store, MQ_META_HELD, &held, err);
	s->held = held != 0;
	if (s->held)
		mq_log(MQ_LOG_WARN, "the queue is paused: mandelq resume --all lets it go on");
	if (!status)
		status = mq_tidy_start(s, err);
	if (!status && (r.suspects || r.jobs_failed || r.assembling))
		mq_log(MQ_LOG_WARN,
		       "recovered after an unclean end: %llu tiles were in flight (%llu halved), %llu jobs "
		       "failed, %llu pictures to assemble",
		       (unsigned long long)r.suspects, (unsigned long long)r.halved,
		       (unsigned long long)r.jobs_failed, (unsigned long long)r.assembling);
	s->disk_retry_ms = now_ms; /* jobs that an earlier run paused */
	return status;
}

void mq_schedule_assembly_at(struct mq_schedule *s, int64_t at_ms)
{
	if (!s->assembly_retry_ms || at_ms < s->assembly_retry_ms)
		s->assembly_retry_ms = at_ms;
}

/* The tile that is this one upside down, if it waits too: it costs no rendering. Suspects run alone. */
static enum mq_status begin_mirror(struct mq_schedule *s, const struct mq_unit *u,
                                   const struct mq_active *a, struct mq_task *t, int64_t now_ms,
                                   struct mq_error *err)
{
	struct mq_task_tile *m = &t->tile[1];
	struct mq_span span = t->tile[0].span;
	struct mq_tile_row row;
	enum mq_status status;
	bool found;

	if (!a->mirrored || t->alone || (span.first + span.count) > a->layout.strips / 2)
		return MQ_OK;
	span.first = a->layout.strips - span.first - span.count;
	status = mq_store_tile_at(s->c.store, a->id, span, &row, &found, err);
	if (status || !found)
		return status;
	m->tile = row.id;
	m->span = span;
	status = mq_store_attempt_begin(s->c.store, row.id, u->info.name, false, now_ms, &m->attempt, err);
	if (!status)
		t->tiles = 2;
	return status;
}

/* Starts an attempt: counted in the database now, launched after the commit. *mirror: at another tile
 * too. */
static enum mq_status begin(struct mq_schedule *s, struct mq_unit *u, struct mq_active *a,
                            const struct mq_tile_row *row, int64_t now_ms, bool *mirror,
                            struct mq_error *err)
{
	struct mq_task *t = mq_failpoint("task-alloc") ? NULL : calloc(1, sizeof *t);
	enum mq_status status;

	if (!t)
		return mq_fail(err, MQ_ENOMEM_HOST, "host memory: asked for %zu bytes for a task", sizeof *t);
	t->event = (struct mq_event){MQ_EVENT_TASK, t, NULL};
	t->device = u->device;
	t->tile[0].tile = row->id;
	t->tile[0].span = row->span;
	t->tiles = 1;
	t->alone = row->suspect;
	t->begun_ms = now_ms;
	status = mq_store_attempt_begin(s->c.store, row->id, u->info.name, row->suspect, now_ms,
	                                &t->tile[0].attempt, err);
	if (!status)
		status = begin_mirror(s, u, a, t, now_ms, err);
	if (status) {
		free(t);
		return status;
	}
	*mirror = t->tiles == 2;
	t->job = mq_active_hold(a);
	a->in_flight++;
	u->in_flight++;
	s->in_flight++;
	s->alone = row->suspect;
	/* To the end of the list, so that tiles start in order. */
	struct mq_task **end = &s->launch;

	while (*end)
		end = &(*end)->next;
	*end = t;
	return MQ_OK;
}

enum step { STEP_BEGUN, STEP_AGAIN, STEP_FULL };

static enum mq_status split(struct mq_schedule *s, const struct mq_tile_row *row, const char *reason,
                            enum step *step, struct mq_error *err)
{
	*step = STEP_AGAIN;
	mq_metrics_split(reason);
	return mq_store_tile_split(s->c.store, row->id, reason, err);
}

/* A row that a sound worker cannot have written: rendering it would write outside the picture. */
static enum mq_status fail_outside(struct mq_schedule *s, const struct mq_active *a,
                                   const struct mq_tile_row *row, int64_t now_ms, struct mq_error *err)
{
	static const char why[] = "its rows in the database are damaged (a tile outside the picture); "
	                          "submit it again";
	enum mq_status status = mq_store_tile_fail(s->c.store, row->id, why, now_ms, err);

	if (status)
		return status;
	mq_log_job(MQ_LOG_ERROR, a->id, "job %lld is set aside: %s", (long long)a->id, why);
	mq_tidy_ended(s, a->id);
	return MQ_OK;
}

/* One tile for one device. */
static enum mq_status place(struct mq_schedule *s, struct mq_unit *u, const struct mq_tile_row *row,
                            int64_t now_ms, enum step *step, struct mq_error *err)
{
	struct mq_active *a;
	enum mq_status status = mq_schedule_active(s, row->job, now_ms, &a, err);

	*step = STEP_AGAIN;
	if (status || !a)
		return status;
	if ((uint64_t)row->span.first + row->span.count > a->layout.strips)
		return fail_outside(s, a, row, now_ms, err);
	switch (mq_memory_fit(s, u, &a->layout, row->span, now_ms)) {
	case MQ_FIT_SPLIT_SIZE:
		return split(s, row, "size", step, err);
	case MQ_FIT_SPLIT_OOM:
		return split(s, row, "oom", step, err);
	case MQ_FIT_LATER:
		*step = STEP_FULL;
		return MQ_OK;
	case MQ_FIT_NEVER:
		status = mq_store_tile_fail(s->c.store, row->id, u->memory_error.text, now_ms, err);
		if (!status) {
			mq_log_job(MQ_LOG_ERROR, a->id, "job %lld failed: %s", (long long)a->id, u->memory_error.text);
			mq_tidy_ended(s, a->id);
		}
		return status;
	case MQ_FIT:
		break;
	}
	if (row->span.count > 1 && a->strip_seconds * row->span.count > TILE_SECONDS_MAX)
		return split(s, row, "time", step, err);
	bool mirror = false;

	status = begin(s, u, a, row, now_ms, &mirror, err);
	/* The other tile may be in the list that the caller works off. */
	*step = mirror ? STEP_AGAIN : STEP_BEGUN;
	return status;
}

static unsigned room(const struct mq_unit *u)
{
	unsigned depth = u->slots ? u->slots + QUEUE_AHEAD : 1;

	return u->failed || u->cancelling || u->reserving || u->in_flight >= depth ? 0 : depth - u->in_flight;
}

/* Gives a device tiles until it is full or there are none. *none: nothing is pending. */
static enum mq_status feed(struct mq_schedule *s, struct mq_unit *u, bool suspects, int64_t now_ms,
                           bool *none, struct mq_error *err)
{
	struct mq_tile_row rows[BATCH];
	enum step step = STEP_BEGUN;
	enum mq_status status = MQ_OK;
	unsigned want;
	size_t n;

	*none = false;
	while (!status && step != STEP_FULL && (want = room(u))) {
		if (suspects)
			want = 1;
		status = mq_store_tiles_next(s->c.store, suspects, rows, want < BATCH ? want : BATCH, &n, err);
		if (status || n == 0) {
			*none = !status;
			break;
		}
		step = STEP_BEGUN;
		for (size_t i = 0; !status && step == STEP_BEGUN && i < n; i++)
			status = place(s, u, &rows[i], now_ms, &step, err);
		if (status == MQ_ENOMEM_HOST) {
			/* Nothing has been changed for this tile: it is as good later. */
			mq_log(MQ_LOG_WARN, "%s; trying again in %d ms", err->text, MEMORY_RETRY_MS);
			u->retry_ms = now_ms + MEMORY_RETRY_MS;
			return MQ_OK;
		}
		if (suspects && step == STEP_BEGUN)
			break;
	}
	return status;
}

/* Suspects run alone: one, on the first device, with nothing else in flight. */
static enum mq_status feed_suspect(struct mq_schedule *s, int64_t now_ms, struct mq_error *err)
{
	struct mq_unit *u = s->unit;
	bool none;
	enum mq_status status;

	if (s->in_flight || s->assembling)
		return MQ_OK;
	while (u < s->unit + s->count - 1 && u->failed)
		u++;
	status = feed(s, u, true, now_ms, &none, err);
	if (!status && none) {
		s->suspects = false;
		s->look = true;
	}
	return status;
}

static enum mq_status feed_all(struct mq_schedule *s, int64_t now_ms, struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	bool none = false;

	s->look = false;
	if (s->suspects) {
		status = feed_suspect(s, now_ms, err);
		if (status || s->suspects)
			return status;
	}
	for (unsigned i = 0; !status && !none && i < s->count; i++)
		status = feed(s, &s->unit[i], false, now_ms, &none, err);
	return status;
}

struct collect {
	struct mq_assembly *a;
	size_t room;
	struct mq_error *err;
};

static enum mq_status collect_tile(void *arg, const struct mq_done_tile *t)
{
	struct collect *c = arg;

	if (c->a->count == c->room) {
		size_t more = c->room ? 2 * c->room : 64;
		struct mq_done_tile *tiles = realloc(c->a->tiles, more * sizeof *tiles);

		if (!tiles)
			return mq_fail(c->err, MQ_ENOMEM_HOST, "host memory: asked for %zu bytes to assemble",
			               more * sizeof *tiles);
		c->a->tiles = tiles;
		c->room = more;
	}
	c->a->tiles[c->a->count++] = *t;
	return MQ_OK;
}

static enum mq_status assemble_job(struct mq_schedule *s, int64_t job, int64_t now_ms,
                                   struct mq_error *err)
{
	struct mq_active *a;
	struct mq_assembly *as;
	struct collect c;
	enum mq_status status = mq_schedule_active(s, job, now_ms, &a, err);

	if (status || !a || a->assembling)
		return status;
	if (a->assembly_after_ms > now_ms) {
		mq_schedule_assembly_at(s, a->assembly_after_ms);
		return MQ_OK;
	}
	as = mq_failpoint("assembly-alloc") ? NULL : calloc(1, sizeof *as);
	if (!as)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory to assemble job %lld", (long long)job);
	as->event = (struct mq_event){MQ_EVENT_ASSEMBLY, as, NULL};
	as->job = mq_active_hold(a);
	c = (struct collect){as, 0, err};
	status = mq_store_tiles_done(s->c.store, job, collect_tile, &c, err);
	if (!status)
		as->is_bad = calloc(as->count ? as->count : 1, sizeof as->is_bad[0]);
	if (!status && !as->is_bad)
		status = mq_fail(err, MQ_ENOMEM_HOST, "no memory to assemble job %lld", (long long)job);
	if (status) {
		mq_assembly_free(as);
		return status;
	}
	a->assembling = true;
	s->assembling++;
	as->next = s->assemblies;
	s->assemblies = as;
	return MQ_OK;
}

static enum mq_status assemble_all(struct mq_schedule *s, int64_t now_ms, struct mq_error *err)
{
	int64_t ids[MQ_ASSEMBLER_THREADS * 2];
	size_t n;
	enum mq_status status;

	if (s->assembling >= MQ_ASSEMBLER_THREADS || s->alone)
		return MQ_OK;
	s->look_assembly = false;
	status = mq_store_jobs_in(s->c.store, MQ_JOB_ASSEMBLING, ids, MQ_ASSEMBLER_THREADS * 2, &n, err);
	for (size_t i = 0; !status && i < n && s->assembling < MQ_ASSEMBLER_THREADS; i++)
		status = assemble_job(s, ids[i], now_ms, err);
	if (status == MQ_ENOMEM_HOST) {
		mq_log(MQ_LOG_WARN, "%s; trying again in %d ms", err->text, MEMORY_RETRY_MS);
		mq_schedule_assembly_at(s, now_ms + MEMORY_RETRY_MS);
		return MQ_OK;
	}
	return status;
}

static enum mq_status take_events(struct mq_schedule *s, int64_t now_ms, struct mq_error *err)
{
	struct mq_event *e = mq_events_take(s->c.events), *next;
	enum mq_status status = MQ_OK;

	for (; e && !status; e = next) {
		next = e->next;
		switch (e->kind) {
		case MQ_EVENT_TASK:
			status = mq_outcome_task(s, e->subject, now_ms, err);
			break;
		case MQ_EVENT_ASSEMBLY:
			status = mq_outcome_assembly(s, e->subject, now_ms, err);
			break;
		case MQ_EVENT_RESERVED:
			for (unsigned i = 0; i < s->count; i++)
				if (s->unit[i].device == e->subject)
					mq_memory_answer(s, &s->unit[i], now_ms);
			break;
		}
	}
	return status;
}

/* A dropped job's tiles that take long: the device gives up all that it does; healthy tiles among it
 * go back to the queue. */
static void cancel_slow(struct mq_schedule *s, int64_t now_ms)
{
	bool due = s->slow_cancel_ms && now_ms >= s->slow_cancel_ms, dropped = false;

	for (const struct mq_active *a = s->active; a; a = a->next)
		dropped |= atomic_load(&a->dropped) && a->in_flight;
	for (unsigned i = 0; i < s->count; i++) {
		struct mq_unit *u = &s->unit[i];

		if (u->cancelling && !u->in_flight && !s->stopping) {
			u->cancelling = false;
			mq_device_cancel(u->device, false);
			s->look = true;
		} else if (due && dropped && u->in_flight && !u->cancelling) {
			u->cancelling = true;
			mq_device_cancel(u->device, true);
		}
	}
	if (due)
		s->slow_cancel_ms = 0;
}

enum mq_status mq_schedule_turn(struct mq_schedule *s, int64_t now_ms, struct mq_error *err)
{
	enum mq_status status = take_events(s, now_ms, err);

	cancel_slow(s, now_ms);
	if (status || s->stopping || s->fatal)
		return status;
	if (s->disk_retry_ms && now_ms >= s->disk_retry_ms)
		status = mq_outcome_disk_retry(s, now_ms, err);
	for (unsigned i = 0; i < s->count; i++)
		if (s->unit[i].retry_ms && now_ms >= s->unit[i].retry_ms) {
			s->unit[i].retry_ms = 0;
			s->look = true;
		}
	if (s->assembly_retry_ms && now_ms >= s->assembly_retry_ms) {
		s->assembly_retry_ms = 0;
		s->look_assembly = true;
	}
	while (!status && s->look && !s->held)
		status = feed_all(s, now_ms, err);
	if (!status && s->look_assembly && !s->held)
		status = assemble_all(s, now_ms, err);
	mq_memory_idle(s, now_ms);
	return status;
}

void mq_schedule_look(struct mq_schedule *s)
{
	s->look = s->look_assembly = true;
}

void mq_schedule_hold(struct mq_schedule *s, bool held)
{
	s->held = held;
	mq_schedule_look(s);
}

bool mq_schedule_paused(const struct mq_schedule *s)
{
	return s->held;
}

void mq_schedule_revive(struct mq_schedule *s, int64_t job)
{
	struct mq_active *a = mq_schedule_find(s, job);

	if (a) {
		atomic_store(&a->dropped, false);
		a->failures = 0;
		a->assembly_tries = 0;
	}
	mq_schedule_look(s);
}

void mq_schedule_forget(struct mq_schedule *s, int64_t job)
{
	mq_tidy_ended(s, job);
}

enum mq_status mq_schedule_after(struct mq_schedule *s, struct mq_error *err)
{
	if (s->fatal)
		return mq_fail(err, MQ_EIO, "%s", s->fatal_error.text);
	while (s->launch) {
		struct mq_task *t = s->launch;

		s->launch = t->next;
		mq_device_add(t->device, t);
	}
	while (s->assemblies) {
		struct mq_assembly *a = s->assemblies;

		s->assemblies = a->next;
		mq_assembler_add(s->c.assembler, a);
	}
	mq_tidy_after(s);
	return MQ_OK;
}

static void due_at(int64_t *due, int64_t at_ms, int64_t now_ms)
{
	int64_t left = at_ms > now_ms ? at_ms - now_ms : 0;

	if (*due < 0 || left < *due)
		*due = left;
}

int64_t mq_schedule_due(const struct mq_schedule *s, int64_t now_ms)
{
	int64_t due = -1;

	if (s->stopping)
		return -1;
	if (s->disk_retry_ms)
		due_at(&due, s->disk_retry_ms, now_ms);
	if (s->slow_cancel_ms)
		due_at(&due, s->slow_cancel_ms, now_ms);
	if (s->assembly_retry_ms)
		due_at(&due, s->assembly_retry_ms, now_ms);
	for (unsigned i = 0; i < s->count; i++) {
		const struct mq_unit *u = &s->unit[i];

		if (u->retry_ms)
			due_at(&due, u->retry_ms, now_ms);
		if (u->bytes && !u->in_flight && !u->reserving)
			due_at(&due, u->idle_ms + s->c.idle_release_ms, now_ms);
	}
	return due;
}

void mq_schedule_drop(struct mq_schedule *s, int64_t job, int64_t now_ms)
{
	mq_tidy_ended(s, job);
	s->slow_cancel_ms = now_ms + SLOW_CANCEL_MS;
	s->look = true;
}

void mq_schedule_stop(struct mq_schedule *s)
{
	s->stopping = true;
	for (unsigned i = 0; i < s->count; i++) {
		s->unit[i].cancelling = true;
		mq_device_cancel(s->unit[i].device, true);
	}
}

bool mq_schedule_idle(const struct mq_schedule *s)
{
	return s->in_flight == 0;
}

double mq_schedule_eta(const struct mq_schedule *s, const struct mq_job_row *row, int64_t now_ms)
{
	const struct mq_active *a = mq_schedule_find(s, row->id);
	double elapsed;

	if (!a || row->state != MQ_JOB_RUNNING || !a->strips_since || now_ms <= a->first_ms)
		return -1;
	elapsed = (double)(now_ms - a->first_ms) / 1e3;
	return elapsed / (double)a->strips_since * (double)(row->strips_total - row->strips_done);
}

uint64_t mq_schedule_held(const struct mq_schedule *s)
{
	uint64_t held = 0;

	for (unsigned i = 0; i < s->count; i++) {
		const struct mq_unit *u = &s->unit[i];

		held += u->reserving ? s->c.device_memory : u->bytes * u->slots;
	}
	return held;
}

unsigned mq_schedule_devices(const struct mq_schedule *s)
{
	return s->count;
}

void mq_schedule_device(const struct mq_schedule *s, unsigned index, struct mq_device_report *out)
{
	const struct mq_unit *u = &s->unit[index];

	mq_device_info(u->device, &out->info);
	out->tile_bytes = u->bytes;
	out->slots = u->bytes ? u->slots : 0;
	out->pixel_rate = u->pixel_rate;
	out->failure = u->failed ? u->failure.text : NULL;
	out->busy = u->in_flight > 0;
}
