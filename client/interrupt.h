/* interrupt: SIGINT, SIGTERM and SIGHUP as a file descriptor, so that none is lost between a test and
 * a wait. A signal that was ignored when the program began stays ignored. */
#ifndef MQ_CLIENT_INTERRUPT_H
#define MQ_CLIENT_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>

#include "src/status.h"

/* Once, before any thread starts. MQ_EIO. */
enum mq_status mq_interrupt_begin(struct mq_error *err);
/* From now on the signals end the process again: for the time when only output is left. Also for a
 * child between fork and exec (async-signal-safe). */
void mq_interrupt_end(void);

/* Readable when a signal has come that mq_interrupted has not seen. */
int mq_interrupt_fd(void);
/* The first signal that came, or 0. Once not 0, it stays. */
int mq_interrupted(void);
/* How many came: a second one means that somebody is impatient. */
unsigned mq_interrupt_count(void);
/* MQ_ESTOPPED "stopped by SIGINT" if one came, else MQ_OK. */
enum mq_status mq_interrupt_check(struct mq_error *err);

/* Sleeps; returns at once when a signal comes. */
void mq_interrupt_sleep(unsigned ms);

#endif
