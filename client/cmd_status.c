/* cmd_status: mandelq status, as a table for people or JSON for programs. */
#include <stdlib.h>

#include "client/command.h"
#include "client/interrupt.h"
#include "client/rows.h"
#include "client/say.h"
#include "client/table.h"

static enum mq_status print(const struct mq_rows_list *list, bool json, struct mq_error *err)
{
	json_t *lines;

	if (json)
		return mq_command_print_json(list->rows, err);
	if (json_array_size(list->rows) == 0) {
		mq_tell("no jobs");
		return MQ_OK;
	}
	lines = mq_table_job_lines(list->rows);
	if (!lines)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a table");
	mq_table_print(&mq_table_jobs, lines, 0, 0);
	json_decref(lines);
	return mq_say_flush_stdout(err);
}

static enum mq_status check(const struct mq_options *o, size_t count, struct mq_error *err)
{
	if (count && (o->count[MQ_OPT_STATE] || o->count[MQ_OPT_NAME] || o->count[MQ_OPT_MINE] ||
		      o->count[MQ_OPT_LIMIT]))
		return mq_fail(err, MQ_EINVAL, "ids, or --state, --name, --mine and --limit: not both");
	return MQ_OK;
}

enum mq_status mq_cmd_status(const struct mq_options *options, struct mq_error *err)
{
	struct mq_rows_filter filter = { 0 };
	struct mq_rows_list list = { 0 };
	struct mq_client *client = NULL;
	int64_t *ids = NULL;
	size_t count = 0;
	enum mq_status status = mq_command_ids(options, &ids, &count, err);

	if (status == MQ_OK)
		status = check(options, count, err);
	if (status == MQ_OK)
		status = mq_rows_filter(options, &filter, err);
	if (status == MQ_OK)
		status = mq_client_open(options, &client, err);
	if (status == MQ_OK && count)
		status = mq_rows_fetch(client, ids, count, &list.rows, &list.note, err);
	else if (status == MQ_OK)
		status = mq_rows_list(client, &filter, &list, err);
	if (status == MQ_OK) {
		mq_interrupt_end(); /* only output is left: a pager that stops reading may end us */
		status = print(&list, options->count[MQ_OPT_JSON], err);
	}
	if (status == MQ_OK && !options->count[MQ_OPT_JSON]) {
		if (list.note)
			mq_tell("worker: %s", json_string_value(list.note));
		if (list.paused)
			mq_tell("the queue is paused: mandelq resume --all lets it go on");
	}
	free(ids);
	json_decref(filter.states);
	mq_rows_list_clear(&list);
	mq_client_close(client);
	return status;
}
