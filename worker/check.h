/* check: mandelqd --check, a report on a state directory that changes nothing in it. */
#ifndef MQ_CHECK_H
#define MQ_CHECK_H

#include <stdint.h>
#include <stdio.h>

#include "src/status.h"

/* Holds the directory's lock meanwhile (MQ_EBUSY names the worker that has it), works on a copy of the
 * database in $TMPDIR, and writes to out a line a finding, a line a leftover (of an unclean end; the
 * next start or the job's end removes it) and a summary. *findings: how many, without leftovers.
 * A failure means that the directory could not be looked at. */
enum mq_status mq_check_state_dir(const char *path, FILE *out, uint64_t *findings,
                                  struct mq_error *err);

#endif
