/* retain: see retain.h. */
#include "worker/retain.h"

#include "src/clock.h"
#include "src/log.h"

#define LOOK_MS 60000
#define BATCH 64

enum mq_status mq_retain_remove(struct mq_store *store, struct mq_schedule *schedule, int64_t id,
                                struct mq_error *err)
{
	enum mq_status s = mq_store_job_remove(store, id, err);

	if (s)
		return s;
	mq_log(MQ_LOG_INFO, "job %lld is removed", (long long)id);
	mq_schedule_forget(schedule, id);
	return MQ_OK;
}

/* One that is due. A damaged row is nobody's reason to end: it stays, for whoever mends it. */
static enum mq_status remove_due(struct mq_store *store, struct mq_schedule *schedule, int64_t id,
                                 unsigned *removed, struct mq_error *err)
{
	struct mq_error why = {""};
	enum mq_status s = mq_retain_remove(store, schedule, id, &why);

	if (s == MQ_ECORRUPT)
		return MQ_OK;
	if (s)
		return mq_fail(err, s, "%s", why.text);
	++*removed;
	return MQ_OK;
}

static enum mq_status remove_old(struct mq_retain *r, struct mq_store *store,
                                 struct mq_schedule *schedule, bool *more, struct mq_error *err)
{
	struct mq_old which = {.before_ms = mq_clock_wall_ms() - r->keep_for_ms, .everybody = true};
	unsigned removed = 0;
	int64_t ids[BATCH];
	size_t count;
	enum mq_status s = mq_store_jobs_old(store, &which, ids, BATCH, &count, err);

	for (size_t i = 0; !s && i < count; i++)
		s = remove_due(store, schedule, ids[i], &removed, err);
	*more = !s && removed == BATCH;
	return s;
}

/* One page of jobs from the cursor on, which moves; *removed counts on. */
static enum mq_status remove_page(struct mq_retain *r, struct mq_store *store,
                                  struct mq_schedule *schedule, struct mq_old *which, uint64_t *bytes,
                                  unsigned *removed, bool *end, struct mq_error *err)
{
	struct mq_job_row row;
	int64_t ids[BATCH];
	size_t count;
	enum mq_status s = mq_store_jobs_old(store, which, ids, BATCH, &count, err);

	*end = !s && count == 0;
	for (size_t i = 0; !s && i < count && *bytes > r->keep_bytes && *removed < BATCH; i++) {
		uint64_t holds;

		s = mq_store_job_get(store, ids[i], &row, err);
		if (s == MQ_ECORRUPT) { /* the walk ends here: where it stands is not known */
			*end = true;
			return MQ_OK;
		}
		if (s)
			break;
		holds = (uint64_t)(row.output_bytes + row.preview_bytes + row.counts_bytes);
		which->after_ms = row.finished_ms;
		which->after_id = row.id;
		mq_job_row_clear(&row);
		if (!holds) /* it would go for nothing */
			continue;
		s = remove_due(store, schedule, ids[i], removed, err);
		*bytes -= holds < *bytes ? holds : *bytes;
	}
	return s;
}

/* The oldest go until the rest fits. */
static enum mq_status remove_surplus(struct mq_retain *r, struct mq_store *store,
                                     struct mq_schedule *schedule, bool *more, struct mq_error *err)
{
	struct mq_old which = {.before_ms = INT64_MAX, .everybody = true};
	unsigned removed = 0;
	bool end = false;
	uint64_t bytes;
	enum mq_status s = mq_store_jobs_bytes(store, true, 0, &bytes, err);

	while (!s && !end && bytes > r->keep_bytes && removed < BATCH)
		s = remove_page(r, store, schedule, &which, &bytes, &removed, &end, err);
	*more |= !s && removed == BATCH;
	return s;
}

enum mq_status mq_retain_turn(struct mq_retain *r, struct mq_store *store,
                              struct mq_schedule *schedule, int64_t now_ms, struct mq_error *err)
{
	bool more = false;
	enum mq_status s = MQ_OK;

	if ((!r->keep_for_ms && !r->keep_bytes) || now_ms < r->next_ms)
		return MQ_OK;
	if (r->keep_for_ms)
		s = remove_old(r, store, schedule, &more, err);
	if (!s && r->keep_bytes)
		s = remove_surplus(r, store, schedule, &more, err);
	r->next_ms = more ? now_ms : now_ms + LOOK_MS;
	return s;
}

int64_t mq_retain_due(const struct mq_retain *r, int64_t now_ms)
{
	if (!r->keep_for_ms && !r->keep_bytes)
		return -1;
	return r->next_ms > now_ms ? r->next_ms - now_ms : 0;
}
