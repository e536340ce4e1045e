/* cmd_cancel: mandelq cancel. Every id is tried; the first failure is the one that is returned. */
#include <stdlib.h>

#include "client/command.h"
#include "client/say.h"

static enum mq_status cancel(struct mq_client *client, int64_t id, struct mq_error *err)
{
	json_t *result = NULL;
	enum mq_status status = mq_client_call(
		client, "cancel", json_pack("{s:I}", "id", (json_int_t)id), &result, err);

	if (status == MQ_OK)
		mq_say("job %lld cancelled", (long long)id);
	json_decref(result);
	return status;
}

enum mq_status mq_cmd_cancel(const struct mq_options *options, struct mq_error *err)
{
	struct mq_client *client = NULL;
	int64_t *ids = NULL;
	size_t count = 0;
	enum mq_status status;

	if (options->operands == 0)
		return mq_fail(err, MQ_EINVAL, "cancel needs the id of a job: mandelq cancel ID");
	status = mq_command_ids(options, &ids, &count, err);
	if (status == MQ_OK)
		status = mq_client_open(options, &client, err);
	for (size_t i = 0; client && i < count; i++) {
		struct mq_error why;
		enum mq_status one = cancel(client, ids[i], &why);

		if (one != MQ_OK)
			mq_say("%s", why.text);
		if (one != MQ_OK && status == MQ_OK)
			status = mq_fail(err, one, "%s", "");
		if (one == MQ_EUNREACH || one == MQ_ESTOPPED)
			break;
	}
	free(ids);
	mq_client_close(client);
	return status;
}
