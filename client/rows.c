/* rows: asks for jobs page by page. Called by the commands that look at jobs. A worker that repeats
 * itself or skips what was asked is told apart from one that answers, so that no loop is endless. */
#include "client/rows.h"

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

/* One request. *page is an array of rows that are fit to be used, the caller's. */
static enum mq_status fetch_page(struct mq_client *client, json_t *args, json_t **page, bool *more,
				 json_t **note, struct mq_error *err)
{
	json_t *result = NULL, *jobs, *text;
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
		*page = json_incref(jobs);
		*more = json_is_true(json_object_get(result, "more"));
		text = json_object_get(result, "note");
		if (note && json_is_string(text)) {
			json_decref(*note);
			*note = json_incref(text);
		}
	}
	json_decref(result);
	return status;
}

static enum mq_status fetch_all(struct mq_client *client, json_t *rows, json_t **note,
				struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	int64_t after = 0;
	bool more = true;

	while (more && status == MQ_OK) {
		json_t *page = NULL;

		status = fetch_page(
			client, json_pack("{s:I,s:i}", "after", (json_int_t)after, "limit", PAGE),
			&page, &more, note, err);
		if (status == MQ_OK && more && json_array_size(page) == 0)
			status = fail_answer(err);
		for (size_t i = 0; status == MQ_OK && i < json_array_size(page); i++) {
			int64_t id = mq_row_id(json_array_get(page, i));

			if (id <= after)
				status = fail_answer(err);
			after = id;
		}
		if (status == MQ_OK && json_array_extend(rows, page) != 0)
			status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for the list of jobs");
		json_decref(page);
	}
	return status;
}

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
	json_t *list = json_array(), *page = NULL;
	enum mq_status status;
	bool more;

	for (size_t i = 0; i < count && i < PAGE; i++)
		if (json_array_append_new(list, json_integer(ids[i])) != 0) {
			json_decref(list);
			return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a list of jobs");
		}
	status = fetch_page(client, json_pack("{s:o}", "ids", list), &page, &more, note, err);
	if (status != MQ_OK)
		return status;
	for (*got = 0; *got < count && *got < PAGE; (*got)++) {
		const json_t *row = find_row(page, ids[*got]);

		if (!row)
			break;
		if (json_array_append(rows, (json_t *)row) != 0) {
			status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for the list of jobs");
			break;
		}
	}
	if (status == MQ_OK && *got == 0)
		status = fail_answer(err);
	json_decref(page);
	return status;
}

enum mq_status mq_rows_fetch(struct mq_client *client, const int64_t *ids, size_t count,
			     json_t **rows, json_t **note, struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	json_t *all = json_array();
	size_t at = 0, got = 0;

	if (!all)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for the list of jobs");
	if (count == 0)
		status = fetch_all(client, all, note, err);
	for (; at < count && status == MQ_OK; at += got)
		status = fetch_some(client, ids + at, count - at, all, note, &got, err);
	if (status == MQ_OK)
		*rows = all;
	else
		json_decref(all);
	return status;
}
