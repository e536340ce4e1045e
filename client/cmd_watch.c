/* cmd_watch: mandelq watch: the table of jobs, drawn again as they move. On a terminal in place; elsewhere a
 * line when a job's state changes. With ids it ends when all of them have; else a signal ends it. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/command.h"
#include "client/interrupt.h"
#include "client/rows.h"
#include "client/say.h"
#include "client/table.h"
#include "client/waiting.h"

#define POLL_MS 500
#define ENDED_MAX 1000 /* jobs that ended while we looked; older ones leave the table */

struct watch {
	struct mq_client *client;
	int64_t *ids;
	size_t count; /* 0: those that the filter lets through */
	struct mq_rows_filter filter;
	bool terminal;
	json_t *rows;  /* of the last look */
	json_t *ended; /* rows of jobs that ended while we looked */
	bool paused;
	int64_t lost_ms;
};

static const json_t *find(const json_t *rows, int64_t id)
{
	for (size_t i = 0; i < json_array_size(rows); i++)
		if (mq_row_id(json_array_get(rows, i)) == id)
			return json_array_get(rows, i);
	return NULL;
}

/* Jobs of the last look that are in this one no more have ended: their last rows are kept. */
static enum mq_status keep_ended(struct watch *w, const json_t *now, struct mq_error *err)
{
	for (size_t i = 0; i < json_array_size(w->rows); i++) {
		int64_t id = mq_row_id(json_array_get(w->rows, i));
		json_t *row = NULL;
		enum mq_status status;

		if (find(now, id))
			continue;
		status = mq_rows_fetch(w->client, &id, 1, &row, NULL, err);
		if (status == MQ_ENOENT) /* removed already */
			continue;
		if (status != MQ_OK)
			return status;
		/* One that has only left the filter is not watched any more. */
		if (mq_job_is_terminal(mq_row_state(json_array_get(row, 0))) &&
		    json_array_append(w->ended, json_array_get(row, 0)) == 0 &&
		    json_array_size(w->ended) > ENDED_MAX)
			json_array_remove(w->ended, 0);
		json_decref(row);
	}
	return MQ_OK;
}

static enum mq_status look(struct watch *w, struct mq_error *err)
{
	struct mq_rows_list list = { 0 };
	enum mq_status status;

	if (w->count) {
		status = mq_rows_fetch(w->client, w->ids, w->count, &list.rows, NULL, err);
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
	struct winsize size = { .ws_row = 24, .ws_col = 80 };
	json_t *rows = json_copy(w->ended), *lines;

	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size); /* else as it stands above */
	if (rows)
		json_array_extend(rows, w->rows);
	lines = mq_table_job_lines(rows);
	fputs("\033[H\033[J", stdout);
	mq_table_print(&mq_table_jobs, lines, size.ws_row > 4 ? size.ws_row - 3u : 1, size.ws_col);
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

static void print_changes(const struct watch *w, const json_t *before, size_t ended_before)
{
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
	return w->count > 0;
}

/* MQ_OK to go on. */
static enum mq_status lost(struct watch *w, enum mq_status status, struct mq_error *err)
{
	if (!w->lost_ms) {
		w->lost_ms = mq_clock_ms();
		mq_say("%s; trying again for %d s", err->text, MQ_RECONNECT_MS / 1000);
	}
	return mq_clock_ms() - w->lost_ms < MQ_RECONNECT_MS ? MQ_OK : status;
}

static enum mq_status loop(struct watch *w, struct mq_error *err)
{
	enum mq_status status = MQ_OK;

	while (status == MQ_OK) {
		json_t *before = json_incref(w->rows);
		size_t ended = json_array_size(w->ended);

		status = look(w, err);
		if (status == MQ_OK) {
			w->lost_ms = 0;
			if (w->terminal)
				draw(w);
			else
				print_changes(w, before, ended);
		}
		json_decref(before);
		if (mq_interrupted()) /* the way to end it */
			return MQ_OK;
		if (mq_client_lost(status))
			status = lost(w, status, err);
		else if (status == MQ_OK && over(w))
			return mq_say_flush_stdout(err);
		if (status == MQ_OK && ferror(stdout))
			status = mq_say_flush_stdout(err);
		if (status == MQ_OK)
			mq_interrupt_sleep(POLL_MS);
		if (mq_interrupted())
			return MQ_OK;
	}
	return status;
}

enum mq_status mq_cmd_watch(const struct mq_options *options, struct mq_error *err)
{
	struct watch w = { .terminal = isatty(STDOUT_FILENO), .ended = json_array(),
			   .rows = json_null() };
	enum mq_status status = mq_command_ids(options, &w.ids, &w.count, err);

	if (status == MQ_OK)
		status = mq_rows_filter(options, &w.filter, err);
	if (status == MQ_OK && !w.filter.states)
		w.filter.states = mq_rows_open_states();
	if (status == MQ_OK && (!w.filter.states || !w.ended))
		status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for a list of jobs");
	if (status == MQ_OK)
		status = mq_client_open(options, &w.client, err);
	if (status == MQ_OK)
		status = loop(&w, err);
	free(w.ids);
	json_decref(w.rows);
	json_decref(w.ended);
	json_decref(w.filter.states);
	mq_client_close(w.client);
	return status;
}
