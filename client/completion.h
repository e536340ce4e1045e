/* completion: completion scripts for shells, made from the tables of commands and options. */
#ifndef MQ_CLIENT_COMPLETION_H
#define MQ_CLIENT_COMPLETION_H

#include "src/status.h"

/* On standard output. shell: "bash", "zsh" or "fish"; MQ_EINVAL for others. */
enum mq_status mq_completion(const char *shell, struct mq_error *err);

#endif
