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

/* The table of commands; the last has no name. (main.c) */
extern const struct mq_command mq_commands[];

enum mq_status mq_cmd_submit(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_status(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_wait(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_fetch(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_cancel(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_render(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_info(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_watch(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_pause(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_resume(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_retry(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_priority(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_remove(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_clean(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_devices(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_metrics(const struct mq_options *options, struct mq_error *err);
enum mq_status mq_cmd_keygen(const struct mq_options *options, struct mq_error *err);

/* The operands as ids, each once; *ids is the caller's. MQ_EINVAL. (command_util.c) */
enum mq_status mq_command_ids(const struct mq_options *options, int64_t **ids, size_t *count,
			      struct mq_error *err);
/* value on standard output, keys sorted, with a newline behind it. */
enum mq_status mq_command_print_json(const json_t *value, struct mq_error *err);
/* --timeout or --stop-after as a time of mq_clock_ms; 0 if not given. */
enum mq_status mq_command_until(const struct mq_options *options, enum mq_option_id id,
				int64_t *until, struct mq_error *err);

/* A job's priority; what stands before text in an error. MQ_EINVAL. */
enum mq_status mq_command_priority(const char *text, const char *what, json_int_t *out,
				   struct mq_error *err);
/* Warns of a FILE whose name says another format than the one that is written: .npy for numbers, else PNG. */
void mq_command_warn_name(const char *file, bool numbers);

/* What a submit came to. */
struct mq_submitted {
	int64_t id;
	bool existing; /* an earlier submit with the same request id made it */
};

/* "auto-..." and 64 random bits: an id of our own, so that a request that is sent twice makes one job. */
enum mq_status mq_command_random_id(char out[24], struct mq_error *err);

/* Passes on what the worker warns of in its answer to "submit". */
void mq_command_warnings(const json_t *result);
/* Submits job (borrowed) under request_id and passes the worker's warnings on. */
enum mq_status mq_command_submit(struct mq_client *client, const struct mq_options *options,
				 json_t *job, const char *request_id, struct mq_submitted *out,
				 struct mq_error *err);

#endif
