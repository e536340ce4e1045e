/* active: see active.h. */
#include "config.h"

#include "worker/active.h"

#include <stdlib.h>
#include <unistd.h>

#include "kernels/backend.h"
#include "src/failpoint.h"
#include "src/image/palette.h"

void mq_active_layout(const struct mq_job *job, struct mq_layout *out)
{
	mq_layout_init(out, job->width, job->height, mq_job_channels(job), job->keep_counts);
}

enum mq_status mq_active_agrees(const struct mq_job *job, const struct mq_job_row *row,
                                struct mq_layout *out, struct mq_error *err)
{
	mq_active_layout(job, out);
	if (job->width != row->width || job->height != row->height)
		return mq_fail(err, MQ_ECORRUPT,
		               "the stored settings of job %lld are of %u x %u pixels, its row is of %u x %u",
		               (long long)row->id, job->width, job->height, row->width, row->height);
	if (out->strips != row->strips_total)
		return mq_fail(err, MQ_ECORRUPT,
		               "the stored settings of job %lld make %u strips, its row has %llu",
		               (long long)row->id, out->strips, (unsigned long long)row->strips_total);
	return MQ_OK;
}

static enum mq_status active_parse(struct mq_active *a, const char *spec, struct mq_error *err)
{
	struct mq_error why;
	json_t *object = json_loads(spec, JSON_REJECT_DUPLICATES, NULL);
	enum mq_status s;

	if (!object)
		return mq_fail(err, MQ_ECORRUPT, "the stored settings of job %lld are no JSON", (long long)a->id);
	s = mq_job_from_json(object, &a->job, NULL, &why);
	json_decref(object);
	if (s)
		return mq_fail(err, s == MQ_ENOMEM_HOST ? s : MQ_ECORRUPT,
		               "the stored settings of job %lld are no job: %s", (long long)a->id, why.text);
	return MQ_OK;
}

/* Strips mirror strips only when their grid is symmetric too. */
static bool is_mirrored(const struct mq_active *a)
{
	return a->layout.strips > 1 && a->layout.height % a->layout.strip_rows == 0 &&
	       mq_grid_is_mirrored(&a->scene.grid, (uint64_t)a->scene.height * a->scene.supersample);
}

enum mq_status mq_active_open(struct mq_statedir *dir, int64_t id, const char *spec, bool shortcuts,
                              bool work, struct mq_active **out, struct mq_error *err)
{
	struct mq_active *a = mq_failpoint("active-alloc") ? NULL : calloc(1, sizeof *a);
	enum mq_status s;

	if (!a)
		return mq_fail(err, MQ_ENOMEM_HOST, "host memory: asked for %zu bytes for a job", sizeof *a);
	a->id = id;
	a->work_fd = -1;
	atomic_init(&a->holders, 1);
	s = active_parse(a, spec, err);
	if (s)
		goto out;
	mq_active_layout(a->job, &a->layout);
	s = mq_job_grid(a->job, &a->scene.grid, err);
	if (!s)
		s = mq_palette_shade(a->job, &a->shade, err);
	if (s)
		goto out;
	a->scene.width = a->job->width;
	a->scene.height = a->job->height;
	a->scene.supersample = a->job->supersample;
	a->scene.limit = a->job->iterations;
	a->scene.keep_counts = a->job->keep_counts;
	a->scene.shortcuts = shortcuts;
	a->scene.shade = &a->shade;
	a->mirrored = shortcuts && is_mirrored(a);
	a->text = mq_job_picture_text(a->job);
	if (!a->text) {
		s = mq_fail(err, MQ_ENOMEM_HOST, "no memory for the text of job %lld", (long long)id);
		goto out;
	}
	/* Of few tiles little is lost with the folder; of many it is worth a sync. */
	if (work)
		s = mq_statedir_job(dir->work_fd, id,
		                    a->layout.tiles > MQ_TILES_MIN ? MQ_MAKE_DURABLE : MQ_MAKE, &a->work_fd,
		                    err);
out:
	if (s)
		mq_active_release(a);
	else
		*out = a;
	return s;
}

struct mq_active *mq_active_hold(struct mq_active *a)
{
	atomic_fetch_add_explicit(&a->holders, 1, memory_order_relaxed);
	return a;
}

void mq_active_release(struct mq_active *a)
{
	if (!a || atomic_fetch_sub_explicit(&a->holders, 1, memory_order_acq_rel) != 1)
		return;
	if (a->work_fd >= 0)
		close(a->work_fd);
	mq_job_free(a->job);
	free(a->text);
	free(a);
}
