/* cmd_watch: mandelq watch: the table of jobs, drawn again as they move. On a terminal in place; elsewhere a
 * line when a job's state changes, a job is removed, or the queue is paused. With ids it ends when all of
 * them have; else a signal ends it.
 *
 * The worker's events say when to look. What they tell of progress, and of jobs that are gone for good, is
 * shown as it is; a state is only ever shown as the worker answered it, so that no late event can take one
 * back. */
#include "config.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "client/command.h"
#include "client/events.h"
#include "client/interrupt.h"
#include "client/rows.h"
#include "client/say.h"
#include "client/table.h"
#include "client/waiting.h"
#include "src/clock.h"

#define POLL_MS 500    /* between looks without events */
#define LOOK_MS 3000   /* with them: for those that were lost */
#define SOON_MS 100    /* at least, between two looks and between two drawings */
#define HEAR_MAX 1000  /* events at a time */
#define ENDED_MAX 1000 /* jobs that ended while we looked; older ones leave the table */
#define OTHERS_MAX 10000

struct watch {
	struct mq_client *client;
	int64_t *ids;
	size_t count;
	bool by_id; /* these ids; else those that the filter lets through */
	struct mq_rows_filter filter;
	const char *none; /* what to say when there is no job */
	bool terminal;
	json_t *rows;  /* of the last look */
	json_t *ended; /* rows of jobs that ended while we looked */
	bool paused;
	int64_t lost_ms;
	struct mq_subscription *events; /* NULL: ask again and again */
	json_t *others; /* of jobs that are not in the table, the states that were heard */
	int64_t subscribe_ms, look_ms, soon_ms, drawn_ms; /* no sooner than these; the last drawing */
	bool stale; /* the table is to be drawn again */
	int resized; /* readable when the terminal has another size */
};

/* Its place, or the number of rows. */
static size_t place_of(const json_t *rows, int64_t id)
{
	size_t i = 0, count = json_array_size(rows);

	while (i < count && mq_row_id(json_array_get(rows, i)) != id)
		i++;
	return i;
}

static const json_t *find(const json_t *rows, int64_t id)
{
	return json_array_get(rows, place_of(rows, id));
}

static void tell_removed(const struct watch *w, int64_t id)
{
	if (!w->terminal)
		printf("job %lld removed\n", (long long)id);
}

/* Jobs of the last look that are in this one no more have ended: their last rows are kept. They leave
 * the last look's, so that none is told twice should this one fail. */
static enum mq_status keep_ended(struct watch *w, const json_t *now, struct mq_error *err)
{
	for (size_t i = 0; i < json_array_size(w->rows);) {
		int64_t id = mq_row_id(json_array_get(w->rows, i));
		json_t *row = NULL;
		enum mq_status status;

		if (find(now, id)) {
			i++;
			continue;
		}
		status = mq_rows_fetch(w->client, &id, 1, &row, NULL, err);
		if (status != MQ_OK && status != MQ_ENOENT)
			return status;
		json_array_remove(w->rows, i);
		if (status == MQ_ENOENT) {
			tell_removed(w, id);
			continue;
		}
		/* One that has only left the filter is not watched any more. */
		if (mq_job_is_terminal(mq_row_state(json_array_get(row, 0))) &&
		    json_array_append(w->ended, json_array_get(row, 0)) == 0 &&
		    json_array_size(w->ended) > ENDED_MAX)
			json_array_remove(w->ended, 0);
		json_decref(row);
	}
	return MQ_OK;
}

/* Once one of the ids is no job any more: it is watched no longer. */
static enum mq_status look_at_each(struct watch *w, json_t **rows, struct mq_error *err)
{
	json_t *all = json_array();
	enum mq_status status = all ? MQ_OK : mq_fail(err, MQ_ENOMEM_HOST, "no memory for a list of jobs");

	for (size_t i = 0; status == MQ_OK && i < w->count;) {
		json_t *row = NULL;

		status = mq_rows_fetch(w->client, &w->ids[i], 1, &row, NULL, err);
		if (status == MQ_ENOENT) {
			tell_removed(w, w->ids[i]);
			memmove(&w->ids[i], &w->ids[i + 1], (--w->count - i) * sizeof(*w->ids));
			status = MQ_OK;
		} else if (status == MQ_OK && json_array_append(all, json_array_get(row, 0)) != 0) {
			status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for a list of jobs");
		} else if (status == MQ_OK) {
			i++;
		}
		json_decref(row);
	}
	if (status == MQ_OK)
		*rows = all;
	else
		json_decref(all);
	return status;
}

static enum mq_status look(struct watch *w, struct mq_error *err)
{
	struct mq_rows_list list = { 0 };
	enum mq_status status;

	if (w->by_id) {
		status = mq_rows_fetch(w->client, w->ids, w->count, &list.rows, NULL, err);
		if (status == MQ_ENOENT && json_is_array(w->rows))
			status = look_at_each(w, &list.rows, err);
	} else {
		status = mq_rows_list(w->client, &w->filter, &list, err);
		if (status == MQ_OK && json_is_array(w->rows))
			status = keep_ended(w, list.rows, err);
	}
	if (status == MQ_OK) {
		json_decref(w->rows);
		w->rows = json_incref(list.rows);
		w->paused = list.paused;
	}
	mq_rows_list_clear(&list);
	return status;
}

/* --- showing --- */

static void draw(const struct watch *w)
{
	struct winsize size = { .ws_row = 0 };
	json_t *rows = json_copy(w->ended), *lines;

	/* A terminal that does not know its size says 0, if anything. */
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
		size = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	if (rows)
		json_array_extend(rows, w->rows);
	lines = mq_table_job_lines(rows);
	fputs("\033[H\033[J", stdout);
	mq_table_print(&mq_table_jobs, lines, size.ws_row > 5 ? size.ws_row - 4u : 1, size.ws_col);
	if (!w->by_id && json_array_size(w->rows) == 0)
		puts(w->none);
	if (w->paused)
		puts("the queue is paused");
	fflush(stdout);
	json_decref(lines);
	json_decref(rows);
}

static void print_change(const json_t *row, const json_t *before)
{
	const char *why = mq_row_text(row, "error", mq_row_text(row, "reason", ""));
	char text[400];

	if (before && mq_row_state(before) == mq_row_state(row))
		return;
	snprintf(text, sizeof(text), "job %lld %s%s%.300s", (long long)mq_row_id(row),
		 mq_job_state_name(mq_row_state(row)), why[0] ? ": " : "", why);
	mq_say_clean(text);
	puts(text);
}

static void print_changes(const struct watch *w, const json_t *before, size_t ended_before,
			  bool paused_before)
{
	if (!json_is_array(before) && !w->by_id && json_array_size(w->rows) == 0)
		mq_tell("%s%s", w->none, w->paused ? "; the queue is paused" : "");
	if (json_is_array(before) && !w->by_id && w->paused != paused_before)
		puts(w->paused ? "the queue is paused" : "the queue goes on");
	for (size_t i = ended_before; i < json_array_size(w->ended); i++)
		print_change(json_array_get(w->ended, i), NULL);
	for (size_t i = 0; i < json_array_size(w->rows); i++) {
		const json_t *row = json_array_get(w->rows, i);

		print_change(row, find(before, mq_row_id(row)));
	}
	fflush(stdout);
}

static bool over(const struct watch *w)
{
	for (size_t i = 0; i < json_array_size(w->rows); i++)
		if (!mq_job_is_terminal(mq_row_state(json_array_get(w->rows, i))))
			return false;
	return w->by_id;
}

/* --- when to look --- */

/* MQ_OK to go on. */
static enum mq_status lost(struct watch *w, enum mq_status status, struct mq_error *err)
{
	if (!w->lost_ms) {
		w->lost_ms = mq_clock_ms();
		mq_say("%s; trying again for %d s", err->text, MQ_RECONNECT_MS / 1000);
	}
	return mq_clock_ms() - w->lost_ms < MQ_RECONNECT_MS ? MQ_OK : status;
}

/* Before a look, so that nothing can happen after it unheard. */
static enum mq_status subscribe(struct watch *w, bool *fresh, struct mq_error *err)
{
	enum mq_status status = MQ_OK;

	if (!w->events && mq_clock_ms() >= w->subscribe_ms) {
		status = mq_subscribe(w->client, w->ids, w->count, &w->events, err);
		*fresh = w->events;
		w->subscribe_ms = mq_clock_ms() + LOOK_MS;
	}
	return status;
}

static void unsubscribe(struct watch *w)
{
	mq_unsubscribe(w->events);
	w->events = NULL;
	w->subscribe_ms = 0;
	json_object_clear(w->others);
}

static enum mq_status look_and_tell(struct watch *w, struct mq_error *err)
{
	json_t *before = json_incref(w->rows);
	size_t ended = json_array_size(w->ended);
	bool paused = w->paused;
	int64_t now, begun = mq_clock_ms();
	bool fresh = false;
	enum mq_status status = subscribe(w, &fresh, err);

	if (status == MQ_OK)
		status = look(w, err);
	now = mq_clock_ms();
	w->look_ms = now + (w->events && !fresh ? LOOK_MS : POLL_MS);
	/* A long list is not asked for all the time. */
	w->soon_ms = now + SOON_MS + 4 * (now - begun);
	if (status == MQ_OK) {
		w->lost_ms = 0;
		w->stale = true;
		if (!w->terminal)
			print_changes(w, before, ended, paused);
	} else if (mq_client_lost(status) && !mq_interrupted()) {
		unsubscribe(w);
		w->look_ms = now + POLL_MS;
		status = lost(w, status, err);
	}
	json_decref(before);
	return status;
}

/* Is this state of a job that is not in the table new to us? It may belong there. */
static bool is_news(struct watch *w, const json_t *row)
{
	char id[32];
	enum mq_job_state state = mq_row_state(row);
	const json_t *known;

	snprintf(id, sizeof(id), "%" PRId64, mq_row_id(row));
	known = json_object_get(w->others, id);
	if (known && json_integer_value(known) == (json_int_t)state)
		return false;
	if (json_object_size(w->others) >= OTHERS_MAX)
		json_object_clear(w->others);
	(void)json_object_set_new(w->others, id, json_integer((json_int_t)state)); /* else once more */
	return true;
}

static void look_soon(struct watch *w)
{
	if (w->look_ms > w->soon_ms)
		w->look_ms = w->soon_ms;
}

static void hear_row(struct watch *w, json_t *row)
{
	size_t at = place_of(w->rows, mq_row_id(row));
	const json_t *shown = json_array_get(w->rows, at);

	if (shown && mq_row_state(shown) == mq_row_state(row)) {
		if (json_array_set(w->rows, at, row) == 0)
			w->stale = true;
		return;
	}
	if (shown || (!w->by_id && is_news(w, row)))
		look_soon(w);
}

/* Ids are not used again: what is gone stays so. */
static void hear_removed(struct watch *w, int64_t id)
{
	size_t at = place_of(w->ended, id);

	if (find(w->rows, id)) {
		look_soon(w);
	} else if (json_array_remove(w->ended, at) == 0) {
		tell_removed(w, id);
		fflush(stdout);
		w->stale = true;
	}
}

static void hear(struct watch *w)
{
	struct mq_news news;

	for (int i = 0; i < HEAR_MAX && mq_subscription_take(w->events, &news); i++) {
		if (news.kind == MQ_NEWS_JOB)
			hear_row(w, news.row);
		else if (news.kind == MQ_NEWS_REMOVED)
			hear_removed(w, news.id);
		else if (!w->by_id && news.paused != w->paused)
			look_soon(w);
		json_decref(news.row);
	}
	if (w->events && mq_subscription_ended(w->events)) {
		unsubscribe(w);
		w->look_ms = 0;
	}
}

/* Until something is to be done. */
static void rest(struct watch *w)
{
	struct signalfd_siginfo info;
	int64_t until = w->look_ms;

	if (w->terminal && w->stale && w->drawn_ms + SOON_MS < until)
		until = w->drawn_ms + SOON_MS;
	mq_subscription_sleep(w->events, until, w->resized);
	while (w->resized >= 0 && read(w->resized, &info, sizeof(info)) == (ssize_t)sizeof(info))
		w->stale = true;
}

static enum mq_status loop(struct watch *w, struct mq_error *err)
{
	enum mq_status status = MQ_OK;

	while (status == MQ_OK) {
		if (mq_clock_ms() >= w->look_ms)
			status = look_and_tell(w, err);
		if (mq_interrupted()) { /* the way to end it */
			if (w->terminal)
				putchar('\n'); /* the shell's prompt is not to follow "^C" */
			return MQ_OK;
		}
		if (status != MQ_OK)
			break;
		if (w->terminal && w->stale && (over(w) || mq_clock_ms() >= w->drawn_ms + SOON_MS)) {
			draw(w);
			w->drawn_ms = mq_clock_ms();
			w->stale = false;
		}
		if (over(w))
			return mq_say_flush_stdout(err);
		if (ferror(stdout))
			status = mq_say_flush_stdout(err);
		rest(w);
		hear(w);
	}
	return status;
}

/* Before libzmq has threads, which inherit what is blocked. Failing means to go without. */
static int watch_size(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGWINCH);
	return sigprocmask(SIG_BLOCK, &set, NULL) == 0 ? signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK)
						       : -1;
}

enum mq_status mq_cmd_watch(const struct mq_options *options, struct mq_error *err)
{
	struct watch w = { .terminal = isatty(STDOUT_FILENO), .ended = json_array(),
			   .rows = json_null(), .others = json_object(), .resized = -1 };
	enum mq_status status = mq_command_ids(options, &w.ids, &w.count, err);

	w.by_id = w.count > 0;
	w.none = options->count[MQ_OPT_STATE] || options->count[MQ_OPT_NAME] || options->count[MQ_OPT_MINE]
			 ? "no job that the options let through"
			 : "no job is under way";
	if (status == MQ_OK)
		status = mq_rows_filter(options, &w.filter, err);
	if (status == MQ_OK && !w.filter.states)
		w.filter.states = mq_rows_open_states();
	if (status == MQ_OK && (!w.filter.states || !w.ended || !w.others))
		status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for a list of jobs");
	if (w.terminal)
		w.resized = watch_size();
	if (status == MQ_OK)
		status = mq_client_open(options, &w.client, err);
	if (status == MQ_OK)
		status = loop(&w, err);
	unsubscribe(&w);
	if (w.resized >= 0)
		close(w.resized);
	free(w.ids);
	json_decref(w.rows);
	json_decref(w.ended);
	json_decref(w.others);
	json_decref(w.filter.states);
	mq_client_close(w.client);
	return status;
}
