/* cmd_submit: mandelq submit. Each id is printed as soon as the worker has the job, also with --wait. */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/batch.h"
#include "client/command.h"
#include "client/jobargs.h"
#include "client/rows.h"
#include "client/say.h"
#include "client/waiting.h"

static enum mq_status wait_for(struct mq_client *client, const int64_t *ids, size_t count,
			       int64_t until, bool quiet, struct mq_error *err)
{
	const struct mq_waiting waiting = {
		.ids = ids, .count = count, .until_ms = until, .quiet = quiet
	};
	struct mq_error why;
	json_t *rows = NULL;
	enum mq_status status = mq_wait_jobs(client, &waiting, &rows, &why);

	if (status == MQ_ESTOPPED && count == 1)
		return mq_fail(err, status, "%s; job %lld goes on: mandelq wait %lld", why.text,
			       (long long)ids[0], (long long)ids[0]);
	if (status == MQ_ESTOPPED)
		return mq_fail(err, status, "%s; the jobs go on: mandelq wait", why.text);
	if (status != MQ_OK)
		return mq_fail(err, status, "%s", why.text);
	status = mq_wait_report(rows, quiet, err);
	json_decref(rows);
	return status;
}

/* --- what to submit --- */

static enum mq_status one_request(const struct mq_options *options, struct mq_client *client,
				  const char *request_id, json_t **requests, struct mq_error *err)
{
	json_t *job = NULL, *args = NULL;
	enum mq_status status = mq_jobargs_build(options, client, &job, err);

	if (status == MQ_OK)
		status = mq_jobargs_submit(options, job, request_id, &args, err);
	json_decref(job);
	if (status != MQ_OK)
		return status;
	*requests = json_pack("[o]", args);
	return *requests ? MQ_OK : mq_fail(err, MQ_ENOMEM_HOST, "no memory for a request");
}

/* --- submitting --- */

static enum mq_status print_id(int64_t id, struct mq_error *err)
{
	printf("%lld\n", (long long)id);
	return mq_say_flush_stdout(err);
}

/* One job. The only job that a worker can miss here is the one to wait for. */
static enum mq_status submit_one(struct mq_client *client, json_t *request, json_t **result,
				 struct mq_error *err)
{
	struct mq_error why;
	enum mq_status status = mq_client_call(client, "submit", json_incref(request), result, &why);

	if (status == MQ_ENOENT)
		return mq_fail(err, status, "--after: %s", why.text);
	return status == MQ_OK ? MQ_OK : mq_fail(err, status, "%s", why.text);
}

static enum mq_status submit_all(struct mq_client *client, const json_t *requests, json_t *done,
				 int64_t *ids, bool json, struct mq_error *err)
{
	enum mq_status status = MQ_OK;

	for (size_t i = 0; status == MQ_OK && i < json_array_size(requests); i++) {
		json_t *result = NULL;

		status = submit_one(client, json_array_get(requests, i), &result, err);
		if (status != MQ_OK)
			break;
		mq_command_warnings(result);
		if (!mq_row_integer(result, "id", 1, &ids[i]))
			status = mq_fail(err, MQ_EPROTO,
					 "the worker sent no proper answer to \"submit\"");
		else if (json_array_append(done, result) != 0)
			status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for a list of jobs");
		else if (!json)
			status = print_id(ids[i], err);
		json_decref(result);
	}
	return status;
}

/* Ids that were given are told, whatever became of the rest. */
static enum mq_status submit_and_print(struct mq_client *client, const json_t *requests, int64_t *ids,
				       bool json, struct mq_error *err)
{
	json_t *done = json_array();
	enum mq_status status = done ? submit_all(client, requests, done, ids, json, err)
				     : mq_fail(err, MQ_ENOMEM_HOST, "no memory for a list of jobs");
	struct mq_error why;
	enum mq_status printed = json && done ? mq_command_print_json(done, &why)
					      : mq_say_flush_stdout(&why);
	size_t count = json_array_size(done), all = json_array_size(requests);

	json_decref(done);
	if (status != MQ_OK && all > 1) {
		why = *err;
		return mq_fail(err, status, "job %zu of %zu: %s; those before it are queued", count + 1, all,
			       why.text);
	}
	if (status == MQ_OK && printed != MQ_OK)
		return mq_fail(err, printed, "%s", why.text);
	return status;
}

enum mq_status mq_cmd_submit(const struct mq_options *options, struct mq_error *err)
{
	bool wait = options->count[MQ_OPT_WAIT];
	const char *request_id = options->value[MQ_OPT_REQUEST_ID];
	struct mq_client *client = NULL;
	json_t *requests = NULL;
	int64_t until = 0, *ids = NULL;
	char own_id[24];
	enum mq_status status = MQ_OK;

	if (options->count[MQ_OPT_TIMEOUT] && !wait)
		return mq_fail(err, MQ_EINVAL, "--timeout needs --wait");
	if (!request_id) {
		status = mq_command_random_id(own_id, err);
		request_id = own_id;
	}
	/* What is wrong on the command line is said even when there is no worker. */
	if (status == MQ_OK)
		status = mq_jobargs_check(options, request_id, err);
	if (status == MQ_OK)
		status = mq_command_until(options, MQ_OPT_TIMEOUT, &until, err);
	if (status == MQ_OK && mq_batch_given(options))
		status = mq_batch_read(options, &requests, err);
	else if (status == MQ_OK && !mq_jobargs_need_worker(options))
		status = one_request(options, NULL, request_id, &requests, err);
	if (status == MQ_OK)
		status = mq_client_open(options, &client, err);
	if (status == MQ_OK)
		mq_client_until(client, until);
	if (status == MQ_OK && !requests)
		status = one_request(options, client, request_id, &requests, err);
	if (status == MQ_OK) {
		ids = calloc(json_array_size(requests), sizeof(*ids));
		status = ids ? submit_and_print(client, requests, ids, options->count[MQ_OPT_JSON], err)
			     : mq_fail(err, MQ_ENOMEM_HOST, "no memory for a list of jobs");
	}
	if (status == MQ_OK && wait)
		status = wait_for(client, ids, json_array_size(requests), until,
				  options->count[MQ_OPT_QUIET], err);
	free(ids);
	json_decref(requests);
	mq_client_close(client);
	return status;
}
