/* failpoint: named places where a test can make the next step fail, or the process die.
 *
 * MANDELQ_FAILPOINTS=name:n:action, comma separated: at the n-th passage of `name`, action is one of
 *   kill                    SIGKILL to this process, at once
 *   hang                    the calling thread sleeps for ever
 *   eio enospc edquot enomem   mq_failpoint returns that errno; the caller fails as if the step had
 *   oom                     mq_failpoint returns MQ_FAULT_OOM: device memory is out
 *   trace                   the passage is told on standard error: "failpoint NAME"
 * n may be "*": every passage; name may be "*": every failpoint. Built only with --enable-failpoints;
 * otherwise it is the constant 0. */
#ifndef MQ_FAILPOINT_H
#define MQ_FAILPOINT_H

#include <stdint.h>

#ifndef PACKAGE_VERSION
#error "config.h must come first: it says whether there are failpoints"
#endif

#define MQ_FAULT_OOM 100000

#ifdef MQ_FAILPOINTS
/* Thread-safe. Returns 0, or what the caller must fail with. A malformed variable ends the process
 * with a message (exit 2) at the first passage. */
int mq_failpoint(const char *name);

/* Passes poison-JOB-STRIP for each of these strips: a tile that ends the worker whenever it runs. */
void mq_failpoint_poison(int64_t job, uint32_t first, uint32_t count);
/* Passes poison-JOB-assembly: a picture whose assembly ends the worker. */
void mq_failpoint_assembly(int64_t job);
#else
#define mq_failpoint(name) 0
#define mq_failpoint_poison(job, first, count) ((void)0)
#define mq_failpoint_assembly(job) ((void)0)
#endif

#endif
