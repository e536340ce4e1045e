/* cmd_wait: mandelq wait. Without ids it waits for the jobs that have not ended when it begins. */
#include <stdlib.h>

#include "client/command.h"
#include "client/rows.h"
#include "client/say.h"
#include "client/waiting.h"
#include "src/state.h"

/* The ids of all jobs that have not ended. */
static enum mq_status open_jobs(struct mq_client *client, int64_t **ids, size_t *count,
				struct mq_error *err)
{
	json_t *rows = NULL;
	enum mq_status status = mq_rows_fetch(client, NULL, 0, &rows, NULL, err);
	int64_t *list = NULL;

	if (status != MQ_OK)
		return status;
	list = calloc(json_array_size(rows) + 1, sizeof(*list));
	if (!list)
		status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for %zu ids",
				 json_array_size(rows));
	*count = 0;
	for (size_t i = 0; list && i < json_array_size(rows); i++)
		if (!mq_job_is_terminal(mq_row_state(json_array_get(rows, i))))
			list[(*count)++] = mq_row_id(json_array_get(rows, i));
	json_decref(rows);
	*ids = list;
	return status;
}

enum mq_status mq_cmd_wait(const struct mq_options *options, struct mq_error *err)
{
	struct mq_waiting waiting = { .quiet = options->count[MQ_OPT_QUIET] };
	struct mq_client *client = NULL;
	int64_t *ids = NULL;
	json_t *rows = NULL;
	struct mq_error why = { "" };
	enum mq_status status = mq_command_until(options, MQ_OPT_TIMEOUT, &waiting.until_ms, &why);

	if (status == MQ_OK)
		status = mq_command_ids(options, &ids, &waiting.count, &why);
	if (status == MQ_OK)
		status = mq_client_open(options, &client, &why);
	if (status == MQ_OK && waiting.count == 0) {
		free(ids);
		ids = NULL;
		status = open_jobs(client, &ids, &waiting.count, &why);
	}
	waiting.ids = ids;
	if (status == MQ_OK && waiting.count)
		status = mq_wait_jobs(client, &waiting, &rows, &why);
	if (status == MQ_OK)
		status = mq_wait_report(rows, waiting.quiet, &why);
	if (status == MQ_ESTOPPED)
		mq_fail(err, status, "%s; the jobs go on", why.text);
	else if (status != MQ_OK)
		mq_fail(err, status, "%s", why.text);
	json_decref(rows);
	free(ids);
	mq_client_close(client);
	return status;
}
