/* cmd_clean: mandelq clean: removes what ended long ago, a batch a request. */
#include "client/command.h"
#include "client/rows.h"
#include "client/say.h"

static enum mq_status batch(struct mq_client *client, double seconds, bool force, json_t *removed,
			    bool *more, struct mq_error *err)
{
	json_t *result = NULL, *ids;
	enum mq_status status =
		mq_client_call(client, "clean",
			       json_pack("{s:f,s:b}", "older_than_seconds", seconds, "force", (int)force),
			       &result, err);

	if (status != MQ_OK)
		return status;
	ids = json_object_get(result, "removed");
	if (!json_is_array(ids))
		status = mq_fail(err, MQ_EPROTO, "the worker sent no proper answer to \"clean\"");
	for (size_t i = 0; status == MQ_OK && i < json_array_size(ids); i++)
		if (json_array_append_new(removed, json_pack("{s:O,s:b}", "id", json_array_get(ids, i),
							     "removed", 1)) != 0)
			status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for a list of jobs");
	*more = json_array_size(ids) && json_is_true(json_object_get(result, "more"));
	json_decref(result);
	return status;
}

enum mq_status mq_cmd_clean(const struct mq_options *options, struct mq_error *err)
{
	struct mq_client *client = NULL;
	json_t *removed = json_array();
	unsigned long long ms = 0;
	bool more = true;
	enum mq_status status = removed ? MQ_OK : mq_fail(err, MQ_ENOMEM_HOST, "no memory for a list");

	if (status == MQ_OK && options->operands)
		status = mq_fail(err, MQ_EINVAL, "clean takes no ids: mandelq remove ID does");
	if (status == MQ_OK && !options->count[MQ_OPT_OLDER_THAN])
		status = mq_fail(err, MQ_EINVAL, "clean needs --older-than=AGE, as in --older-than=7d");
	if (status == MQ_OK)
		status = mq_option_age(options->value[MQ_OPT_OLDER_THAN], MQ_OPT_OLDER_THAN, &ms, err);
	if (status == MQ_OK)
		status = mq_client_open(options, &client, err);
	while (status == MQ_OK && more)
		status = batch(client, (double)ms / 1e3, options->count[MQ_OPT_FORCE], removed, &more, err);
	if (status == MQ_OK && options->count[MQ_OPT_JSON])
		status = mq_command_print_json(removed, err);
	else if (client)
		mq_tell("%zu job%s removed", json_array_size(removed), json_array_size(removed) == 1 ? "" : "s");
	json_decref(removed);
	mq_client_close(client);
	return status;
}
