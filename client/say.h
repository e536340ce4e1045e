/* say: everything a person reads, on standard error. One transient line (the progress bar) may stand
 * at the bottom of a terminal; a message takes its place first. */
#ifndef MQ_CLIENT_SAY_H
#define MQ_CLIENT_SAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "src/status.h"

/* "mandelq: TEXT" as one line; control characters of the text become '?'. */
void mq_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* As mq_say, for what is no error and no warning: --quiet keeps it back. */
void mq_tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void mq_say_quiet(bool quiet);

/* May standard output have colours: a terminal, and NO_COLOR is not set? */
bool mq_say_colours(void);

/* Is standard error a terminal (that can overwrite a line)? *columns may be NULL. */
bool mq_say_terminal(int *columns);
/* Shows line in place of the transient line before; NULL takes it away. Only on a terminal. */
void mq_say_transient(const char *line);

/* Makes control characters of text harmless, in place. */
void mq_say_clean(char *text);

/* "3:07"; out is returned. */
char *mq_say_seconds(double seconds, char out[32]);

/* Standard output has taken everything. MQ_EIO, MQ_ENOSPC. */
enum mq_status mq_say_flush_stdout(struct mq_error *err);

#endif
