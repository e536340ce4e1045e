/* schedule: see schedule.h. This file: the turn, what threads told, and when the next turn is due. */
#include "config.h"

#include "worker/schedule_private.h"

#include <stdlib.h>
#include <string.h>

#include "src/clock.h"
#include "src/failpoint.h"
#include "src/log.h"
#include "worker/metrics.h"

/* How long tiles of a dropped job may take yet before the device gives up what it does. */
#define SLOW_CANCEL_MS 1000

struct mq_active *mq_schedule_find(const struct mq_schedule *s, int64_t job)
{
	struct mq_active *a = s->active;

	while (a && a->id != job)
		a = a->next;
	return a;
}

/* Clears the row. */
static enum mq_status open_active(struct mq_schedule *s, struct mq_job_row *row, struct mq_active **out,
                                  struct mq_error *err)
{
	struct mq_layout layout;
	struct mq_active *a;
	enum mq_status status = mq_active_open(s->c.dir, row->id, row->spec, s->c.shortcuts, true, &a, err);

	if (!status) {
		status = mq_active_agrees(a->job, row, &layout, err);
		if (status)
			mq_active_release(a);
		else
			*out = a;
	}
	mq_job_row_clear(row);
	return status;
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
	status = mq_store_job_get(s->c.store, job, &row, err);
	if (status && status != MQ_ECORRUPT)
		return status;
	if (status)
		why = *err;
	else
		status = open_active(s, &row, &a, &why);
	if (status == MQ_ENOSPC || status == MQ_EIO)
		return mq_outcome_pause(s, job, status, why.text, now_ms, err);
	if (status == MQ_ESYNC) { /* what this turn has learnt of others is committed first */
		s->fatal = mq_fail(&s->fatal_error, MQ_ESYNC, "job %lld: %s", (long long)job, why.text);
		return MQ_OK;
	}
	if (status == MQ_ECORRUPT) {
		mq_log_job(MQ_LOG_ERROR, job, "job %lld is set aside: %s", (long long)job, why.text);
		status = mq_store_job_move(s->c.store, job, MQ_JOB_FAILED, NULL, why.text, mq_clock_wall_ms(), err);
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
	enum mq_status status;

	status = s ? mq_sweeper_open(&s->sweeper, err)
	           : mq_fail(err, MQ_ENOMEM_HOST, "no memory for the scheduler");
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
	mq_sweeper_close(s->sweeper);
	free(s->orphans);
	free(s);
}

enum mq_status mq_schedule_recover(struct mq_schedule *s, int64_t now_ms, struct mq_error *err)
{
	struct mq_recovery r = {0};
	int64_t held = 0;
	enum mq_status status = mq_store_recover(s->c.store, mq_clock_wall_ms(), &r, err);

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
	for (uint64_t i = 0; i < r.halved; i++)
		mq_metrics_split("suspect");
	s->disk_retry_ms = now_ms; /* jobs that an earlier run paused */
	return status;
}

void mq_schedule_assembly_at(struct mq_schedule *s, int64_t at_ms)
{
	if (!s->assembly_retry_ms || at_ms < s->assembly_retry_ms)
		s->assembly_retry_ms = at_ms;
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
	if (status || s->fatal)
		return status;
	if (s->stopping)
		return mq_store_assemblies_end(s->c.store, err);
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
	while (!status && !s->fatal && !s->held && (s->look || s->look_assembly)) {
		bool tiles = s->look;

		status = tiles ? mq_dispatch(s, now_ms, err) : mq_gather(s, now_ms, err);
		if (!tiles && !s->look)
			break;
	}
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
		a->mends = 0;
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
		return mq_fail(err, s->fatal, "%s", s->fatal_error.text);
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
