/* cmd_status: mandelq status, as a table for people or JSON for programs. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "client/command.h"
#include "client/interrupt.h"
#include "client/rows.h"
#include "client/say.h"

#define COLUMNS 9
#define CELL_MAX 640

static const char *const titles[COLUMNS] = {
	"ID", "STATE", "PROGRESS", "SIZE", "ITER", "TIME", "ETA", "NAME", "NOTE",
};
static const bool right[COLUMNS] = { true, false, true, true, true, true, true, false, false };

/* Columns of a terminal that text takes. */
static size_t text_width(const char *text)
{
	mbstate_t state = { 0 };
	size_t width = 0, len = strlen(text);

	while (len) {
		wchar_t wide;
		size_t n = mbrtowc(&wide, text, len, &state);
		int w;

		if (n == 0 || n > len) { /* not of this locale: a byte is a column */
			memset(&state, 0, sizeof(state));
			n = 1;
			w = 1;
		} else {
			w = wcwidth(wide);
		}
		width += w > 0 ? (size_t)w : 0;
		text += n;
		len -= n;
	}
	return width;
}

static void fill_cells(const json_t *row, char cell[COLUMNS][CELL_MAX])
{
	double progress = mq_row_number(row, "progress", -1);
	double seconds = mq_row_number(row, "compute_seconds", -1);
	double eta = mq_row_number(row, "eta_seconds", -1);
	char text[32];

	snprintf(cell[0], CELL_MAX, "%lld", (long long)mq_row_id(row));
	snprintf(cell[1], CELL_MAX, "%s", mq_job_state_name(mq_row_state(row)));
	snprintf(cell[2], CELL_MAX, "-");
	if (progress >= 0 && progress <= 1) /* only what is finished has 100 % */
		snprintf(cell[2], CELL_MAX, "%.1f %%",
			 progress < 1 && progress > 0.999 ? 99.9 : 100 * progress);
	snprintf(cell[3], CELL_MAX, "%.0fx%.0f", mq_row_number(row, "width", 0),
		 mq_row_number(row, "height", 0));
	snprintf(cell[4], CELL_MAX, "%.0f", mq_row_number(row, "iterations", 0));
	snprintf(cell[5], CELL_MAX, "%s", seconds >= 0 ? mq_say_seconds(seconds, text) : "-");
	snprintf(cell[6], CELL_MAX, "%s", eta >= 0 ? mq_say_seconds(eta, text) : "-");
	snprintf(cell[7], CELL_MAX, "%.*s", CELL_MAX - 1, mq_row_text(row, "name", ""));
	snprintf(cell[8], CELL_MAX, "%.*s", CELL_MAX - 1,
		 mq_row_text(row, "error", mq_row_text(row, "reason", "")));
	for (size_t i = 0; i < COLUMNS; i++)
		mq_say_clean(cell[i]);
}

static void print_cells(char cell[COLUMNS][CELL_MAX], const size_t *width)
{
	size_t last = COLUMNS;

	while (last > 1 && !cell[last - 1][0])
		last--;
	for (size_t i = 0; i < last; i++) {
		size_t pad = width[i] - text_width(cell[i]);

		printf("%s%*s%s", i ? "  " : "", right[i] ? (int)pad : 0, "", cell[i]);
		if (!right[i] && i + 1 < last)
			printf("%*s", (int)pad, "");
	}
	putchar('\n');
}

static void print_table(const json_t *rows)
{
	char cell[COLUMNS][CELL_MAX];
	size_t width[COLUMNS], count = json_array_size(rows);

	for (size_t i = 0; i < COLUMNS; i++)
		width[i] = strlen(titles[i]);
	for (size_t j = 0; j < count; j++) {
		fill_cells(json_array_get(rows, j), cell);
		for (size_t i = 0; i < COLUMNS; i++) {
			size_t w = text_width(cell[i]);

			width[i] = w > width[i] ? w : width[i];
		}
	}
	for (size_t i = 0; i < COLUMNS; i++)
		strcpy(cell[i], titles[i]);
	print_cells(cell, width);
	for (size_t j = 0; j < count; j++) {
		fill_cells(json_array_get(rows, j), cell);
		print_cells(cell, width);
	}
}

enum mq_status mq_cmd_status(const struct mq_options *options, struct mq_error *err)
{
	bool json = options->count[MQ_OPT_JSON];
	struct mq_client *client = NULL;
	json_t *rows = NULL, *note = NULL;
	int64_t *ids = NULL;
	size_t count = 0;
	enum mq_status status = mq_command_ids(options, &ids, &count, err);

	if (status == MQ_OK)
		status = mq_client_open(options, &client, err);
	if (status == MQ_OK)
		status = mq_rows_fetch(client, ids, count, &rows, &note, err);
	if (status == MQ_OK) {
		mq_interrupt_end(); /* only output is left: a pager that stops reading may end us */
		if (json && json_dumpf(rows, stdout,
				       JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(15)))
			status = mq_fail(err, MQ_EIO, "cannot write to standard output");
		else if (json)
			putchar('\n');
		else if (json_array_size(rows))
			print_table(rows);
		else
			mq_say("no jobs");
	}
	if (status == MQ_OK)
		status = mq_say_flush_stdout(err);
	if (status == MQ_OK && !json && note)
		mq_say("worker: %s", json_string_value(note));
	free(ids);
	json_decref(rows);
	json_decref(note);
	mq_client_close(client);
	return status;
}
