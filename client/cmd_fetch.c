/* cmd_fetch: mandelq fetch. Whether FILE can be written is known before the worker is asked. */
#include <stdlib.h>
#include <string.h>

#include "client/command.h"
#include "client/download.h"
#include "client/rows.h"
#include "client/target.h"
#include "src/job.h"

static enum mq_status parse_what(const struct mq_options *options, const char **what,
				 struct mq_error *err)
{
	static const struct {
		enum mq_option_id id;
		const char *what;
	} kinds[] = {
		{ MQ_OPT_PREVIEW, "preview" },
		{ MQ_OPT_COUNTS, "counts" },
		{ MQ_OPT_SMOOTH, "smooth" },
	};
	unsigned given = 0;

	*what = "picture";
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (options->count[kinds[i].id]) {
			*what = kinds[i].what;
			given++;
		}
	if (given > 1)
		return mq_fail(err, MQ_EINVAL,
			       "--preview, --counts and --smooth: one of them at a time");
	if (options->count[MQ_OPT_PREVIEW] && options->count[MQ_OPT_REGION])
		return mq_fail(err, MQ_EINVAL, "--region: a preview has no regions");
	return MQ_OK;
}

/* "X,Y,W,H" to an array; NULL if not given. */
static enum mq_status parse_region(const struct mq_options *options, json_t **region,
				   struct mq_error *err)
{
	const char *text = options->value[MQ_OPT_REGION], *p = text;
	uint64_t n[4] = { 0 };
	unsigned got = 0;

	*region = NULL;
	if (!text)
		return MQ_OK;
	while (got < 4) {
		const char *start = p;

		for (; *p >= '0' && *p <= '9' && n[got] <= MQ_JOB_SIDE_MAX; p++)
			n[got] = 10 * n[got] + (uint64_t)(*p - '0');
		if (p == start || n[got] > MQ_JOB_SIDE_MAX || (got >= 2 && n[got] == 0) ||
		    *p != (got < 3 ? ',' : '\0'))
			break;
		got++;
		p++;
	}
	if (got < 4)
		return mq_fail(err, MQ_EINVAL,
			       "--region=%.60s: X,Y,W,H is needed, whole numbers to %u, W and H "
			       "from 1",
			       text, MQ_JOB_SIDE_MAX);
	*region = json_pack("[I,I,I,I]", (json_int_t)n[0], (json_int_t)n[1], (json_int_t)n[2],
			    (json_int_t)n[3]);
	return *region ? MQ_OK : mq_fail(err, MQ_ENOMEM_HOST, "no memory for a request");
}

enum mq_status mq_cmd_fetch(const struct mq_options *options, struct mq_error *err)
{
	struct mq_download download = {
		.force = options->count[MQ_OPT_FORCE],
		.quiet = options->count[MQ_OPT_QUIET],
	};
	struct mq_client *client = NULL;
	char *path = NULL;
	enum mq_status status;

	if (options->operands != 1)
		return mq_fail(err, MQ_EINVAL,
			       "fetch needs the id of one job: mandelq fetch ID -o FILE");
	if (!options->count[MQ_OPT_OUTPUT])
		return mq_fail(err, MQ_EINVAL, "fetch needs -o FILE (\"-\" is standard output)");
	status = mq_rows_parse_id(options->operand[0], "", &download.id, err);
	if (status == MQ_OK)
		status = parse_what(options, &download.what, err);
	if (status == MQ_OK)
		status = parse_region(options, &download.region, err);
	if (status == MQ_OK)
		status = mq_target_check(options->value[MQ_OPT_OUTPUT], download.force, &path, err);
	if (status == MQ_OK)
		mq_command_warn_name(options->value[MQ_OPT_OUTPUT],
				     options->count[MQ_OPT_COUNTS] || options->count[MQ_OPT_SMOOTH]);
	if (status == MQ_OK)
		status = mq_client_open(options, &client, err);
	download.path = path;
	if (status == MQ_OK)
		status = mq_download(client, &download, err);
	json_decref(download.region);
	free(path);
	mq_client_close(client);
	return status;
}
