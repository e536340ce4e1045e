/* gather: jobs whose tiles are all done go to the assembler. Called by the scheduler's turn. */
#include "config.h"

#include "worker/schedule_private.h"

#include <stdlib.h>

#include "src/failpoint.h"
#include "src/log.h"

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

static enum mq_status assemble_job(struct mq_schedule *s, int64_t job, bool alone, int64_t now_ms,
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
	if (!status)
		status = mq_store_assembly_begin(s->c.store, job, alone, err);
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

enum mq_status mq_gather(struct mq_schedule *s, int64_t now_ms, struct mq_error *err)
{
	int64_t ids[MQ_ASSEMBLER_THREADS * 2], suspect;
	size_t n;
	enum mq_status status;

	if (s->assembling >= MQ_ASSEMBLER_THREADS || s->suspects)
		return MQ_OK;
	/* One whose job was paused, and goes on. */
	status = mq_store_assembly_suspect(s->c.store, &suspect, &s->suspects, err);
	if (status || s->suspects) {
		s->look |= s->suspects;
		return status;
	}
	s->look_assembly = false;
	status = mq_store_jobs_in(s->c.store, MQ_JOB_ASSEMBLING, ids, MQ_ASSEMBLER_THREADS * 2, &n, err);
	for (size_t i = 0; !status && i < n && s->assembling < MQ_ASSEMBLER_THREADS; i++)
		status = assemble_job(s, ids[i], false, now_ms, err);
	if (status == MQ_ENOMEM_HOST) {
		mq_log(MQ_LOG_WARN, "%s; trying again in %d ms", err->text, MQ_MEMORY_RETRY_MS);
		mq_schedule_assembly_at(s, now_ms + MQ_MEMORY_RETRY_MS);
		return MQ_OK;
	}
	return status;
}

enum mq_status mq_gather_suspect(struct mq_schedule *s, int64_t now_ms, bool *none, struct mq_error *err)
{
	int64_t job;
	bool found;
	enum mq_status status = mq_store_assembly_suspect(s->c.store, &job, &found, err);

	*none = !status && !found;
	if (status || !found)
		return status;
	status = assemble_job(s, job, true, now_ms, err);
	if (status || s->assembling || s->fatal)
		return status;
	/* The job has failed or been paused instead: on to the next. */
	s->look = true;
	return mq_store_assembly_end(s->c.store, job, err);
}
