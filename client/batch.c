/* batch: see batch.h. Called by cmd_submit. */
#include "config.h"

#include "client/batch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command.h"
#include "client/jobargs.h"
#include "client/rows.h"
#include "src/job.h"

#define FILE_MAX (256u << 20)

static bool is_json(const char *operand)
{
	size_t len = strlen(operand);

	return strcmp(operand, "-") == 0 || (len > 5 && strcmp(operand + len - 5, ".json") == 0);
}

bool mq_batch_given(const struct mq_options *options)
{
	for (size_t i = 0; i < options->operands; i++)
		if (is_json(options->operand[i]))
			return true;
	return false;
}

/* --- files --- */

static enum mq_status read_stream(FILE *f, const char *name, char **text, size_t *len,
				  struct mq_error *err)
{
	size_t size = 65536, got = 0, n;
	char *buffer = NULL, *more;

	for (;;) {
		more = realloc(buffer, size);
		if (!more) {
			free(buffer);
			return mq_fail(err, MQ_ENOMEM_HOST, "no memory to read %s", name);
		}
		buffer = more;
		n = fread(buffer + got, 1, size - got, f);
		got += n;
		if (n == 0 || got > FILE_MAX)
			break;
		if (got == size)
			size *= 2;
	}
	if (ferror(f) || got > FILE_MAX) {
		free(buffer);
		return mq_fail(err, MQ_EINVAL, "%s: %s", name,
			       got > FILE_MAX ? "over 256 MiB of jobs" : strerror(errno));
	}
	*text = buffer;
	*len = got;
	return MQ_OK;
}

static enum mq_status read_file(const char *path, char **text, size_t *len, struct mq_error *err)
{
	enum mq_status status;
	FILE *f;

	if (strcmp(path, "-") == 0)
		return read_stream(stdin, "standard input", text, len, err);
	f = fopen(path, "re");
	if (!f)
		return mq_fail(err, MQ_EINVAL, "cannot read %.200s: %s", path, strerror(errno));
	status = read_stream(f, path, text, len, err);
	fclose(f);
	return status;
}

static unsigned line_of(const char *text, size_t at)
{
	unsigned line = 1;

	for (size_t i = 0; i < at; i++)
		line += text[i] == '\n';
	return line;
}

/* The values of a text, one after another, an array's elements each: appended to items. */
static enum mq_status parse(const char *name, const char *text, size_t len, json_t *items,
			    struct mq_error *err)
{
	size_t at = 0;

	for (;;) {
		json_error_t why;
		json_t *value;
		int rc;

		while (at < len && strchr(" \t\r\n", text[at]))
			at++;
		if (at == len)
			return MQ_OK;
		value = json_loadb(text + at, len - at, JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK,
				   &why);
		if (!value)
			return mq_fail(err, MQ_EINVAL, "%s:%u: %s", name,
				       line_of(text, at) + (unsigned)why.line - 1, why.text);
		rc = json_is_array(value) ? json_array_extend(items, value)
					  : json_array_append(items, value);
		json_decref(value);
		if (rc != 0)
			return mq_fail(err, MQ_ENOMEM_HOST, "no memory for the jobs of %s", name);
		at += (size_t)why.position;
	}
}

/* --- from a file's object to a request --- */

/* Takes key out of the job; NULL when it is not there. */
static json_t *take(json_t *job, const char *key)
{
	json_t *value = json_incref(json_object_get(job, key));

	json_object_del(job, key);
	return value;
}

static const struct label {
	const char *key, *what;
	bool text;
	json_int_t min, max; /* bytes of a text, a number's range */
} labels[] = {
	{ "name", "\"name\"", true, 0, MQ_JOB_NAME_MAX },
	{ "request_id", "\"request_id\"", true, 0, MQ_JOB_REQUEST_ID_MAX },
	{ "priority", "\"priority\"", false, -MQ_JOB_PRIORITY_MAX, MQ_JOB_PRIORITY_MAX },
	{ "after", "\"after\", a job's id,", false, 1, MQ_ID_MAX },
};

/* As the worker checks it, which would not see it before the jobs ahead of it are queued. */
static enum mq_status check_label(const struct label *label, const json_t *value, struct mq_error *err)
{
	json_int_t n = json_integer_value(value);

	if (label->text && !json_is_string(value))
		return mq_fail(err, MQ_EINVAL, "%s must be text", label->what);
	if (label->text)
		return json_string_length(value)
			       ? mq_job_check_label(json_string_value(value), json_string_length(value),
						    (size_t)label->max, label->what, err)
			       : MQ_OK;
	if (!json_is_integer(value) || n < label->min || n > label->max)
		return mq_fail(err, MQ_EINVAL, "%s must be a whole number from %lld to %lld", label->what,
			       (long long)label->min, (long long)label->max);
	return MQ_OK;
}

/* An empty text is as none: a request without an id gets one, so that it can be repeated. */
static enum mq_status move_labels(json_t *job, json_t *args, struct mq_error *err)
{
	enum mq_status status = MQ_OK;

	for (size_t i = 0; status == MQ_OK && i < sizeof(labels) / sizeof(labels[0]); i++) {
		json_t *value = take(job, labels[i].key);

		if (!value)
			continue;
		status = check_label(&labels[i], value, err);
		if (status == MQ_OK && !(labels[i].text && json_string_length(value) == 0) &&
		    json_object_set(args, labels[i].key, value) != 0)
			status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for a request");
		json_decref(value);
	}
	return status;
}

/* The options that are given win over the file's labels. */
static enum mq_status add_labels(const struct mq_options *options, json_t *args, struct mq_error *err)
{
	static const struct {
		enum mq_option_id id;
		const char *key;
	} given[] = { { MQ_OPT_NAME, "name" }, { MQ_OPT_PRIORITY, "priority" }, { MQ_OPT_AFTER, "after" } };
	json_t *empty = json_object(), *mine = NULL;
	char own[24];
	enum mq_status status = mq_command_random_id(own, err);

	if (status == MQ_OK)
		status = mq_jobargs_submit(options, empty, own, &mine, err);
	for (size_t i = 0; status == MQ_OK && i < sizeof(given) / sizeof(given[0]); i++)
		if (options->count[given[i].id] &&
		    json_object_set(args, given[i].key, json_object_get(mine, given[i].key)) != 0)
			status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for a request");
	if (status == MQ_OK && json_object_update_missing(args, mine) != 0)
		status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for a request");
	json_decref(empty);
	json_decref(mine);
	return status;
}

static enum mq_status request_of(const struct mq_options *options, const json_t *item, json_t **out,
				 struct mq_error *err)
{
	json_t *job, *args;
	struct mq_job *checked = NULL;
	enum mq_status status;

	if (!json_is_object(item))
		return mq_fail(err, MQ_EINVAL, "a job is an object, {\"width\":..., ...}");
	job = json_deep_copy(item);
	args = json_object();
	status = job && args ? move_labels(job, args, err)
			     : mq_fail(err, MQ_ENOMEM_HOST, "no memory for a job");
	if (status == MQ_OK)
		status = mq_jobargs_apply(job, options, err);
	if (status == MQ_OK)
		status = mq_job_from_json(job, &checked, NULL, err);
	mq_job_free(checked);
	if (status == MQ_OK && json_object_set(args, "job", job) != 0)
		status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for a request");
	if (status == MQ_OK)
		status = add_labels(options, args, err);
	json_decref(job);
	if (status == MQ_OK)
		*out = args;
	else
		json_decref(args);
	return status;
}

/* known: the requests by their ids. One id for two jobs would be refused when the first is queued. */
static enum mq_status note_id(json_t *known, json_t *request, struct mq_error *err)
{
	const char *id = json_string_value(json_object_get(request, "request_id"));
	const json_t *other = json_object_get(known, id);

	if (other && !json_equal(other, request))
		return mq_fail(err, MQ_EINVAL, "\"request_id\" %.80s is that of another job before it", id);
	if (!other && json_object_set(known, id, request) != 0)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a request");
	return MQ_OK;
}

static enum mq_status add_requests(const struct mq_options *options, const char *name,
				   const json_t *items, json_t *requests, json_t *known,
				   struct mq_error *err)
{
	for (size_t i = 0; i < json_array_size(items); i++) {
		json_t *request = NULL;
		struct mq_error why;
		enum mq_status status = request_of(options, json_array_get(items, i), &request, &why);

		if (status == MQ_OK)
			status = note_id(known, request, &why);
		if (status == MQ_OK && json_array_append(requests, request) != 0)
			status = mq_fail(&why, MQ_ENOMEM_HOST, "no memory for it");
		json_decref(request);
		if (status != MQ_OK)
			return mq_fail(err, status, "%.100s, job %zu: %s", name, i + 1, why.text);
	}
	return MQ_OK;
}

static enum mq_status check(const struct mq_options *options, struct mq_error *err)
{
	for (size_t i = 0; i < options->operands; i++)
		if (!is_json(options->operand[i]))
			return mq_fail(err, MQ_EINVAL,
				       "\"%.80s\": a picture and files of jobs do not go together",
				       options->operand[i]);
	if (options->count[MQ_OPT_LIKE])
		return mq_fail(err, MQ_EINVAL, "--like and files of jobs do not go together");
	if (options->count[MQ_OPT_REQUEST_ID])
		return mq_fail(err, MQ_EINVAL,
			       "--request-id is for one job; in a file each has its \"request_id\"");
	return MQ_OK;
}

enum mq_status mq_batch_read(const struct mq_options *options, json_t **requests, struct mq_error *err)
{
	json_t *all = json_array(), *known = json_object();
	enum mq_status status = all && known ? check(options, err)
					     : mq_fail(err, MQ_ENOMEM_HOST, "no memory for jobs");

	for (size_t i = 0; status == MQ_OK && i < options->operands; i++) {
		const char *path = options->operand[i];
		const char *name = strcmp(path, "-") ? path : "standard input";
		json_t *items = json_array();
		char *text = NULL;
		size_t len = 0;

		status = read_file(path, &text, &len, err);
		if (status == MQ_OK)
			status = parse(name, text, len, items, err);
		if (status == MQ_OK)
			status = add_requests(options, name, items, all, known, err);
		json_decref(items);
		free(text);
	}
	if (status == MQ_OK && json_array_size(all) == 0)
		status = mq_fail(err, MQ_EINVAL, "there is no job in what was given");
	json_decref(known);
	if (status == MQ_OK)
		*requests = all;
	else
		json_decref(all);
	return status;
}
