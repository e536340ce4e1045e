/* waiting: asks, because asking is what survives restarts; events say when, once a wait is no short one.
 * Called by wait, submit --wait and render. */
#include "client/waiting.h"

#include <stdlib.h>
#include <string.h>

#include "client/events.h"
#include "client/interrupt.h"
#include "client/progress.h"
#include "client/rows.h"
#include "client/say.h"
#include "client/table.h"
#include "src/bytes.h"
#include "src/clock.h"
#include "src/state.h"

#define POLL_MIN_MS 20
#define POLL_MAX_MS 500
#define SUBSCRIBE_MS 150 /* from this interval on; before, asking is cheaper */
#define LOOK_MS 3000     /* with events: for those that were lost */
#define RETRY_MS 200
#define LARGE_SIDE 20000

/* Fresh rows of the jobs of *rows that had not ended (NULL: of all). */
static enum mq_status refresh(struct mq_client *client, const struct mq_waiting *w, json_t **rows,
			      struct mq_error *err)
{
	int64_t *open = malloc(w->count * sizeof(*open));
	json_t *fresh = NULL;
	size_t count = 0, at = 0;
	enum mq_status status;

	if (!open)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for %zu jobs", w->count);
	for (size_t i = 0; i < w->count; i++)
		if (!*rows || !mq_job_is_terminal(mq_row_state(json_array_get(*rows, i))))
			open[count++] = w->ids[i];
	status = mq_rows_fetch(client, open, count, &fresh, NULL, err);
	if (status == MQ_OK && !*rows) {
		*rows = fresh;
		fresh = NULL;
	} else if (status == MQ_OK) {
		for (size_t i = 0; i < w->count; i++)
			if (!mq_job_is_terminal(mq_row_state(json_array_get(*rows, i))))
				json_array_set(*rows, i, json_array_get(fresh, at++));
	}
	json_decref(fresh);
	free(open);
	return status;
}

static const json_t *first_open(const json_t *rows)
{
	for (size_t i = 0; i < json_array_size(rows); i++)
		if (!mq_job_is_terminal(mq_row_state(json_array_get(rows, i))))
			return json_array_get(rows, i);
	return NULL;
}

static enum mq_status fail_timeout(const json_t *rows, struct mq_error *err)
{
	const json_t *row = rows ? first_open(rows) : NULL;

	if (!row)
		return mq_fail(err, MQ_ETIMEOUT,
			       "the time ran out, and the worker does not answer");
	return mq_fail(err, MQ_ETIMEOUT, "the time ran out: job %lld is %s (%.0f %%)",
		       (long long)mq_row_id(row), mq_job_state_name(mq_row_state(row)),
		       100 * mq_row_number(row, "progress", 0));
}

/* A failed try at `now`: MQ_OK to go on. */
static enum mq_status on_lost(int64_t *lost_ms, enum mq_status status, struct mq_error *why)
{
	int64_t now = mq_clock_ms();

	if (!*lost_ms) {
		*lost_ms = now;
		mq_say("%s; trying again for %d s", why->text, MQ_RECONNECT_MS / 1000);
	}
	if (now - *lost_ms >= MQ_RECONNECT_MS)
		return mq_fail(why, status,
			       "the worker has been away for %d s; the jobs are safe with it: "
			       "start it again and wait again",
			       MQ_RECONNECT_MS / 1000);
	mq_interrupt_sleep(RETRY_MS);
	return MQ_OK;
}

/* When to ask again. */
struct pace {
	struct mq_subscription *events; /* NULL: by the clock alone */
	unsigned interval;
	int64_t subscribe_ms; /* no sooner than this */
};

/* Asking follows at once: what happened until now is in the answer. */
static enum mq_status pace_subscribe(struct pace *p, struct mq_client *client,
				     const struct mq_waiting *w, struct mq_error *err)
{
	if (p->events || p->interval < SUBSCRIBE_MS || mq_clock_ms() < p->subscribe_ms)
		return MQ_OK;
	p->subscribe_ms = mq_clock_ms() + LOOK_MS;
	return mq_subscribe(client, w->ids, w->count, &p->events, err);
}

static void pace_lost(struct pace *p)
{
	mq_unsubscribe(p->events);
	*p = (struct pace){ .interval = POLL_MIN_MS };
}

/* Progress is taken as it was heard. True: a job seems to have ended, or to be gone, which is to be asked. */
static bool hear(struct pace *p, const struct mq_waiting *w, json_t *rows)
{
	bool ended = false;
	struct mq_news news;

	while (!ended && mq_subscription_take(p->events, &news)) {
		for (size_t i = 0; i < w->count && news.kind != MQ_NEWS_QUEUE; i++) {
			if (w->ids[i] != news.id ||
			    mq_job_is_terminal(mq_row_state(json_array_get(rows, i))))
				continue;
			ended = !news.row || mq_job_is_terminal(mq_row_state(news.row));
			if (!ended)
				(void)json_array_set(rows, i, news.row); /* else as it was */
		}
		json_decref(news.row);
	}
	return ended;
}

/* Until it is time to ask again, but not past until_ms. */
static void pace_rest(struct pace *p, const struct mq_waiting *w, json_t *rows,
		      struct mq_progress *progress)
{
	/* Twice soon: an event between the answer and the worker's taking in a subscription is missed. */
	int64_t next = mq_clock_ms() + (p->events && p->interval == POLL_MAX_MS ? LOOK_MS : p->interval);

	if (w->until_ms && w->until_ms < next)
		next = w->until_ms;
	p->interval += p->interval / 2;
	if (p->interval > POLL_MAX_MS)
		p->interval = POLL_MAX_MS;
	while (mq_clock_ms() < next && !mq_interrupted()) {
		mq_subscription_sleep(p->events, next, -1);
		if (p->events && hear(p, w, rows))
			return;
		if (p->events && mq_subscription_ended(p->events)) {
			pace_lost(p);
			return;
		}
		mq_progress_show(progress, rows);
	}
}

enum mq_status mq_wait_jobs(struct mq_client *client, const struct mq_waiting *waiting,
			    json_t **rows, struct mq_error *err)
{
	struct mq_progress progress;
	struct pace pace = { .interval = POLL_MIN_MS };
	struct mq_error why = { "" };
	enum mq_status status = MQ_OK;
	int64_t lost_ms = 0;
	json_t *now = NULL;

	mq_client_until(client, waiting->until_ms);
	mq_progress_begin(&progress, waiting->quiet);
	while (status == MQ_OK) {
		if (waiting->watch && (status = waiting->watch(waiting->user, &why)) != MQ_OK)
			break;
		status = pace_subscribe(&pace, client, waiting, &why);
		if (status == MQ_OK)
			status = refresh(client, waiting, &now, &why);
		if (status == MQ_OK) {
			if (lost_ms)
				mq_say("the worker is back");
			lost_ms = 0;
			if (!first_open(now))
				break;
			mq_progress_show(&progress, now);
		}
		if ((status == MQ_OK || mq_client_lost(status)) && waiting->until_ms &&
		    mq_clock_ms() >= waiting->until_ms) {
			status = fail_timeout(now, &why);
		} else if (mq_client_lost(status)) {
			pace_lost(&pace);
			status = on_lost(&lost_ms, status, &why);
		} else if (status == MQ_OK) {
			pace_rest(&pace, waiting, now, &progress);
		}
	}
	mq_unsubscribe(pace.events);
	mq_progress_end(&progress);
	mq_client_until(client, 0);
	if (status == MQ_OK)
		*rows = now;
	else
		json_decref(now);
	return status == MQ_OK ? MQ_OK : mq_fail(err, status, "%s", why.text);
}

/* A picture that large opens in no ordinary viewer. */
static void say_how_to_view(int64_t id)
{
	mq_tell("job %lld is too large for most viewers; to look at it:", (long long)id);
	mq_tell("  mandelq fetch %lld --preview -o small.png         at most 2048 pixels a side",
	       (long long)id);
	mq_tell("  mandelq fetch %lld --region=X,Y,W,H -o part.png   some pixels of it",
	       (long long)id);
	mq_tell("  vips dzsave PICTURE.png tiles                     tiles for a web page");
}

static void say_done(const json_t *row)
{
	double width = mq_row_number(row, "width", 0), height = mq_row_number(row, "height", 0);
	double bytes = mq_row_number(json_object_get(row, "output"), "bytes", -1);
	double seconds = mq_row_number(row, "compute_seconds", -1);
	char size[32], time[32], hint[160];

	mq_tell("job %lld done: %.0f x %.0f pixels%s%s%s%s", (long long)mq_row_id(row), width,
	       height, bytes >= 0 ? ", " : "", bytes >= 0 ? mq_bytes_text(bytes, size) : "",
	       seconds >= 0 ? ", computed in " : "",
	       seconds >= 0 ? mq_say_seconds(seconds, time) : "");
	if (mq_table_hint(row, hint)[0])
		mq_tell("job %lld: %s", (long long)mq_row_id(row), hint);
	if ((width > LARGE_SIDE || height > LARGE_SIDE) && mq_say_terminal(NULL))
		say_how_to_view(mq_row_id(row));
}

enum mq_status mq_wait_report(const json_t *rows, bool quiet, struct mq_error *err)
{
	enum mq_status status = MQ_OK;

	for (size_t i = 0; i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);
		const char *why = mq_row_text(row, "error", mq_row_text(row, "reason", ""));
		enum mq_job_state state = mq_row_state(row);

		if (state == MQ_JOB_DONE) {
			if (!quiet)
				say_done(row);
			continue;
		}
		mq_say("job %lld %s%s%s", (long long)mq_row_id(row), mq_job_state_name(state),
		       why[0] ? ": " : "", why);
		status = MQ_ESTATE;
	}
	return status == MQ_OK ? MQ_OK : mq_fail(err, status, "%s", "");
}
