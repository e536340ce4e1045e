/* progress: turns rows into one line. Called by waiting.c and download.c. */
#include "config.h"

#include "client/progress.h"

#include <stdio.h>
#include <string.h>

#include "client/interrupt.h"
#include "client/rows.h"
#include "client/say.h"
#include "src/clock.h"

#define TERMINAL_MS 100
#define PLAIN_MS 10000
#define SAMPLE_MS 250
#define RIGHT_CELLS 26 /* kept free for the rate and the time, so that the bar does not jump */

void mq_progress_begin(struct mq_progress *progress, bool quiet)
{
	*progress = (struct mq_progress){ .quiet = quiet, .terminal = mq_say_terminal(NULL) };
	/* A plain line is for what takes long: not at once. */
	progress->shown_ms = progress->terminal ? 0 : mq_clock_ms();
}

void mq_progress_end(struct mq_progress *progress)
{
	if (progress->terminal && !progress->quiet)
		mq_say_transient(NULL);
}

/* Is it time for a line? */
static bool due(struct mq_progress *p)
{
	int64_t now = mq_clock_ms();

	if (p->quiet || now - p->shown_ms < (p->terminal ? TERMINAL_MS : PLAIN_MS))
		return false;
	p->shown_ms = now;
	return true;
}

/* Remembers the amount done; gives the amount a second over the last few seconds, 0 if not known. */
static double rate(struct mq_progress *p, double amount)
{
	int64_t now = mq_clock_ms();
	unsigned last = (p->next + MQ_PROGRESS_SAMPLES - 1) % MQ_PROGRESS_SAMPLES;
	unsigned oldest;

	if (p->samples == 0 || now - p->sample[last].ms >= SAMPLE_MS) {
		p->sample[p->next].ms = now;
		p->sample[p->next].pixels = amount;
		p->next = (p->next + 1) % MQ_PROGRESS_SAMPLES;
		if (p->samples < MQ_PROGRESS_SAMPLES)
			p->samples++;
	}
	oldest = p->samples < MQ_PROGRESS_SAMPLES ? 0 : p->next;
	if (now - p->sample[oldest].ms < SAMPLE_MS || amount <= p->sample[oldest].pixels)
		return 0;
	return (amount - p->sample[oldest].pixels) * 1000.0 / (double)(now - p->sample[oldest].ms);
}

static double clamp(double x)
{
	return x > 0 ? (x < 1 ? x : 1) : 0; /* 0 for what is no number, too */
}

static void show_line(struct mq_progress *p, const char *left, double part, const char *right)
{
	char bar[64], line[512];
	int columns, room, cells, behind = (int)strlen(right);

	if (!p->terminal) {
		mq_say("%s, %.1f %%%s%s", left, 100 * part, right[0] ? ", " : "", right);
		return;
	}
	mq_say_terminal(&columns);
	room = columns - 1 - (int)(strlen(left) + sizeof(" [] 100.0 %  ") - 1) -
	       (behind > RIGHT_CELLS ? behind : RIGHT_CELLS);
	cells = room > 40 ? 40 : room;
	bar[0] = '\0';
	if (cells >= 4) {
		int full = (int)(part * cells);

		bar[0] = ' ';
		bar[1] = '[';
		memset(bar + 2, '#', (size_t)full);
		memset(bar + 2 + full, '.', (size_t)(cells - full));
		strcpy(bar + 2 + cells, "]");
	}
	snprintf(line, sizeof(line), "%s%s %5.1f %%  %s", left, bar, 100 * part, right);
	if (columns > 1 && (size_t)columns - 1 < strlen(line))
		line[columns - 1] = '\0';
	mq_say_clean(line);
	mq_say_transient(line);
}

/* "812 Mpx/s" */
static void format_rate(double per_second, const char *unit, char *out, size_t size)
{
	static const char prefix[] = " kMGT";
	unsigned i = 0;

	for (; per_second >= 999.5 && prefix[i + 1]; i++)
		per_second /= 1000;
	if (i)
		snprintf(out, size, "%.*f %c%s/s", per_second < 9.95 ? 1 : 0, per_second, prefix[i],
			 unit);
	else
		snprintf(out, size, "%.0f %s/s", per_second, unit);
}

static void show_amount(struct mq_progress *p, const char *left, double done, double total,
			const char *unit, double eta)
{
	char speed[48] = "", time[32], right[112] = "";
	double per_second = unit ? rate(p, done) : 0;

	if (per_second > 0) {
		format_rate(per_second, unit, speed, sizeof(speed));
		if (eta < 0 && total > done)
			eta = (total - done) / per_second;
	}
	snprintf(right, sizeof(right), "%s%s%s", speed,
		 eta < 0    ? ""
		 : speed[0] ? "  ETA "
			    : "ETA ",
		 eta >= 0 ? mq_say_seconds(eta, time) : "");
	if (due(p))
		show_line(p, left, total > 0 ? clamp(done / total) : 0, right);
}

void mq_progress_step(struct mq_progress *progress, const char *what, double done, double total,
		      const char *unit)
{
	if (!progress->quiet)
		show_amount(progress, what, done, total, unit, -1);
}

void mq_progress_show(struct mq_progress *progress, const json_t *rows)
{
	double done = 0, total = 0, eta = -1;
	size_t count = json_array_size(rows), ended = 0;
	char left[160];

	if (progress->quiet || count == 0)
		return;
	for (size_t i = 0; i < count; i++) {
		const json_t *row = json_array_get(rows, i);
		double pixels = mq_row_number(row, "width", 0) * mq_row_number(row, "height", 0);

		total += pixels;
		if (mq_job_is_terminal(mq_row_state(row))) {
			done += pixels;
			ended++;
		} else {
			done += pixels * clamp(mq_row_number(row, "progress", 0));
		}
	}
	if (count == 1) {
		const json_t *row = json_array_get(rows, 0);
		const char *reason = mq_row_text(row, "reason", "");

		snprintf(left, sizeof(left), "job %lld %s%s%.60s%s", (long long)mq_row_id(row),
			 mq_job_state_name(mq_row_state(row)), reason[0] ? " (" : "", reason,
			 reason[0] ? ")" : "");
		eta = mq_row_number(row, "eta_seconds", -1);
	} else {
		snprintf(left, sizeof(left), "%zu jobs, %zu ended", count, ended);
	}
	show_amount(progress, left, done, total, "px", eta);
}
