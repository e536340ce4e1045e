/* command_util: what more than one command does with its operands, and the submit call. */
#include "client/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "client/interrupt.h"
#include "client/jobargs.h"
#include "client/rows.h"
#include "client/say.h"
#include "src/clock.h"
#include "src/job.h"

enum mq_status mq_command_ids(const struct mq_options *options, int64_t **ids, size_t *count,
			      struct mq_error *err)
{
	int64_t *list = calloc(options->operands + 1, sizeof(*list));
	enum mq_status status = MQ_OK;
	size_t n = 0;

	if (!list)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for %zu ids", options->operands);
	for (size_t i = 0; i < options->operands && status == MQ_OK; i++) {
		size_t j = 0;

		status = mq_rows_parse_id(options->operand[i], "", &list[n], err);
		while (status == MQ_OK && j < n && list[j] != list[n])
			j++;
		n += status == MQ_OK && j == n;
	}
	if (status != MQ_OK) {
		free(list);
		return status;
	}
	*ids = list;
	*count = n;
	return MQ_OK;
}

enum mq_status mq_command_priority(const char *text, const char *what, json_int_t *out,
				   struct mq_error *err)
{
	bool negative = *text == '-';
	size_t len = strspn(text + negative, "0123456789");
	long long n = len && len <= 7 && !text[negative + len] ? atoll(text) : INT64_MAX;

	if (n < -MQ_JOB_PRIORITY_MAX || n > MQ_JOB_PRIORITY_MAX)
		return mq_fail(err, MQ_EINVAL, "%s%.40s: a whole number from %d to %d is needed", what, text,
			       -MQ_JOB_PRIORITY_MAX, MQ_JOB_PRIORITY_MAX);
	*out = n;
	return MQ_OK;
}

enum mq_status mq_command_print_json(const json_t *value, struct mq_error *err)
{
	if (json_dumpf(value, stdout, JSON_INDENT(2) | JSON_SORT_KEYS | JSON_REAL_PRECISION(15)) != 0)
		return mq_fail(err, MQ_EIO, "cannot write to standard output");
	putchar('\n');
	return mq_say_flush_stdout(err);
}

enum mq_status mq_command_random_id(char out[24], struct mq_error *err)
{
	uint64_t bits;

	if (getrandom(&bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
		return mq_fail(err, MQ_EIO, "the system gives no random numbers");
	snprintf(out, 24, "auto-%016llx", (unsigned long long)bits);
	return MQ_OK;
}

enum mq_status mq_command_until(const struct mq_options *options, enum mq_option_id id,
				int64_t *until, struct mq_error *err)
{
	unsigned long long ms;
	enum mq_status status;

	*until = 0;
	if (!options->count[id])
		return MQ_OK;
	status = mq_option_seconds(options->value[id], id, &ms, err);
	if (status == MQ_OK)
		*until = mq_clock_ms() + (int64_t)ms;
	return status;
}

void mq_command_warn_name(const char *file, bool numbers)
{
	static const char *const formats[] = { "png", "npy",  "jpg", "jpeg", "tif",  "tiff", "webp", "gif",
					       "bmp", "avif", "jxl", "heic", "jp2", "ppm",  "svg",  "pdf" };
	const char *dot = strrchr(file, '.'), *own = numbers ? "npy" : "png";

	if (!dot || strchr(dot, '/') || strcasecmp(dot + 1, own) == 0)
		return;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (strcasecmp(dot + 1, formats[i]) == 0)
			mq_say("warning: -o %s: a %s is written, whatever the name says", file,
			       numbers ? ".npy file" : "PNG");
}

void mq_command_warnings(const json_t *result)
{
	const json_t *warnings = json_object_get(result, "warnings");

	for (size_t i = 0; i < json_array_size(warnings); i++)
		if (json_is_string(json_array_get(warnings, i)))
			mq_say("warning: %s", json_string_value(json_array_get(warnings, i)));
}

enum mq_status mq_command_submit(struct mq_client *client, const struct mq_options *options,
				 json_t *job, const char *request_id, struct mq_submitted *out,
				 struct mq_error *err)
{
	json_t *args = NULL, *result = NULL;
	enum mq_status status = mq_jobargs_submit(options, job, request_id, &args, err);

	if (status == MQ_OK)
		status = mq_client_call(client, "submit", args, &result, err);
	if (status != MQ_OK)
		return status;
	mq_command_warnings(result);
	if (!mq_row_integer(result, "id", 1, &out->id))
		status = mq_fail(err, MQ_EPROTO, "the worker sent no proper answer to \"submit\"");
	out->existing = json_is_true(json_object_get(result, "existing"));
	json_decref(result);
	return status;
}
