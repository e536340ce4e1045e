/* report: see report.h. */
#include "worker/report.h"

#include <stdio.h>
#include <stdlib.h>

#include "src/clock.h"
#include "src/message.h"

static json_t *time_or_null(int64_t ms)
{
	char text[32];

	if (!ms)
		return json_null();
	mq_time_format(ms, text);
	return json_string(text);
}

/* Text that somebody has put into the database past the checks is no reason to say nothing at all. */
static json_t *text_or_null(const char *text)
{
	return text ? mq_message_text(text) : json_null();
}

static json_t *number_or_null(int64_t n, int64_t min)
{
	return n >= min ? json_integer((json_int_t)n) : json_null();
}

/* Why it does not go on: its own reason, or that of the whole queue. */
static json_t *reason(const struct mq_job_row *row, const struct mq_schedule *schedule)
{
	if (!row->reason && !mq_job_is_terminal(row->state) && mq_schedule_paused(schedule))
		return json_string("the queue is paused");
	return text_or_null(row->reason);
}

/* The share of the samples that reached the limit, once all are known. */
static json_t *inside(const struct mq_job_row *row, const json_t *settings)
{
	json_int_t n = json_integer_value(json_object_get(settings, "supersample"));

	if (row->inside < 0 || row->strips_done != row->strips_total || n < 1)
		return json_null();
	return json_real((double)row->inside / ((double)row->width * row->height * (double)(n * n)));
}

double mq_report_progress(const struct mq_job_row *row)
{
	double tiles = row->strips_total ? (double)row->strips_done / (double)row->strips_total : 0;

	return row->state == MQ_JOB_DONE ? 1 : 0.99 * tiles;
}

static json_t *output(const struct mq_job_row *row, const struct mq_statedir *dir)
{
	char *path = NULL;
	json_t *o;

	if (row->state != MQ_JOB_DONE)
		return json_null();
	if (asprintf(&path, "%s/pictures/%lld/picture.png", dir->path, (long long)row->id) < 0)
		return NULL;
	o = json_pack("{s:o, s:I, s:o}", "path", mq_message_text(path), "bytes", (json_int_t)row->output_bytes, "sha256",
	              text_or_null(row->output_sha256));
	free(path);
	return o;
}

/* From the first tile until the end, or now; by the clock that the row's times are of, which may be set back. */
static json_t *elapsed(const struct mq_job_row *row)
{
	int64_t end = row->finished_ms ? row->finished_ms : mq_clock_wall_ms();

	if (!row->started_ms)
		return json_null();
	return json_real(end > row->started_ms ? (double)(end - row->started_ms) / 1e3 : 0);
}

json_t *mq_report_job(const struct mq_job_row *row, const struct mq_schedule *schedule,
                      const struct mq_statedir *dir, int64_t now_ms)
{
	double eta = mq_schedule_eta(schedule, row, now_ms);
	json_t *settings = json_loads(row->spec, 0, NULL);

	return json_pack(
	        "{s:I, s:o, s:o, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:f, s:o, s:o, s:o, s:o, "
	        "s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
	        "id", (json_int_t)row->id, "name", text_or_null(row->name), "request_id",
	        text_or_null(row->request_id), "state",
	        mq_job_state_name(row->state), "reason", reason(row, schedule), "priority",
	        (json_int_t)row->priority, "width", (json_int_t)row->width, "height",
	        (json_int_t)row->height, "iterations", (json_int_t)row->iterations, "tiles_total",
	        (json_int_t)row->tiles_total, "tiles_done", (json_int_t)row->tiles_done, "tiles_split",
	        (json_int_t)row->tiles_split, "progress", mq_report_progress(row), "eta_seconds",
	        eta < 0 ? json_null() : json_real(eta), "compute_seconds", row->compute_seconds, "elapsed_seconds",
	        elapsed(row), "created",
	        time_or_null(row->created_ms), "started", time_or_null(row->started_ms), "finished",
	        time_or_null(row->finished_ms), "error", text_or_null(row->error), "output",
	        output(row, dir), "owner", number_or_null(row->owner, 0), "after",
	        number_or_null(row->after, 1), "fetched", time_or_null(row->fetched_ms), "inside",
	        inside(row, settings), "one_colour",
	        row->flat < 0 ? json_null() : json_boolean(row->flat), "settings",
	        settings ? settings : json_null());
}

json_t *mq_report_tile(const struct mq_tile_info *t)
{
	return json_pack("{s:I, s:I, s:I, s:s, s:I, s:I, s:b, s:o, s:I, s:f, s:I}", "id",
	                 (json_int_t)t->row.id, "strip", (json_int_t)t->row.span.first, "strips",
	                 (json_int_t)t->row.span.count, "state", mq_tile_state_name(t->state), "attempts",
	                 (json_int_t)t->row.attempts, "deaths", (json_int_t)t->row.deaths, "suspect",
	                 t->row.suspect, "split_reason", text_or_null(t->split_reason[0] ? t->split_reason : NULL),
	                 "bytes", (json_int_t)t->file_bytes, "compute_seconds", t->compute_seconds,
	                 "inside", (json_int_t)t->inside);
}

json_t *mq_report_attempt(const struct mq_attempt_info *a)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:s, s:b, s:o, s:o, s:o}", "id", (json_int_t)a->id, "tile",
	                 (json_int_t)a->tile, "strip", (json_int_t)a->span.first, "strips",
	                 (json_int_t)a->span.count, "device", a->device, "alone", a->alone, "started",
	                 time_or_null(a->started_ms), "ended", time_or_null(a->ended_ms), "outcome",
	                 text_or_null(a->outcome[0] ? a->outcome : NULL));
}

json_t *mq_report_device(const struct mq_device_report *d)
{
	return json_pack("{s:s, s:s, s:s?, s:I, s:I, s:I, s:I, s:I, s:o, s:b, s:s?}", "name", d->info.name,
	                 "model", d->info.model, "uuid", d->info.uuid[0] ? d->info.uuid : NULL,
	                 "memory_free", (json_int_t)d->info.memory_free, "memory_total",
	                 (json_int_t)d->info.memory_total, "tile_bytes", (json_int_t)d->tile_bytes,
	                 "slots", (json_int_t)d->slots, "threads", (json_int_t)d->info.threads,
	                 "pixels_per_second",
	                 d->pixel_rate > 0 ? json_real(d->pixel_rate) : json_null(), "busy", d->busy,
	                 "error", d->failure);
}
