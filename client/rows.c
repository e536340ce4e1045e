/* rows: asks for jobs page by page. Called by the commands that look at jobs. A worker that repeats
 * itself or skips what was asked is told apart from one that answers, so that no loop is endless. */
#include "client/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 200

int64_t mq_row_id(const json_t *row)
{
	return json_integer_value(json_object_get(row, "id"));
}

enum mq_job_state mq_row_state(const json_t *row)
{
	enum mq_job_state state = MQ_JOB_QUEUED;
	const char *name = json_string_value(json_object_get(row, "state"));

	return name && mq_job_state_parse(name, &state) ? state : MQ_JOB_STATE_COUNT;
}

const char *mq_row_text(const json_t *row, const char *key, const char *unknown)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? text : unknown;
}

double mq_row_number(const json_t *row, const char *key, double unknown)
{
	const json_t *value = json_object_get(row, key);

	return json_is_number(value) ? json_number_value(value) : unknown;
}

bool mq_row_integer(const json_t *row, const char *key, int64_t min, int64_t *out)
{
	const json_t *value = json_object_get(row, key);

	if (!json_is_integer(value) || json_integer_value(value) < min ||
	    json_integer_value(value) > MQ_ID_MAX)
		return false;
	*out = json_integer_value(value);
	return true;
}

enum mq_status mq_rows_parse_id(const char *text, const char *what, int64_t *out,
				struct mq_error *err)
{
	size_t len = strspn(text, "0123456789");
	long long id = len && len <= 16 && !text[len] ? atoll(text) : 0;

	if (id < 1 || id > MQ_ID_MAX)
		return mq_fail(err, MQ_EINVAL,
			       "%s\"%.40s\" is not a job's id (a whole number from 1)", what, text);
	*out = id;
	return MQ_OK;
}

static enum mq_status fail_answer(struct mq_error *err)
{
	return mq_fail(err, MQ_EPROTO, "the worker sent no proper answer to \"status\"");
}

/* What one request gave. */
struct page {
	json_t *jobs; /* rows that are fit to be used */
	json_t *note;
	int64_t next; /* the id to go on from; 0: the worker says nothing */
	bool more, paused;
};

static void page_clear(struct page *page)
{
	json_decref(page->jobs);
	json_decref(page->note);
	*page = (struct page){ 0 };
}

static enum mq_status fetch_page(struct mq_client *client, json_t *args, struct page *page,
				 struct mq_error *err)
{
	json_t *result = NULL, *jobs;
	enum mq_status status = mq_client_call(client, "status", args, &result, err);
	int64_t id;

	if (status != MQ_OK)
		return status;
	jobs = json_object_get(result, "jobs");
	if (!json_is_array(jobs))
		status = fail_answer(err);
	for (size_t i = 0; i < json_array_size(jobs) && status == MQ_OK; i++) {
		const json_t *row = json_array_get(jobs, i);

		if (!mq_row_integer(row, "id", 1, &id) || mq_row_state(row) == MQ_JOB_STATE_COUNT)
			status = fail_answer(err);
	}
	if (status == MQ_OK) {
		page->jobs = json_incref(jobs);
		page->more = json_is_true(json_object_get(result, "more"));
		page->paused = json_is_true(json_object_get(result, "paused"));
		if (!mq_row_integer(result, "next", 1, &page->next))
			page->next = 0;
		if (json_is_string(json_object_get(result, "note")))
			page->note = json_incref(json_object_get(result, "note"));
	}
	json_decref(result);
	return status;
}

/* --- all jobs, or those that a filter lets through --- */

static enum mq_status parse_states(const char *text, json_t **states, struct mq_error *err)
{
	enum mq_job_state state;
	char name[32];

	*states = json_array();
	for (const char *p = text; *states; p += strlen(name) + 1) {
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(p, ","), p);
		if (!mq_job_state_parse(name, &state)) {
			json_decref(*states);
			*states = NULL;
			return mq_fail(err, MQ_EINVAL,
				       "--state=%.60s: queued, waiting, running, paused, assembling, "
				       "done, failed and cancelled are the states",
				       text);
		}
		if (json_array_append_new(*states, json_string(name)) != 0)
			break;
		if (!p[strlen(name)])
			return MQ_OK;
	}
	json_decref(*states);
	*states = NULL;
	return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a list of states");
}

json_t *mq_rows_open_states(void)
{
	return json_pack("[s,s,s,s,s]", "queued", "waiting", "running", "paused", "assembling");
}

enum mq_status mq_rows_filter(const struct mq_options *options, struct mq_rows_filter *out,
			      struct mq_error *err)
{
	unsigned long long limit = 0;
	enum mq_status status = MQ_OK;

	*out = (struct mq_rows_filter){ .name = options->value[MQ_OPT_NAME],
					.mine = options->count[MQ_OPT_MINE] };
	if (options->count[MQ_OPT_LIMIT])
		status = mq_option_u64(options->value[MQ_OPT_LIMIT], MQ_OPT_LIMIT, 1, 1000000000,
				       &limit, err);
	out->limit = limit;
	if (status == MQ_OK && out->name) {
		json_t *text = json_string(out->name);

		if (!text)
			status = mq_fail(err, MQ_EINVAL, "--name is not UTF-8");
		json_decref(text);
	}
	if (status == MQ_OK && options->count[MQ_OPT_STATE])
		status = parse_states(options->value[MQ_OPT_STATE], &out->states, err);
	return status;
}

static json_t *list_args(const struct mq_rows_filter *f, int64_t from, size_t want)
{
	json_t *args = json_pack("{s:I,s:I}", f->limit ? "before" : "after", (json_int_t)from, "limit",
				 (json_int_t)(want < PAGE ? want : PAGE));

	if (args && ((f->states && json_object_set(args, "states", f->states)) ||
		     (f->name && json_object_set_new(args, "name", json_string(f->name))) ||
		     (f->mine && json_object_set_new(args, "mine", json_true())))) {
		json_decref(args);
		return NULL;
	}
	return args;
}

/* Takes a page in; *from moves on to where the next one begins. */
static enum mq_status take_page(const struct mq_rows_filter *f, struct page *page, int64_t *from,
				struct mq_rows_list *out, struct mq_error *err)
{
	int64_t last = *from;

	for (size_t i = 0; i < json_array_size(page->jobs); i++) {
		int64_t id = mq_row_id(json_array_get(page->jobs, i));

		if (f->limit ? id >= last : id <= last)
			return fail_answer(err);
		last = id;
	}
	if (page->next && (f->limit ? page->next < last : page->next > last))
		last = page->next;
	if (page->more && last == *from)
		return fail_answer(err);
	*from = last;
	out->paused = page->paused;
	if (page->note) {
		json_decref(out->note);
		out->note = json_incref(page->note);
	}
	return json_array_extend(out->rows, page->jobs) == 0
		       ? MQ_OK
		       : mq_fail(err, MQ_ENOMEM_HOST, "no memory for the list of jobs");
}

/* A list that was asked for from the newest down. */
static enum mq_status turn_round(json_t **rows, struct mq_error *err)
{
	json_t *turned = json_array();

	for (size_t i = json_array_size(*rows); turned && i-- > 0;)
		if (json_array_append(turned, json_array_get(*rows, i)) != 0) {
			json_decref(turned);
			turned = NULL;
		}
	if (!turned)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for the list of jobs");
	json_decref(*rows);
	*rows = turned;
	return MQ_OK;
}

enum mq_status mq_rows_list(struct mq_client *client, const struct mq_rows_filter *filter,
			    struct mq_rows_list *out, struct mq_error *err)
{
	struct mq_rows_list list = { .rows = json_array() };
	int64_t from = filter->limit ? MQ_ID_MAX : 0;
	enum mq_status status = list.rows ? MQ_OK : mq_fail(err, MQ_ENOMEM_HOST, "no memory for a list");
	bool more = true;

	while (more && status == MQ_OK) {
		size_t left = filter->limit ? filter->limit - json_array_size(list.rows) : PAGE;
		struct page page = { 0 };

		status = fetch_page(client, list_args(filter, from, left), &page, err);
		if (status == MQ_OK)
			status = take_page(filter, &page, &from, &list, err);
		more = page.more && (!filter->limit || json_array_size(list.rows) < filter->limit);
		page_clear(&page);
	}
	if (status == MQ_OK && filter->limit)
		status = turn_round(&list.rows, err);
	if (status == MQ_OK)
		*out = list;
	else
		mq_rows_list_clear(&list);
	return status;
}

void mq_rows_list_clear(struct mq_rows_list *list)
{
	json_decref(list->rows);
	json_decref(list->note);
	*list = (struct mq_rows_list){ 0 };
}

/* --- some jobs by their ids --- */

static const json_t *find_row(const json_t *page, int64_t id)
{
	for (size_t i = 0; i < json_array_size(page); i++)
		if (mq_row_id(json_array_get(page, i)) == id)
			return json_array_get(page, i);
	return NULL;
}

/* Asks for some of ids[0..count-1]; *got leading ones have their rows appended. */
static enum mq_status fetch_some(struct mq_client *client, const int64_t *ids, size_t count,
				 json_t *rows, json_t **note, size_t *got, struct mq_error *err)
{
	json_t *list = json_array();
	struct page page = { 0 };
	enum mq_status status;

	for (size_t i = 0; i < count && i < PAGE; i++)
		if (json_array_append_new(list, json_integer(ids[i])) != 0) {
			json_decref(list);
			return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a list of jobs");
		}
	status = fetch_page(client, json_pack("{s:o}", "ids", list), &page, err);
	if (status != MQ_OK)
		return status;
	if (note && page.note) {
		json_decref(*note);
		*note = json_incref(page.note);
	}
	for (*got = 0; *got < count && *got < PAGE; (*got)++) {
		const json_t *row = find_row(page.jobs, ids[*got]);

		if (!row)
			break;
		if (json_array_append(rows, (json_t *)row) != 0) {
			status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for the list of jobs");
			break;
		}
	}
	if (status == MQ_OK && *got == 0)
		status = fail_answer(err);
	page_clear(&page);
	return status;
}

static enum mq_status fetch_all(struct mq_client *client, json_t **rows, json_t **note,
				struct mq_error *err)
{
	const struct mq_rows_filter all = { 0 };
	struct mq_rows_list list = { 0 };
	enum mq_status status = mq_rows_list(client, &all, &list, err);

	if (status != MQ_OK)
		return status;
	*rows = list.rows;
	if (note)
		*note = list.note;
	else
		json_decref(list.note);
	return MQ_OK;
}

enum mq_status mq_rows_fetch(struct mq_client *client, const int64_t *ids, size_t count,
			     json_t **rows, json_t **note, struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	json_t *all;
	size_t at = 0, got = 0;

	if (count == 0)
		return fetch_all(client, rows, note, err);
	all = json_array();
	if (!all)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for the list of jobs");
	for (; at < count && status == MQ_OK; at += got)
		status = fetch_some(client, ids + at, count - at, all, note, &got, err);
	if (status == MQ_OK)
		*rows = all;
	else
		json_decref(all);
	return status;
}
