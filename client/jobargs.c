/* jobargs: options to JSON, with --like as the base and --print as a size. Called by submit and
 * render. */
#include "client/jobargs.h"

#include <stdlib.h>
#include <string.h>

#include "client/command.h"
#include "client/print.h"
#include "client/rows.h"
#include "src/decimal.h"
#include "src/job.h"
#include "src/pngtext.h"

#define NUMBER_BYTES_MAX (MQ_DECIMAL_DIGITS + 64)

static bool all_digits(const char *text)
{
	return *text && !text[strspn(text, "0123456789")];
}

/* The job or picture to start from, or NULL. */
static const char *base_of(const struct mq_options *options)
{
	if (options->operands)
		return options->operand[0];
	return options->value[MQ_OPT_LIKE];
}

bool mq_jobargs_need_worker(const struct mq_options *options)
{
	return options->count[MQ_OPT_LIKE] && all_digits(options->value[MQ_OPT_LIKE]);
}

static enum mq_status no_memory(struct mq_error *err)
{
	return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a job");
}

static enum mq_status set(json_t *job, const char *key, json_t *value, struct mq_error *err)
{
	return json_object_set_new(job, key, value) == 0 ? MQ_OK : no_memory(err);
}

/* A text as JSON; NULL with err filled when it is not UTF-8 or out of proportion. */
static json_t *text_value(const char *text, size_t len, enum mq_option_id id, struct mq_error *err)
{
	json_t *value;

	if (len > NUMBER_BYTES_MAX) {
		mq_fail(err, MQ_EINVAL, "--%s: a number has at most %d digits",
			mq_option_table[id].name, MQ_DECIMAL_DIGITS);
		return NULL;
	}
	value = json_stringn(text, len);
	if (!value)
		mq_fail(err, MQ_EINVAL, "--%s is not UTF-8", mq_option_table[id].name);
	return value;
}

static enum mq_status set_text(json_t *job, const char *key, const struct mq_options *options,
			       enum mq_option_id id, struct mq_error *err)
{
	const char *text = options->value[id];
	json_t *value;

	if (!options->count[id])
		return MQ_OK;
	value = text_value(text, strlen(text), id, err);
	return value ? set(job, key, value, err) : MQ_EINVAL;
}

/* "A,B,..." of exactly n numbers. */
static enum mq_status set_list(json_t *job, const char *key, const struct mq_options *options,
			       enum mq_option_id id, size_t n, struct mq_error *err)
{
	const char *p = options->value[id];
	json_t *list, *value;
	size_t got = 0;

	if (!options->count[id])
		return MQ_OK;
	list = json_array();
	for (;;) {
		size_t len = strcspn(p, ","), skip = strspn(p, " \t"), end = len;

		skip = skip < len ? skip : len;
		while (end > skip && (p[end - 1] == ' ' || p[end - 1] == '\t'))
			end--;
		value = text_value(p + skip, end - skip, id, err);
		if (!value || json_array_append_new(list, value) != 0) {
			json_decref(list);
			return value ? no_memory(err) : MQ_EINVAL;
		}
		got++;
		if (!p[len] || got > n)
			break;
		p += len + 1;
	}
	if (got != n) {
		json_decref(list);
		return mq_fail(err, MQ_EINVAL,
			       "--%s: %zu numbers with commas between them are needed: --%s=%s",
			       mq_option_table[id].name, n, mq_option_table[id].name,
			       mq_option_table[id].value);
	}
	return set(job, key, list, err);
}

static enum mq_status set_number(json_t *job, const char *key, const struct mq_options *options,
				 enum mq_option_id id, unsigned long long max, struct mq_error *err)
{
	unsigned long long n;
	enum mq_status status;

	if (!options->count[id])
		return MQ_OK;
	status = mq_option_u64(options->value[id], id, 1, max, &n, err);
	return status == MQ_OK ? set(job, key, json_integer((json_int_t)n), err) : status;
}

/* --- the base --- */

static enum mq_status base_from_picture(const char *path, bool operand, json_t **job,
					struct mq_error *err)
{
	struct mq_error why;
	char *text = NULL;
	enum mq_status status = mq_pngtext_read(path, &text, &why);

	if (status == MQ_ENOMEM_HOST)
		return mq_fail(err, status, "%s", why.text);
	/* A file that is not there is bad usage here, not a missing job; and a size or a number without its
	 * option looks like one. */
	if (status != MQ_OK && operand)
		return mq_fail(err, MQ_EINVAL,
			       "%.300s; an operand is a picture (.png) to make again or, with submit, a file "
			       "of jobs (.json); options begin with --",
			       why.text);
	if (status != MQ_OK)
		return mq_fail(err, MQ_EINVAL, "--like: no job can be read from a picture: %s", why.text);
	*job = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	free(text);
	if (!json_is_object(*job)) {
		json_decref(*job);
		*job = NULL;
		return mq_fail(err, MQ_EINVAL, "the job in the picture %s is damaged", path);
	}
	return MQ_OK;
}

static enum mq_status base_from_job(const char *text, struct mq_client *client, json_t **job,
				    struct mq_error *err)
{
	json_t *rows = NULL, *settings;
	struct mq_error why;
	int64_t id;
	enum mq_status status = mq_rows_parse_id(text, "--like: ", &id, err);

	if (status != MQ_OK)
		return status;
	status = mq_rows_fetch(client, &id, 1, &rows, NULL, &why);
	if (status != MQ_OK)
		return mq_fail(err, status, "%s%s", status == MQ_ENOENT ? "--like: " : "", why.text);
	settings = json_object_get(json_array_get(rows, 0), "settings");
	*job = json_is_object(settings) ? json_deep_copy(settings) : NULL;
	json_decref(rows);
	return *job ? MQ_OK
		    : mq_fail(err, MQ_EPROTO, "the worker gave no settings of job %lld",
			      (long long)id);
}

/* Takes out of the base what the options replace as a whole. */
static enum mq_status make_room(json_t *job, const struct mq_options *options, struct mq_error *err)
{
	bool center = options->count[MQ_OPT_CENTER], zoom = options->count[MQ_OPT_ZOOM];
	const char *palette = options->value[MQ_OPT_PALETTE];

	if ((center != zoom) && json_object_get(job, "view"))
		return mq_fail(err, MQ_EINVAL,
			       "--%s: what --like names has its view as bounds, so --%s is "
			       "needed too",
			       center ? "center" : "zoom", center ? "zoom" : "center");
	if (center || zoom)
		json_object_del(job, "view");
	if (options->count[MQ_OPT_VIEW]) {
		json_object_del(job, "center");
		json_object_del(job, "zoom");
	}
	/* gray has no use for them, and the worker would say so */
	if (palette && strcmp(palette, "gray") == 0) {
		json_object_del(job, "palette_period");
		json_object_del(job, "palette_offset");
		json_object_del(job, "inside");
	}
	return MQ_OK;
}

/* --- size --- */

static enum mq_status set_size(json_t *job, const struct mq_options *options, struct mq_error *err)
{
	struct mq_print print = { 0 };
	enum mq_status status = MQ_OK;

	if (options->count[MQ_OPT_SIZE] && options->count[MQ_OPT_PRINT])
		return mq_fail(err, MQ_EINVAL,
			       "--print sets the size: give --size or --print, not both");
	if (options->count[MQ_OPT_SIZE])
		status = mq_print_parse_size(options->value[MQ_OPT_SIZE], &print, err);
	else if (options->count[MQ_OPT_PRINT])
		status = mq_print_parse(options->value[MQ_OPT_PRINT], &print, err);
	else
		return MQ_OK;
	if (status == MQ_OK)
		status = set(job, "width", json_integer(print.width), err);
	if (status == MQ_OK)
		status = set(job, "height", json_integer(print.height), err);
	if (status == MQ_OK && print.ppm)
		status = set(job, "ppm", json_integer(print.ppm), err);
	return status;
}

static enum mq_status set_iterations(json_t *job, const struct mq_options *options,
				     struct mq_error *err)
{
	const char *text = options->value[MQ_OPT_ITERATIONS];
	unsigned long long n;

	if (text && strcmp(text, "auto") == 0)
		return set(job, "iterations", json_string("auto"), err);
	if (text && mq_option_u64(text, MQ_OPT_ITERATIONS, 1, 4294967294u, &n, NULL) != MQ_OK)
		return mq_fail(err, MQ_EINVAL,
			       "--iterations=%.40s: auto, or a whole number from 1 to 4294967294, is needed",
			       text);
	return set_number(job, "iterations", options, MQ_OPT_ITERATIONS, 4294967294u, err);
}

enum mq_status mq_jobargs_apply(json_t *job, const struct mq_options *o, struct mq_error *err)
{
	enum mq_status status;

	if ((status = make_room(job, o, err)) != MQ_OK ||
	    (status = set_size(job, o, err)) != MQ_OK ||
	    (status = set_list(job, "view", o, MQ_OPT_VIEW, 4, err)) != MQ_OK ||
	    (status = set_list(job, "center", o, MQ_OPT_CENTER, 2, err)) != MQ_OK ||
	    (status = set_text(job, "zoom", o, MQ_OPT_ZOOM, err)) != MQ_OK ||
	    (status = set_iterations(job, o, err)) != MQ_OK ||
	    (status = set_text(job, "palette", o, MQ_OPT_PALETTE, err)) != MQ_OK ||
	    (status = set_text(job, "palette_period", o, MQ_OPT_PALETTE_PERIOD, err)) != MQ_OK ||
	    (status = set_text(job, "palette_offset", o, MQ_OPT_PALETTE_OFFSET, err)) != MQ_OK ||
	    (status = set_text(job, "inside", o, MQ_OPT_INSIDE, err)) != MQ_OK ||
	    (status = set_text(job, "compression", o, MQ_OPT_COMPRESSION, err)) != MQ_OK ||
	    (status = set_number(job, "supersample", o, MQ_OPT_SUPERSAMPLE, MQ_JOB_SUPERSAMPLE_MAX,
				 err)) != MQ_OK)
		return status;
	return o->count[MQ_OPT_KEEP_COUNTS] ? set(job, "keep_counts", json_true(), err) : MQ_OK;
}

enum mq_status mq_jobargs_build(const struct mq_options *options, struct mq_client *client,
				json_t **job, struct mq_error *err)
{
	const char *base = base_of(options);
	enum mq_status status = MQ_OK;
	json_t *made = NULL;

	if (options->operands > 1)
		return mq_fail(err, MQ_EINVAL,
			       "\"%.80s\": one picture at most can be rendered again",
			       options->operand[1]);
	if (options->operands && options->count[MQ_OPT_LIKE])
		return mq_fail(err, MQ_EINVAL,
			       "\"%.80s\" and --like: only one of them can be the base",
			       options->operand[0]);
	if (mq_jobargs_need_worker(options))
		status = base_from_job(base, client, &made, err);
	else if (base)
		status = base_from_picture(base, options->operands, &made, err);
	else if (!(made = json_object()))
		status = no_memory(err);
	if (status == MQ_OK)
		status = mq_jobargs_apply(made, options, err);
	if (status == MQ_OK)
		*job = made;
	else
		json_decref(made);
	return status;
}

/* --- submit --- */

static enum mq_status read_priority(const struct mq_options *options, json_int_t *out,
				    struct mq_error *err)
{
	const char *text = options->value[MQ_OPT_PRIORITY];

	*out = 0;
	return text ? mq_command_priority(text, "--priority=", out, err) : MQ_OK;
}

/* 0 when it is not given. */
static enum mq_status read_after(const struct mq_options *options, int64_t *out, struct mq_error *err)
{
	*out = 0;
	if (!options->count[MQ_OPT_AFTER])
		return MQ_OK;
	return mq_rows_parse_id(options->value[MQ_OPT_AFTER], "--after: ", out, err);
}

/* --name as the worker gets it. */
static const char *name_of(const struct mq_options *options)
{
	return options->value[MQ_OPT_NAME] ? options->value[MQ_OPT_NAME] : "";
}

/* The options by themselves, so that what is wrong with one is said before files are opened. */
static enum mq_status check_settings(const struct mq_options *options, struct mq_error *err)
{
	json_t *scratch = json_object();
	enum mq_status status = scratch ? mq_jobargs_apply(scratch, options, err) : no_memory(err);

	json_decref(scratch);
	return status;
}

enum mq_status mq_jobargs_check(const struct mq_options *options, const char *request_id,
				struct mq_error *err)
{
	const char *name = name_of(options);
	json_int_t priority;
	int64_t after;
	enum mq_status status = MQ_OK;

	if (name[0])
		status = mq_job_check_label(name, strlen(name), MQ_JOB_NAME_MAX, "--name", err);
	if (status == MQ_OK)
		status = mq_job_check_label(request_id, strlen(request_id), MQ_JOB_REQUEST_ID_MAX,
					    "--request-id", err);
	if (status == MQ_OK)
		status = read_after(options, &after, err);
	if (status == MQ_OK)
		status = read_priority(options, &priority, err);
	return status == MQ_OK ? check_settings(options, err) : status;
}

enum mq_status mq_jobargs_submit(const struct mq_options *options, json_t *job,
				 const char *request_id, json_t **args, struct mq_error *err)
{
	json_int_t priority = 0;
	int64_t after = 0;
	enum mq_status status = mq_jobargs_check(options, request_id, err);

	if (status == MQ_OK)
		status = read_priority(options, &priority, err);
	if (status == MQ_OK)
		status = read_after(options, &after, err);
	if (status != MQ_OK)
		return status;
	*args = json_pack("{s:O,s:s,s:I,s:s,s:o}", "job", job, "name", name_of(options), "priority",
			  priority, "request_id", request_id, "after",
			  after ? json_integer((json_int_t)after) : json_null());
	return *args ? MQ_OK : no_memory(err);
}
