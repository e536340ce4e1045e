/* command: the commands of mandelq, one file each, and what they share. */
#ifndef MQ_CLIENT_COMMAND_H
#define MQ_CLIENT_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "client/connect.h"
#include "src/option.h"
#include "src/status.h"

struct mq_command {
	const char *name;
	unsigned scope;       /* besides MQ_SCOPE_CLIENT */
	const char *operands; /* for the usage line */
	const char *summary, *example;
	/* A failure with an empty text has been told already. */
	enum mq_status (*run)(const struct mq_options *options, struct mq_error *err);
};

enum mq_status mq_cmd_submit(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_status(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_wait(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_fetch(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_cancel(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_render(const struct mq_options *options, struct mq_error *err);

/* The operands as ids, each once; *ids is the caller's. MQ_EINVAL. (command_util.c) */
enum mq_status mq_command_ids(const struct mq_options *options, int64_t **ids, size_t *count,
			      struct mq_error *err);
/* --timeout or --stop-after as a time of mq_clock_ms; 0 if not given. */
enum mq_status mq_command_until(const struct mq_options *options, enum mq_option_id id,
				int64_t *until, struct mq_error *err);

/* What a submit came to. */
struct mq_submitted {
	int64_t id;
	bool existing; /* an earlier submit with the same request id made it */
};

/* Submits job (borrowed) under request_id and passes the worker's warnings on. */
enum mq_status mq_command_submit(struct mq_client *client, const struct mq_options *options,
				 json_t *job, const char *request_id, struct mq_submitted *out,
				 struct mq_error *err);

#endif
