/* table: see table.h. Widths are those of the terminal's characters. */
#include "config.h"

#include "client/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "client/rows.h"
#include "client/say.h"
#include "src/job.h"

#define COLUMNS_MAX 12
#define CELL_MAX 640
/* From this share of pixels at the limit on, a view that has a boundary in it has likely too few
 * iterations: the whole set fills a third of its bounds. */
#define INSIDE_LARGE 0.5

/* Terminal columns of the first character of text, and its bytes. */
static size_t character(const char *text, size_t len, mbstate_t *state, size_t *bytes)
{
	wchar_t wide;
	size_t n = mbrtowc(&wide, text, len, state);
	int w;

	if (n == 0 || n > len) { /* not of this locale: a byte is a column */
		memset(state, 0, sizeof(*state));
		*bytes = 1;
		return 1;
	}
	*bytes = n;
	w = wcwidth(wide);
	return w > 0 ? (size_t)w : 0;
}

/* Bytes of text that fit into `width` columns; *taken is how many columns they take. */
static size_t fitting(const char *text, size_t width, size_t *taken)
{
	mbstate_t state = { 0 };
	size_t at = 0, len = strlen(text), bytes;

	*taken = 0;
	while (at < len) {
		size_t w = character(text + at, len - at, &state, &bytes);

		if (*taken + w > width)
			break;
		*taken += w;
		at += bytes;
	}
	return at;
}

static size_t text_width(const char *text)
{
	size_t width;

	fitting(text, SIZE_MAX, &width);
	return width;
}

static const char *cell(const json_t *line, size_t column)
{
	const char *text = json_string_value(json_array_get(line, column));

	return text ? text : "";
}

static const char *colour_of(const char *state)
{
	static const char *const colours[][2] = {
		{ "done", "\033[32m" },   { "failed", "\033[31m" },  { "running", "\033[36m" },
		{ "paused", "\033[33m" }, { "waiting", "\033[33m" }, { "assembling", "\033[36m" },
		{ "cancelled", "\033[2m" },
	};

	for (size_t i = 0; i < sizeof(colours) / sizeof(colours[0]); i++)
		if (strcmp(state, colours[i][0]) == 0)
			return colours[i][1];
	return NULL;
}

struct printing {
	const struct mq_table *table;
	size_t width[COLUMNS_MAX];
	size_t room; /* terminal columns; SIZE_MAX: any number */
	bool colours;
};

/* Spaces, then as much of text as there is room for; *at is the column reached. */
static void put(const struct printing *p, size_t *at, size_t spaces, const char *text,
		const char *colour)
{
	size_t left, taken, bytes;

	spaces = spaces < p->room - *at ? spaces : p->room - *at;
	printf("%*s", (int)spaces, "");
	*at += spaces;
	left = p->room - *at;
	bytes = fitting(text, left, &taken);
	printf("%s%.*s%s", colour ? colour : "", (int)bytes, text, colour ? "\033[0m" : "");
	*at += taken;
}

static void print_line(const struct printing *p, const json_t *line, const char *const *titles)
{
	const struct mq_table *t = p->table;
	size_t last = t->columns, at = 0, owed = 0;

	while (last > 1 && !(titles ? titles[last - 1] : cell(line, last - 1))[0])
		last--;
	for (size_t i = 0; i < last; i++) {
		const char *text = titles ? titles[i] : cell(line, i);
		size_t pad = p->width[i] - text_width(text);
		bool coloured = p->colours && !titles && (int)i == t->state;

		put(p, &at, owed + (t->right[i] ? pad : 0), text, coloured ? colour_of(text) : NULL);
		owed = 2 + (t->right[i] ? 0 : pad);
	}
	putchar('\n');
}

void mq_table_print(const struct mq_table *table, const json_t *lines, size_t max, size_t width)
{
	struct printing p = { .table = table, .room = width ? width : SIZE_MAX,
			      .colours = mq_say_colours() };
	size_t count = json_array_size(lines), first = 0;

	if (max && count > max)
		first = count - max;
	for (size_t i = 0; i < table->columns; i++) {
		p.width[i] = text_width(table->titles[i]);
		for (size_t j = first; j < count; j++) {
			size_t w = text_width(cell(json_array_get(lines, j), i));

			p.width[i] = w > p.width[i] ? w : p.width[i];
		}
	}
	print_line(&p, NULL, table->titles);
	for (size_t j = first; j < count; j++)
		print_line(&p, json_array_get(lines, j), NULL);
}

/* --- jobs --- */

static const char *const titles[] = {
	"ID", "STATE", "PROGRESS", "SIZE", "ITER", "TIME", "ETA", "NAME", "NOTE",
};
static const bool right[] = { true, false, true, true, true, true, true, false, false };
#define COLUMNS (sizeof(titles) / sizeof(titles[0]))

const struct mq_table mq_table_jobs = { titles, right, COLUMNS, 1 };

/* Has the job fewer iterations than it would get by itself? If not, its view may well lie in the set. */
static bool auto_gives_more(const json_t *row)
{
	json_t *settings = json_copy(json_object_get(row, "settings"));
	struct mq_job *job = NULL;
	bool more = json_object_set_new(settings, "iterations", json_string("auto")) == 0 &&
		    mq_job_from_json(settings, &job, NULL, NULL) == MQ_OK &&
		    job->iterations > mq_row_number(row, "iterations", 0);

	mq_job_free(job);
	json_decref(settings);
	return more;
}

char *mq_table_hint(const json_t *row, char out[160])
{
	double inside = mq_row_number(row, "inside", -1);
	bool one = json_is_true(json_object_get(row, "one_colour"));

	out[0] = '\0';
	if (mq_row_state(row) != MQ_JOB_DONE)
		return out;
	if (one && inside >= 1)
		snprintf(out, 160, "one colour: every pixel reached the limit of %.0f iterations",
			 mq_row_number(row, "iterations", 0));
	else if (one)
		snprintf(out, 160, "one colour: the view has no boundary in it");
	else if (inside >= INSIDE_LARGE && auto_gives_more(row))
		snprintf(out, 160, "%.0f %% of the pixels reached the limit: more --iterations may show more",
			 inside > 0.99 ? 99 : 100 * inside);
	return out;
}

static void fill_cells(const json_t *row, char cells[COLUMNS][CELL_MAX])
{
	double progress = mq_row_number(row, "progress", -1);
	double seconds = mq_row_number(row, "elapsed_seconds", -1);
	double eta = mq_row_number(row, "eta_seconds", -1);
	char text[32], hint[160];

	snprintf(cells[0], CELL_MAX, "%lld", (long long)mq_row_id(row));
	snprintf(cells[1], CELL_MAX, "%s", mq_job_state_name(mq_row_state(row)));
	snprintf(cells[2], CELL_MAX, "-");
	if (progress >= 0 && progress <= 1) /* only what is finished has 100 % */
		snprintf(cells[2], CELL_MAX, "%.1f %%",
			 progress < 1 && progress > 0.999 ? 99.9 : 100 * progress);
	snprintf(cells[3], CELL_MAX, "%.0fx%.0f", mq_row_number(row, "width", 0),
		 mq_row_number(row, "height", 0));
	snprintf(cells[4], CELL_MAX, "%.0f", mq_row_number(row, "iterations", 0));
	snprintf(cells[5], CELL_MAX, "%s", seconds >= 0 ? mq_say_seconds(seconds, text) : "-");
	snprintf(cells[6], CELL_MAX, "%s", eta >= 0 ? mq_say_seconds(eta, text) : "-");
	snprintf(cells[7], CELL_MAX, "%.*s", CELL_MAX - 1, mq_row_text(row, "name", ""));
	snprintf(cells[8], CELL_MAX, "%.*s", CELL_MAX - 1,
		 mq_row_text(row, "error", mq_row_text(row, "reason", mq_table_hint(row, hint))));
	for (size_t i = 0; i < COLUMNS; i++)
		mq_say_clean(cells[i]);
}

json_t *mq_table_job_lines(const json_t *rows)
{
	json_t *lines = json_array();
	char cells[COLUMNS][CELL_MAX];

	for (size_t j = 0; lines && j < json_array_size(rows); j++) {
		json_t *line = json_array();

		fill_cells(json_array_get(rows, j), cells);
		for (size_t i = 0; line && i < COLUMNS; i++)
			if (json_array_append_new(line, json_string(cells[i])) != 0) {
				json_decref(line);
				line = NULL;
			}
		if (!line || json_array_append_new(lines, line) != 0) {
			json_decref(lines);
			lines = NULL;
		}
	}
	return lines;
}
