/* dispatch: which tile goes to which device next. Called by the scheduler's turn; nothing is started here
 * but in the database. */
#include "config.h"

#include "worker/schedule_private.h"

#include <stdlib.h>

#include "src/clock.h"
#include "src/failpoint.h"
#include "src/log.h"
#include "worker/metrics.h"

/* Tiles a device holds beyond those in its slots, so that it never waits for a commit. */
#define QUEUE_AHEAD 2
#define BATCH 32
/* A tile is split before it starts when the job's tiles so far say that it would take longer. */
#define TILE_SECONDS_MAX 1.0

/* The tile that is this one upside down, if it waits too: it costs no rendering. Suspects run alone. */
static enum mq_status begin_mirror(struct mq_schedule *s, const struct mq_unit *u,
                                   const struct mq_active *a, struct mq_task *t, struct mq_error *err)
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
	status = mq_store_attempt_begin(s->c.store, row.id, u->info.name, false, mq_clock_wall_ms(),
	                                &m->attempt, err);
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
	status = mq_store_attempt_begin(s->c.store, row->id, u->info.name, row->suspect, mq_clock_wall_ms(),
	                                &t->tile[0].attempt, err);
	if (!status)
		status = begin_mirror(s, u, a, t, err);
	if (status) {
		free(t);
		return status;
	}
	*mirror = t->tiles == 2;
	t->job = mq_active_hold(a);
	a->in_flight++;
	u->in_flight++;
	s->in_flight++;
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
                                   const struct mq_tile_row *row, struct mq_error *err)
{
	static const char why[] = "its rows in the database are damaged (a tile outside the picture); "
	                          "submit it again";
	enum mq_status status = mq_store_tile_fail(s->c.store, row->id, why, mq_clock_wall_ms(), err);

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
		return fail_outside(s, a, row, err);
	switch (mq_memory_fit(s, u, &a->layout, row->span, now_ms)) {
	case MQ_FIT_SPLIT_SIZE:
		return split(s, row, "size", step, err);
	case MQ_FIT_SPLIT_OOM:
		return split(s, row, "oom", step, err);
	case MQ_FIT_LATER:
		*step = STEP_FULL;
		return MQ_OK;
	case MQ_FIT_NEVER:
		status = mq_store_tile_fail(s->c.store, row->id, u->memory_error.text, mq_clock_wall_ms(), err);
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

/* Nothing has been changed in the database: it is as good later. */
static void memory_later(struct mq_unit *u, const struct mq_error *why, int64_t now_ms)
{
	mq_log(MQ_LOG_WARN, "%s; trying again in %d ms", why->text, MQ_MEMORY_RETRY_MS);
	u->retry_ms = now_ms + MQ_MEMORY_RETRY_MS;
}

/* Gives a device tiles until it is full or there are none. *none: nothing is pending. Suspects that are met
 * unasked (of a job that was paused, and goes on) are begun by nobody until all that is in flight has ended. */
static enum mq_status feed(struct mq_schedule *s, struct mq_unit *u, bool suspects, int64_t now_ms,
                           bool *none, struct mq_error *err)
{
	struct mq_tile_row rows[BATCH];
	enum step step = STEP_BEGUN;
	enum mq_status status = MQ_OK;
	unsigned want;
	size_t n;

	*none = false;
	while (!status && !s->fatal && step != STEP_FULL && (want = room(u))) {
		if (suspects)
			want = 1;
		status = mq_store_tiles_next(s->c.store, suspects, rows, want < BATCH ? want : BATCH, &n, err);
		if (status || n == 0) {
			*none = !status;
			break;
		}
		if (!suspects && rows[0].suspect) {
			s->suspects = true;
			break;
		}
		step = STEP_BEGUN;
		for (size_t i = 0; !status && step == STEP_BEGUN && i < n; i++)
			status = place(s, u, &rows[i], now_ms, &step, err);
		if (status == MQ_ENOMEM_HOST) {
			memory_later(u, err, now_ms);
			return MQ_OK;
		}
		if (suspects && step == STEP_BEGUN)
			break;
	}
	return status;
}

/* Suspects run alone, with nothing else in flight: tiles, on the first device, then assemblies. */
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
	if (!status && none)
		status = mq_gather_suspect(s, now_ms, &none, err);
	if (status == MQ_ENOMEM_HOST) {
		memory_later(u, err, now_ms);
		return MQ_OK;
	}
	if (!status && none) {
		s->suspects = false;
		s->look = true;
	}
	return status;
}

enum mq_status mq_dispatch(struct mq_schedule *s, int64_t now_ms, struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	bool none = false;

	s->look = false;
	if (s->suspects) {
		status = feed_suspect(s, now_ms, err);
		if (status || s->suspects)
			return status;
	}
	for (unsigned i = 0; !status && !none && !s->suspects && i < s->count; i++)
		status = feed(s, &s->unit[i], false, now_ms, &none, err);
	return !status && s->suspects ? feed_suspect(s, now_ms, err) : status;
}
