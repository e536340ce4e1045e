/* cmd_submit: mandelq submit. The id is printed as soon as the worker has the job, also with --wait. */
#include "config.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>

#include "client/command.h"
#include "client/jobargs.h"
#include "client/say.h"
#include "client/waiting.h"

/* An id of our own, so that a request that is sent twice makes one job. */
static enum mq_status random_id(char out[24], struct mq_error *err)
{
	uint64_t bits;

	if (getrandom(&bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
		return mq_fail(err, MQ_EIO, "the system gives no random numbers");
	snprintf(out, 24, "auto-%016llx", (unsigned long long)bits);
	return MQ_OK;
}

static enum mq_status wait_for(struct mq_client *client, int64_t id, int64_t until, bool quiet,
			       struct mq_error *err)
{
	const struct mq_waiting waiting = {
		.ids = &id, .count = 1, .until_ms = until, .quiet = quiet
	};
	struct mq_error why;
	json_t *rows = NULL;
	enum mq_status status = mq_wait_jobs(client, &waiting, &rows, &why);

	if (status == MQ_ESTOPPED)
		return mq_fail(err, status, "%s; job %lld goes on: mandelq wait %lld", why.text,
			       (long long)id, (long long)id);
	if (status != MQ_OK)
		return mq_fail(err, status, "%s", why.text);
	status = mq_wait_report(rows, quiet, err);
	json_decref(rows);
	return status;
}

enum mq_status mq_cmd_submit(const struct mq_options *options, struct mq_error *err)
{
	bool wait = options->count[MQ_OPT_WAIT];
	const char *request_id = options->value[MQ_OPT_REQUEST_ID];
	struct mq_client *client = NULL;
	struct mq_submitted submitted;
	json_t *job = NULL;
	char own_id[24];
	int64_t until = 0;
	enum mq_status status = MQ_OK;

	if (options->count[MQ_OPT_TIMEOUT] && !wait)
		return mq_fail(err, MQ_EINVAL, "--timeout needs --wait");
	if (!request_id) {
		status = random_id(own_id, err);
		request_id = own_id;
	}
	/* What is wrong on the command line is said even when there is no worker. */
	if (status == MQ_OK)
		status = mq_jobargs_check(options, request_id, err);
	if (status == MQ_OK)
		status = mq_command_until(options, MQ_OPT_TIMEOUT, &until, err);
	if (status == MQ_OK && !mq_jobargs_need_worker(options))
		status = mq_jobargs_build(options, NULL, &job, err);
	if (status == MQ_OK)
		status = mq_client_open(options, &client, err);
	if (status == MQ_OK && !job)
		status = mq_jobargs_build(options, client, &job, err);
	if (status == MQ_OK)
		status = mq_command_submit(client, options, job, request_id, &submitted, err);
	if (status == MQ_OK) {
		printf("%lld\n", (long long)submitted.id);
		status = mq_say_flush_stdout(err);
	}
	if (status == MQ_OK && wait)
		status = wait_for(client, submitted.id, until, options->count[MQ_OPT_QUIET], err);
	json_decref(job);
	mq_client_close(client);
	return status;
}
