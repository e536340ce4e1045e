/* completion: completion scripts for shells, made from the one table of options and a program's commands.
 * Called by main() of both programs for --completion=SHELL, which make install uses. */
#ifndef MQ_COMPLETION_H
#define MQ_COMPLETION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "src/status.h"

struct mq_completion_command {
	const char *name;
	unsigned scopes; /* whose options it takes, enum mq_scope */
	const char *summary;
};

struct mq_completion {
	const char *program;
	unsigned scopes; /* whose options stand without a command; 0: a command comes first */
	const struct mq_completion_command *command;
	size_t commands;
};

/* shell: "bash", "zsh" or "fish"; MQ_EINVAL for others. Does not flush. */
enum mq_status mq_completion_print(const struct mq_completion *of, const char *shell, FILE *out,
				   struct mq_error *err);

#endif
