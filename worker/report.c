/* report: see report.h. */
#include "worker/report.h"

#include <stdio.h>
#include <stdlib.h>

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
	json_t *j = text ? json_string(text) : json_null();

	return j ? j : json_string("(damaged: not UTF-8)");
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
	o = json_pack("{s:s, s:I, s:o}", "path", path, "bytes", (json_int_t)row->output_bytes, "sha256",
	              text_or_null(row->output_sha256));
	free(path);
	return o;
}

json_t *mq_report_job(const struct mq_job_row *row, const struct mq_schedule *schedule,
                      const struct mq_statedir *dir, int64_t now_ms)
{
	double eta = mq_schedule_eta(schedule, row, now_ms);
	json_t *settings = json_loads(row->spec, 0, NULL);

	return json_pack(
	        "{s:I, s:o, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:f, s:o, s:o, s:o, s:o, "
	        "s:o, s:o}",
	        "id", (json_int_t)row->id, "name", text_or_null(row->name), "state",
	        mq_job_state_name(row->state), "reason", text_or_null(row->reason), "priority",
	        (json_int_t)row->priority, "width", (json_int_t)row->width, "height",
	        (json_int_t)row->height, "iterations", (json_int_t)row->iterations, "tiles_total",
	        (json_int_t)row->tiles_total, "tiles_done", (json_int_t)row->tiles_done, "tiles_split",
	        (json_int_t)row->tiles_split, "progress", mq_report_progress(row), "eta_seconds",
	        eta < 0 ? json_null() : json_real(eta), "compute_seconds", row->compute_seconds, "created",
	        time_or_null(row->created_ms), "started", time_or_null(row->started_ms), "finished",
	        time_or_null(row->finished_ms), "error", text_or_null(row->error), "output",
	        output(row, dir), "settings", settings ? settings : json_null());
}

json_t *mq_report_device(const struct mq_device_report *d)
{
	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:b}", "name", d->info.name, "model",
	                 d->info.model, "memory_free", (json_int_t)d->info.memory_free, "memory_total",
	                 (json_int_t)d->info.memory_total, "tile_bytes", (json_int_t)d->tile_bytes,
	                 "threads", (json_int_t)d->info.threads, "busy", d->busy);
}
