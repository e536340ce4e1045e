/* cmd_info: mandelq info: everything that is known of one job. */
#include "config.h"

#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/command.h"
#include "client/interrupt.h"
#include "client/rows.h"
#include "client/say.h"
#include "client/table.h"
#include "src/bytes.h"

#define DEVICES_MAX 32

/* --- fetching --- */

/* All of a job's "tiles" or "attempts", page by page. */
static enum mq_status fetch_list(struct mq_client *client, const char *verb, int64_t id, json_t **out,
				 struct mq_error *err)
{
	json_t *all = json_array();
	enum mq_status status = all ? MQ_OK : mq_fail(err, MQ_ENOMEM_HOST, "no memory for a list");
	int64_t after = 0, next;
	bool more = true;

	while (status == MQ_OK && more) {
		json_t *result = NULL, *list;

		status = mq_client_call(client, verb,
					json_pack("{s:I,s:I}", "id", (json_int_t)id, "after",
						  (json_int_t)after),
					&result, err);
		if (status != MQ_OK)
			break;
		list = json_object_get(result, verb);
		more = json_is_true(json_object_get(result, "more"));
		next = mq_row_id(json_array_get(list, json_array_size(list) ? json_array_size(list) - 1 : 0));
		if (!json_is_array(list) || (more && next <= after))
			status = mq_fail(err, MQ_EPROTO, "the worker sent no proper answer to \"%s\"", verb);
		else if (json_array_extend(all, list) != 0)
			status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for a list");
		after = next;
		json_decref(result);
	}
	if (status == MQ_OK)
		*out = all;
	else
		json_decref(all);
	return status;
}

/* --- for people --- */

static void field(const char *name, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void field(const char *name, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	mq_say_clean(text);
	printf("%-14s %s\n", name, text);
}

/* Milliseconds since 1970 of a time as the worker writes it; -1: none. */
static int64_t time_of(const json_t *row, const char *key)
{
	struct tm tm = { 0 };
	const char *rest = strptime(mq_row_text(row, key, ""), "%Y-%m-%dT%H:%M:%S", &tm);

	if (!rest)
		return -1;
	return (int64_t)timegm(&tm) * 1000 + (*rest == '.' ? (int64_t)(1000 * strtod(rest, NULL)) : 0);
}

static void print_duration(const char *name, const json_t *row, const char *from, const char *to)
{
	int64_t a = time_of(row, from), b = time_of(row, to);
	char text[32];

	if (a >= 0 && b >= a)
		field(name, "%s", mq_say_seconds((double)(b - a) / 1000, text));
}

static void print_owner(const json_t *row)
{
	int64_t uid;
	struct passwd *user;

	if (!mq_row_integer(row, "owner", 0, &uid))
		return;
	user = getpwuid((uid_t)uid);
	if (user)
		field("owner", "%s", user->pw_name);
	else
		field("owner", "%lld", (long long)uid);
}

static void print_state(const json_t *row)
{
	const char *why = mq_row_text(row, "error", mq_row_text(row, "reason", ""));
	double progress = mq_row_number(row, "progress", 0), eta = mq_row_number(row, "eta_seconds", -1);
	char text[32], hint[160];

	field("state", "%s%s%s", mq_job_state_name(mq_row_state(row)), why[0] ? ": " : "", why);
	if (!mq_job_is_terminal(mq_row_state(row)))
		field("progress", "%.1f %%%s%s", 100 * progress, eta >= 0 ? ", ETA " : "",
		      eta >= 0 ? mq_say_seconds(eta, text) : "");
	if (mq_table_hint(row, hint)[0])
		field("hint", "%s", hint);
}

static void print_times(const json_t *row)
{
	static const char *const times[] = { "created", "started", "finished", "fetched" };
	double compute = mq_row_number(row, "compute_seconds", 0);
	char text[32];

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		if (mq_row_text(row, times[i], NULL))
			field(times[i], "%s", mq_row_text(row, times[i], ""));
	print_duration("waited", row, "created", "started");
	print_duration("took", row, "started", "finished");
	field("computed", "%s", mq_say_seconds(compute, text));
}

static void print_output(const json_t *row)
{
	const json_t *output = json_object_get(row, "output");
	double inside = mq_row_number(row, "inside", -1);
	char text[32];

	if (inside >= 0)
		field("inside", "%.2f %% of the pixels reached the limit", 100 * inside);
	if (!json_is_object(output))
		return;
	field("picture", "%s", mq_row_text(output, "path", ""));
	field("bytes", "%s", mq_bytes_text(mq_row_number(output, "bytes", 0), text));
	field("sha256", "%s", mq_row_text(output, "sha256", ""));
}

static void print_settings(const json_t *row)
{
	char *text = json_dumps(json_object_get(row, "settings"), JSON_SORT_KEYS);

	if (text)
		field("settings", "%s", text);
	free(text);
}

/* Attempts by outcome, and by device how many and how long. */
struct tally {
	size_t attempts, done, under_way;
	struct {
		const char *name;
		size_t attempts;
		double seconds, longest;
	} device[DEVICES_MAX];
	size_t devices;
};

static void count_attempt(struct tally *t, const json_t *a)
{
	const char *device = mq_row_text(a, "device", "?"), *outcome = mq_row_text(a, "outcome", NULL);
	int64_t from = time_of(a, "started"), to = time_of(a, "ended");
	double seconds = from >= 0 && to >= from ? (double)(to - from) / 1000 : 0;
	size_t i = 0;

	t->attempts++;
	t->under_way += !outcome;
	t->done += outcome && strcmp(outcome, "done") == 0;
	while (i < t->devices && strcmp(t->device[i].name, device) != 0)
		i++;
	if (i == DEVICES_MAX)
		return;
	if (i == t->devices)
		t->device[t->devices++].name = device;
	t->device[i].attempts++;
	t->device[i].seconds += seconds;
	if (seconds > t->device[i].longest)
		t->device[i].longest = seconds;
}

static void print_attempts(const json_t *row, const json_t *attempts)
{
	struct tally t = { 0 };
	char mean[32], longest[32];

	for (size_t i = 0; i < json_array_size(attempts); i++)
		count_attempt(&t, json_array_get(attempts, i));
	field("tiles", "%.0f of %.0f done, %.0f halved", mq_row_number(row, "tiles_done", 0),
	      mq_row_number(row, "tiles_total", 0), mq_row_number(row, "tiles_split", 0));
	field("attempts", "%zu: %zu done, %zu under way, %zu without a result", t.attempts, t.done,
	      t.under_way, t.attempts - t.done - t.under_way);
	for (size_t i = 0; i < t.devices; i++)
		field(i ? "" : "devices", "%s: %zu attempts, %s each, %s the longest", t.device[i].name,
		      t.device[i].attempts,
		      mq_say_seconds(t.device[i].seconds / (double)t.device[i].attempts, mean),
		      mq_say_seconds(t.device[i].longest, longest));
}

static void print_job(const json_t *row, const json_t *attempts)
{
	int64_t after;

	field("job", "%lld", (long long)mq_row_id(row));
	if (mq_row_text(row, "name", "")[0])
		field("name", "%s", mq_row_text(row, "name", ""));
	print_owner(row);
	print_state(row);
	field("priority", "%.0f", mq_row_number(row, "priority", 0));
	if (mq_row_integer(row, "after", 1, &after))
		field("after", "job %lld", (long long)after);
	field("size", "%.0f x %.0f pixels, %.0f iterations", mq_row_number(row, "width", 0),
	      mq_row_number(row, "height", 0), mq_row_number(row, "iterations", 0));
	print_times(row);
	print_attempts(row, attempts);
	print_output(row);
	print_settings(row);
}

/* --- the log --- */

struct event {
	const char *time;
	size_t number;
	char text[200];
};

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	int order = strcmp(x->time, y->time); /* RFC 3339 in UTC sorts as text */

	return order ? order : x->number < y->number ? -1 : 1;
}

static void add(struct event *list, size_t *n, const char *time, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void add(struct event *list, size_t *n, const char *time, const char *fmt, ...)
{
	va_list ap;

	if (!time)
		return;
	list[*n].time = time;
	list[*n].number = *n;
	va_start(ap, fmt);
	vsnprintf(list[*n].text, sizeof(list[*n].text), fmt, ap);
	va_end(ap);
	mq_say_clean(list[*n].text);
	++*n;
}

static void add_attempt(struct event *list, size_t *n, const json_t *a)
{
	long long first = (long long)mq_row_number(a, "strip", 0);
	long long last = first + (long long)mq_row_number(a, "strips", 1) - 1;

	add(list, n, mq_row_text(a, "started", NULL), "attempt %lld at strips %lld to %lld on %s%s",
	    (long long)mq_row_id(a), first, last, mq_row_text(a, "device", "?"),
	    json_is_true(json_object_get(a, "alone")) ? ", alone" : "");
	add(list, n, mq_row_text(a, "ended", NULL), "attempt %lld %s", (long long)mq_row_id(a),
	    mq_row_text(a, "outcome", "ended"));
}

static enum mq_status print_log(const json_t *row, const json_t *attempts, struct mq_error *err)
{
	size_t n = 0, count = json_array_size(attempts);
	struct event *list = calloc(2 * count + 4, sizeof(*list));
	const char *why = mq_row_text(row, "error", "");

	if (!list)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a log");
	add(list, &n, mq_row_text(row, "created", NULL), "submitted");
	add(list, &n, mq_row_text(row, "started", NULL), "started");
	for (size_t i = 0; i < count; i++)
		add_attempt(list, &n, json_array_get(attempts, i));
	add(list, &n, mq_row_text(row, "finished", NULL), "%s%s%.150s",
	    mq_job_state_name(mq_row_state(row)), why[0] ? ": " : "", why);
	add(list, &n, mq_row_text(row, "fetched", NULL), "fetched");
	qsort(list, n, sizeof(*list), by_time);
	for (size_t i = 0; i < n; i++)
		printf("%s %s\n", list[i].time, list[i].text);
	free(list);
	return mq_say_flush_stdout(err);
}

/* --- the command --- */

static enum mq_status print_json(json_t *row, json_t *tiles, json_t *attempts, struct mq_error *err)
{
	if (json_object_set(row, "tiles", tiles) != 0 || json_object_set(row, "attempts", attempts) != 0)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a job");
	return mq_command_print_json(row, err);
}

enum mq_status mq_cmd_info(const struct mq_options *options, struct mq_error *err)
{
	json_t *rows = NULL, *row, *tiles = NULL, *attempts = NULL;
	bool json = options->count[MQ_OPT_JSON];
	struct mq_client *client = NULL;
	int64_t id;
	enum mq_status status;

	if (options->operands != 1)
		return mq_fail(err, MQ_EINVAL, "info needs the id of one job: mandelq info ID");
	if (json && options->count[MQ_OPT_LOG])
		return mq_fail(err, MQ_EINVAL, "--json has all that --log shows: not both");
	status = mq_rows_parse_id(options->operand[0], "", &id, err);
	if (status == MQ_OK)
		status = mq_client_open(options, &client, err);
	if (status == MQ_OK)
		status = mq_rows_fetch(client, &id, 1, &rows, NULL, err);
	row = json_array_get(rows, 0);
	if (status == MQ_OK && json)
		status = fetch_list(client, "tiles", id, &tiles, err);
	if (status == MQ_OK)
		status = fetch_list(client, "attempts", id, &attempts, err);
	if (status == MQ_OK)
		mq_interrupt_end();
	if (status == MQ_OK && json) {
		status = print_json(row, tiles, attempts, err);
	} else if (status == MQ_OK && options->count[MQ_OPT_LOG]) {
		status = print_log(row, attempts, err);
	} else if (status == MQ_OK) {
		print_job(row, attempts);
		status = mq_say_flush_stdout(err);
	}
	json_decref(rows);
	json_decref(tiles);
	json_decref(attempts);
	mq_client_close(client);
	return status;
}
