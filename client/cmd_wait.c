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
	struct mq_rows_filter filter = { .states = mq_rows_open_states() };
	struct mq_rows_list list = { 0 };
	int64_t *found = NULL;
	enum mq_status status = MQ_ENOMEM_HOST;

	*count = 0;
	if (filter.states)
		status = mq_rows_list(client, &filter, &list, err);
	if (status == MQ_OK) {
		found = calloc(json_array_size(list.rows) + 1, sizeof(*found));
		if (!found)
			status = MQ_ENOMEM_HOST;
	}
	if (status == MQ_ENOMEM_HOST)
		mq_fail(err, status, "no memory for a list of jobs");
	for (size_t i = 0; found && i < json_array_size(list.rows); i++)
		found[(*count)++] = mq_row_id(json_array_get(list.rows, i));
	json_decref(filter.states);
	mq_rows_list_clear(&list);
	*ids = found;
	return status;
}

/* rows is NULL when there was nothing to wait for. */
static enum mq_status print_json(const json_t *rows, struct mq_error *err)
{
	json_t *none = rows ? NULL : json_array();
	enum mq_status status = mq_command_print_json(rows ? rows : none, err);

	json_decref(none);
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
	if (status == MQ_OK)
		mq_client_until(client, waiting.until_ms);
	if (status == MQ_OK && waiting.count == 0) {
		free(ids);
		ids = NULL;
		status = open_jobs(client, &ids, &waiting.count, &why);
	}
	waiting.ids = ids;
	if (status == MQ_OK && waiting.count)
		status = mq_wait_jobs(client, &waiting, &rows, &why);
	if (status == MQ_OK && options->count[MQ_OPT_JSON])
		status = print_json(rows, &why);
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
