/* daemon: a worker from start to stop. */
#ifndef MQ_DAEMON_H
#define MQ_DAEMON_H

#include "src/option.h"

/* Serves until SIGTERM or SIGINT; once a process. Returns the exit code: 0 after a clean stop, 2 for
 * settings that cannot be, 1 for everything else that keeps it from starting. Failures later end the
 * process by themselves. */
int mq_daemon_run(const struct mq_options *options);

#endif
