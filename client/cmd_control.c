/* cmd_control: the commands that do one thing to each of some jobs: cancel, pause, resume, retry,
 * priority, remove. Every id is tried; the first failure is the one that is returned. */
#include <stdlib.h>
#include <string.h>

#include "client/command.h"
#include "client/rows.h"
#include "client/say.h"

struct control {
	const char *verb, *command;
	json_t *more; /* arguments besides the id, or NULL */
	bool all;     /* there is --all, which says the whole queue */
};

/* What has come of it, for people. */
static void tell(const struct control *c, int64_t id, const json_t *result)
{
	const char *state = mq_row_text(result, "state", "");

	if (json_is_true(json_object_get(result, "removed")))
		mq_tell("job %lld removed", (long long)id);
	else if (strcmp(c->verb, "priority") == 0)
		mq_tell("job %lld has priority %.0f", (long long)id, mq_row_number(result, "priority", 0));
	else
		mq_tell("job %lld %s", (long long)id, state);
}

static enum mq_status one(struct mq_client *client, const struct control *c, int64_t id, json_t *done,
			  struct mq_error *err)
{
	json_t *result = NULL, *args = json_pack("{s:I}", "id", (json_int_t)id);
	enum mq_status status;

	if (args && c->more && json_object_update(args, c->more) != 0) {
		json_decref(args);
		args = NULL;
	}
	status = mq_client_call(client, c->verb, args, &result, err);
	if (status == MQ_OK) {
		if (done)
			json_array_append(done, result);
		else
			tell(c, id, result);
	}
	json_decref(result);
	return status;
}

static enum mq_status each(struct mq_client *client, const struct control *c, const int64_t *ids,
			   size_t count, json_t *done, struct mq_error *err)
{
	enum mq_status status = MQ_OK;

	for (size_t i = 0; i < count; i++) {
		struct mq_error why;
		enum mq_status s = one(client, c, ids[i], done, &why);

		if (s != MQ_OK)
			mq_say("%s", why.text);
		if (s != MQ_OK && status == MQ_OK)
			status = mq_fail(err, s, "%s", "");
		if (s == MQ_EUNREACH || s == MQ_ESTOPPED)
			break;
	}
	return status;
}

/* ids[0..count-1] of this command; options for --json and where the worker is. */
static enum mq_status run(const struct mq_options *options, const struct control *c,
			  const int64_t *ids, size_t count, struct mq_error *err)
{
	json_t *done = options->count[MQ_OPT_JSON] ? json_array() : NULL;
	struct mq_client *client = NULL;
	struct mq_error why;
	enum mq_status status = mq_client_open(options, &client, err), printed;

	if (status == MQ_OK)
		status = each(client, c, ids, count, done, err);
	if (client && done) {
		printed = mq_command_print_json(done, &why);
		if (printed != MQ_OK && status == MQ_OK)
			status = mq_fail(err, printed, "%s", why.text);
	}
	json_decref(done);
	mq_client_close(client);
	return status;
}

static enum mq_status control(const struct mq_options *options, const struct control *c,
			      struct mq_error *err)
{
	int64_t *ids = NULL;
	size_t count = 0;
	enum mq_status status;

	if (options->operands == 0)
		return mq_fail(err, MQ_EINVAL, "%s needs the id of a job%s: mandelq %s ID%s", c->command,
			       c->all ? ", or --all" : "", c->command, c->all ? " | --all" : "");
	status = mq_command_ids(options, &ids, &count, err);
	if (status == MQ_OK)
		status = run(options, c, ids, count, err);
	free(ids);
	return status;
}

enum mq_status mq_cmd_cancel(const struct mq_options *options, struct mq_error *err)
{
	return control(options, &(struct control){ "cancel", "cancel", NULL, false }, err);
}

enum mq_status mq_cmd_retry(const struct mq_options *options, struct mq_error *err)
{
	return control(options, &(struct control){ "retry", "retry", NULL, false }, err);
}

enum mq_status mq_cmd_remove(const struct mq_options *options, struct mq_error *err)
{
	json_t *more = json_pack("{s:b}", "force", (int)options->count[MQ_OPT_FORCE]);
	enum mq_status status =
		more ? control(options, &(struct control){ "remove", "remove", more, false }, err)
		     : mq_fail(err, MQ_ENOMEM_HOST, "no memory for a request");

	json_decref(more);
	return status;
}

/* --- pause and resume --- */

static enum mq_status hold_all(const struct mq_options *options, const char *verb, struct mq_error *err)
{
	struct mq_client *client = NULL;
	json_t *result = NULL;
	enum mq_status status;

	if (options->operands)
		return mq_fail(err, MQ_EINVAL, "ids or --all: not both");
	status = mq_client_open(options, &client, err);
	if (status == MQ_OK)
		status = mq_client_call(client, verb, json_pack("{s:b}", "all", 1), &result, err);
	if (status == MQ_OK && options->count[MQ_OPT_JSON])
		status = mq_command_print_json(result, err);
	else if (status == MQ_OK)
		mq_tell("the queue %s", json_is_true(json_object_get(result, "paused"))
						? "is paused: what is in flight ends, nothing new begins"
						: "goes on");
	json_decref(result);
	mq_client_close(client);
	return status;
}

static enum mq_status hold(const struct mq_options *options, const char *verb, struct mq_error *err)
{
	if (options->count[MQ_OPT_ALL])
		return hold_all(options, verb, err);
	return control(options, &(struct control){ verb, verb, NULL, true }, err);
}

enum mq_status mq_cmd_pause(const struct mq_options *options, struct mq_error *err)
{
	return hold(options, "pause", err);
}

enum mq_status mq_cmd_resume(const struct mq_options *options, struct mq_error *err)
{
	return hold(options, "resume", err);
}

/* --- priority --- */

static enum mq_status parse_priority(const char *text, json_t **more, struct mq_error *err)
{
	json_int_t n;
	enum mq_status status = mq_command_priority(text, "priority ", &n, err);

	if (status != MQ_OK)
		return status;
	*more = json_pack("{s:I}", "priority", n);
	return *more ? MQ_OK : mq_fail(err, MQ_ENOMEM_HOST, "no memory for a request");
}

enum mq_status mq_cmd_priority(const struct mq_options *options, struct mq_error *err)
{
	json_t *more = NULL;
	int64_t id;
	enum mq_status status;

	if (options->operands != 2)
		return mq_fail(err, MQ_EINVAL,
			       "priority needs the id of a job and a number: mandelq priority ID N");
	status = mq_rows_parse_id(options->operand[0], "", &id, err);
	if (status == MQ_OK)
		status = parse_priority(options->operand[1], &more, err);
	if (status == MQ_OK)
		status = run(options, &(struct control){ "priority", "priority", more, false }, &id, 1, err);
	json_decref(more);
	return status;
}
