/* outcome: what becomes of a tile's attempt and of an assembly, good or bad. */
#include "worker/schedule_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/clock.h"
#include "src/image/tilefile.h"
#include "src/log.h"
#include "worker/metrics.h"
#include "worker/space.h"

#define ATTEMPTS_MAX 5          /* failures of a tile that nothing explains */
#define ASSEMBLY_TRIES_MAX 3
#define ASSEMBLY_MEMORY_TRIES 6 /* 1 + 2 + ... + 32 s */
#define MENDS_MAX 5             /* assemblies in a row that find damaged tiles */
#define DISK_RETRY_MS 1000
#define DISK_RETRY_MAX_MS 60000
/* How the reasons of jobs that wait for the disk begin: that is how they are known again after a start. */
#define DISK_FULL "disk full: "
#define DISK_ERROR "disk error: "

static enum mq_status fail_job(struct mq_schedule *s, int64_t job, const char *why, struct mq_error *err)
{
	enum mq_status status = mq_store_job_move(s->c.store, job, MQ_JOB_FAILED, NULL, why,
	                                          mq_clock_wall_ms(), err);

	if (status)
		return status;
	mq_log_job(MQ_LOG_ERROR, job, "job %lld failed: %s", (long long)job, why);
	mq_tidy_ended(s, job);
	return MQ_OK;
}

/* When to try the disk again: soon at first, then ever less often. */
static void disk_later(struct mq_schedule *s, int64_t now_ms)
{
	if (s->disk_wait_ms < DISK_RETRY_MS)
		s->disk_wait_ms = DISK_RETRY_MS;
	s->disk_retry_ms = now_ms + s->disk_wait_ms;
	s->disk_wait_ms = 2 * s->disk_wait_ms < DISK_RETRY_MAX_MS ? 2 * s->disk_wait_ms : DISK_RETRY_MAX_MS;
}

enum mq_status mq_outcome_pause(struct mq_schedule *s, int64_t job, enum mq_status fault, const char *why,
                                int64_t now_ms, struct mq_error *err)
{
	char reason[600];
	struct mq_active *a;
	enum mq_status status;

	snprintf(reason, sizeof reason, "%s%s", fault == MQ_ENOSPC ? DISK_FULL : DISK_ERROR, why);
	status = mq_store_job_move(s->c.store, job, MQ_JOB_PAUSED, reason, NULL, mq_clock_wall_ms(), err);
	if (status)
		return status == MQ_ESTATE ? MQ_OK : status; /* it has ended meanwhile */
	if (!s->disk_retry_ms) {
		if (now_ms - s->disk_paused_ms > 2 * DISK_RETRY_MAX_MS)
			s->disk_wait_ms = 0;
		disk_later(s, now_ms);
	}
	s->disk_paused_ms = now_ms;
	a = mq_schedule_find(s, job);
	if (a)
		a->disk_paused = true;
	if (!a || a->disk_told_ms != s->disk_retry_ms) /* not for each of its tiles */
		mq_log_job(MQ_LOG_WARN, job, "job %lld is paused: %s", (long long)job, reason);
	if (a)
		a->disk_told_ms = s->disk_retry_ms;
	return MQ_OK;
}

/* A job has something on the disk. Only one that was paused shows that the disk is better. */
static void disk_good(struct mq_schedule *s, struct mq_active *a)
{
	if (a->disk_paused)
		s->disk_wait_ms = 0;
	a->disk_paused = false;
}

/* One tile of a task that went well. */
static enum mq_status tile_done(struct mq_schedule *s, struct mq_active *a,
                                const struct mq_task_tile *tile, double seconds, struct mq_error *err)
{
	bool complete = false;
	enum mq_status status;
	char name[64];

	status = mq_store_tile_done(s->c.store, tile->attempt, &tile->file, seconds, mq_clock_wall_ms(),
	                            &complete, err);
	mq_metrics_attempt(status == MQ_ESTALE ? "stale" : "done");
	if (status == MQ_ESTALE) {
		mq_tilefile_name(name, tile->span, tile->attempt);
		(void)unlinkat(a->work_fd, name, 0); /* goes with the job's folder otherwise */
		return MQ_OK;
	}
	if (status)
		return status;
	disk_good(s, a);
	a->strips_since += tile->span.count;
	if (complete) {
		mq_log_job(MQ_LOG_INFO, a->id, "job %lld: all tiles are done", (long long)a->id);
		s->look_assembly = true;
	}
	return MQ_OK;
}

/* Pixels a second while the device works. */
static void note_rate(struct mq_unit *u, uint64_t pixels, double seconds)
{
	if (seconds > 0) {
		double rate = (double)pixels / seconds;

		u->pixel_rate = u->pixel_rate > 0 ? 0.8 * u->pixel_rate + 0.2 * rate : rate;
	}
}

static enum mq_status task_done(struct mq_schedule *s, struct mq_unit *u, struct mq_task *t,
                                struct mq_error *err)
{
	struct mq_active *a = t->job;
	unsigned threads = u->info.threads ? u->info.threads : 1;
	/* Time on the device, not in its queue: core-seconds over cores for a CPU. */
	double each = t->seconds / threads / t->tile[0].span.count;
	enum mq_status status = MQ_OK;

	mq_memory_good(s, u);
	a->strip_seconds = a->strip_seconds > 0 ? 0.7 * a->strip_seconds + 0.3 * each : each;
	if (!a->first_ms)
		a->first_ms = t->begun_ms;
	for (unsigned k = 0; !status && k < t->tiles; k++) {
		uint64_t pixels = (uint64_t)mq_span_rows(&a->layout, t->tile[k].span) * a->layout.width;

		t->tile[k].file.inside = t->inside; /* a mirror image has as many */
		mq_metrics_rendered(u->info.name, pixels, t->tile[k].file.bytes, k ? 0 : t->seconds);
		note_rate(u, pixels, k ? 0 : t->seconds / threads);
		status = tile_done(s, a, &t->tile[k], k ? 0 : t->seconds, err);
	}
	return status;
}

static struct mq_log_about about_tile(const struct mq_task *t, const struct mq_unit *u, unsigned k)
{
	return (struct mq_log_about){t->job->id, t->tile[k].tile, t->tile[k].attempt, u->info.name};
}

/* Why a tile goes back to the queue, for its attempt's row. */
static const char *outcome_name(enum mq_status status)
{
	switch (status) {
	case MQ_ENOMEM_HOST:
	case MQ_ENOMEM_DEVICE:
		return "oom";
	case MQ_ECANCELLED:
		return "cancelled";
	case MQ_ENOSPC:
	case MQ_EIO:
		return "io";
	default:
		return "error";
	}
}

/* Its tiles go back to the queue. *stale: none of them is wanted any more. */
static enum mq_status tiles_retry(struct mq_schedule *s, const struct mq_unit *u, const struct mq_task *t,
                                  bool *stale, struct mq_error *err)
{
	enum mq_status status = MQ_OK;

	*stale = true;
	for (unsigned k = 0; !status && k < t->tiles; k++) {
		mq_metrics_attempt(outcome_name(t->status));
		mq_log_about(MQ_LOG_DEBUG, about_tile(t, u, k), "job %lld: tile %lld goes back to the queue: %s",
		             (long long)t->job->id, (long long)t->tile[k].tile, outcome_name(t->status));
		status = mq_store_tile_retry(s->c.store, t->tile[k].attempt, outcome_name(t->status),
		                             mq_clock_wall_ms(), err);
		if (!status)
			*stale = false;
		else if (status == MQ_ESTALE)
			status = MQ_OK;
	}
	return status;
}

/* A failure that nothing explains. */
static enum mq_status task_error(struct mq_schedule *s, const struct mq_unit *u, const struct mq_task *t,
                                 struct mq_error *err)
{
	struct mq_span span = t->tile[0].span;
	char why[600];

	snprintf(why, sizeof why, "strips %u to %u could not be rendered: %s", span.first,
	         span.first + span.count - 1, t->error.text);
	mq_log_about(MQ_LOG_ERROR, about_tile(t, u, 0), "job %lld: %s", (long long)t->job->id, why);
	return ++t->job->failures < ATTEMPTS_MAX ? MQ_OK : fail_job(s, t->job->id, why, err);
}

void mq_outcome_broken(struct mq_schedule *s, struct mq_unit *u, const struct mq_error *why)
{
	unsigned left = 0;

	if (!u->failed)
		mq_log_device(MQ_LOG_ERROR, u->info.name,
		              "%s is set aside until the next start: %s", u->info.name, why->text);
	u->failed = true;
	u->failure = *why;
	u->bytes = u->slots = 0;
	for (unsigned i = 0; i < s->count; i++)
		left += !s->unit[i].failed;
	if (left)
		return;
	s->fatal = mq_fail(&s->fatal_error, MQ_EDEVICE, "no device is left: %s: %s", u->info.name, why->text);
}

static enum mq_status task_failed(struct mq_schedule *s, struct mq_unit *u, struct mq_task *t,
                                  int64_t now_ms, struct mq_error *err)
{
	const struct mq_layout *l = &t->job->layout;
	struct mq_span span = t->tile[0].span;
	bool stale;
	enum mq_status status;

	if (t->status == MQ_ESYNC) {
		/* Its attempt stays open: what the disk does not keep five times, alone, fails its job. */
		s->fatal = mq_fail(&s->fatal_error, MQ_ESYNC, "%s: %s", u->info.name, t->error.text);
		return MQ_OK;
	}
	status = tiles_retry(s, u, t, &stale, err);
	if (status || stale)
		return status;
	switch (t->status) {
	case MQ_ENOMEM_HOST:
	case MQ_ENOMEM_DEVICE:
		u->floor_bytes = mq_span_bytes(l, (struct mq_span){span.first, 1});
		mq_memory_short(u, mq_span_bytes(l, span), now_ms, &t->error);
		return MQ_OK;
	case MQ_ECANCELLED:
		return MQ_OK;
	case MQ_ENOSPC:
	case MQ_EIO:
		return mq_outcome_pause(s, t->job->id, t->status, t->error.text, now_ms, err);
	case MQ_EDEVICE:
		mq_outcome_broken(s, u, &t->error);
		return MQ_OK;
	default:
		return task_error(s, u, t, err);
	}
}

enum mq_status mq_outcome_task(struct mq_schedule *s, struct mq_task *t, int64_t now_ms,
                               struct mq_error *err)
{
	struct mq_unit *u = NULL;
	enum mq_status status;

	for (unsigned i = 0; i < s->count; i++)
		if (s->unit[i].device == t->device)
			u = &s->unit[i];
	if (!u)
		return mq_fail(err, MQ_EINTERNAL, "a task of an unknown device");
	u->in_flight--;
	u->idle_ms = now_ms;
	s->in_flight--;
	t->job->in_flight--;
	s->look = true;
	status = t->status ? task_failed(s, u, t, now_ms, err) : task_done(s, u, t, err);
	mq_active_release(t->job);
	free(t);
	return status;
}

static enum mq_status assembly_bad_tiles(struct mq_schedule *s, struct mq_assembly *a, struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	char why[600];

	if (++a->job->mends >= MENDS_MAX) {
		snprintf(why, sizeof why, "tiles were found damaged %d times in a row: %s", MENDS_MAX,
		         a->error.text);
		return fail_job(s, a->job->id, why, err);
	}
	mq_log_job(MQ_LOG_WARN, a->job->id,
	           "job %lld: %zu damaged tiles are rendered again: %s", (long long)a->job->id,
	       a->bad, a->error.text);
	for (size_t i = 0; !status && i < a->count; i++)
		if (a->is_bad[i])
			status = mq_store_tile_redo(s->c.store, a->tiles[i].tile, a->error.text,
			                            mq_clock_wall_ms(), err);
	return status == MQ_ESTALE ? MQ_OK : status;
}

static enum mq_status assembly_failed(struct mq_schedule *s, struct mq_assembly *a, int64_t now_ms,
                                      struct mq_error *err)
{
	struct mq_active *job = a->job;
	char why[600];

	if (atomic_load(&job->dropped) || a->status == MQ_ECANCELLED)
		return MQ_OK;
	if (a->status == MQ_ECORRUPT && a->bad)
		return assembly_bad_tiles(s, a, err);
	if (a->status == MQ_ENOSPC || a->status == MQ_EIO)
		return mq_outcome_pause(s, job->id, a->status, a->error.text, now_ms, err);
	mq_log_job(MQ_LOG_ERROR, job->id, "job %lld: assembly: %s", (long long)job->id, a->error.text);
	if (a->status == MQ_ENOMEM_HOST && job->assembly_tries < ASSEMBLY_MEMORY_TRIES) {
		job->assembly_after_ms = now_ms + (1000ll << job->assembly_tries++);
		mq_schedule_assembly_at(s, job->assembly_after_ms);
		return MQ_OK;
	}
	if (++job->assembly_tries < ASSEMBLY_TRIES_MAX) {
		s->look_assembly = true;
		return MQ_OK;
	}
	snprintf(why, sizeof why, "the picture could not be assembled: %s", a->error.text);
	return fail_job(s, job->id, why, err);
}

enum mq_status mq_outcome_assembly(struct mq_schedule *s, struct mq_assembly *a, int64_t now_ms,
                                   struct mq_error *err)
{
	enum mq_status status = MQ_OK;

	if (a->status == MQ_ESYNC) /* stays open, as a tile's attempt does */
		s->fatal = mq_fail(&s->fatal_error, MQ_ESYNC, "job %lld: %s", (long long)a->job->id, a->error.text);
	else
		status = mq_store_assembly_end(s->c.store, a->job->id, err);
	s->assembling--;
	a->job->assembling = false;
	s->look = s->look_assembly = true;
	if (!status && a->status && a->status != MQ_ESYNC) {
		status = assembly_failed(s, a, now_ms, err);
	} else if (!status && !a->status) {
		status = mq_store_job_done(s->c.store, a->job->id, &a->output, mq_clock_wall_ms(), err);
		if (status == MQ_ESTATE || status == MQ_ENOENT) { /* cancelled at the last moment, even removed */
			status = MQ_OK;
		} else if (!status) {
			disk_good(s, a->job);
			mq_log_job(MQ_LOG_INFO, a->job->id, "job %lld is done: %lld bytes", (long long)a->job->id,
			       (long long)a->output.picture_bytes);
			mq_tidy_ended(s, a->job->id);
		}
	}
	mq_assembly_free(a);
	return status;
}

/* The jobs that were paused for this reason go on: all of them now, for one that is paused again before
 * its turn must wait as long as the others. */
static enum mq_status resume(struct mq_schedule *s, const char *reason, struct mq_error *err)
{
	int64_t ids[64];
	size_t n = 64;
	enum mq_status status = MQ_OK;

	while (!status && n == 64) {
		status = mq_store_jobs_paused(s->c.store, reason, ids, 64, &n, err);
		for (size_t i = 0; !status && i < n; i++) {
			status = mq_store_job_resume(s->c.store, ids[i], mq_clock_wall_ms(), err);
			if (!status)
				mq_log_job(MQ_LOG_INFO, ids[i], "job %lld goes on: the disk is tried again",
				           (long long)ids[i]);
		}
	}
	return status;
}

enum mq_status mq_outcome_disk_retry(struct mq_schedule *s, int64_t now_ms, struct mq_error *err)
{
	bool room;
	struct mq_error why;
	enum mq_status status = resume(s, DISK_ERROR, err);

	if (status)
		return status;
	if (mq_space_some(s->c.dir, &room, &why)) {
		mq_log(MQ_LOG_WARN, "%s", why.text);
		room = false;
	}
	s->disk_retry_ms = 0;
	if (room)
		status = resume(s, DISK_FULL, err);
	else
		disk_later(s, now_ms);
	s->look = s->look_assembly = true;
	return status;
}
