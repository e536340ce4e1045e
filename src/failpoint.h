/* failpoint: named places where a test can make the next step fail, or the process die.
 *
 * MANDELQ_FAILPOINTS=name:n:action, comma separated: at the n-th passage of `name`, action is one of
 *   kill                    SIGKILL to this process, at once
 *   hang                    the calling thread sleeps for ever
 *   eio enospc edquot enomem   mq_failpoint returns that errno; the caller fails as if the step had
 *   oom                     mq_failpoint returns MQ_FAULT_OOM: device memory is out
 * n may be "*": every passage. Built only with --enable-failpoints; otherwise it is the constant 0. */
#ifndef MQ_FAILPOINT_H
#define MQ_FAILPOINT_H

#define MQ_FAULT_OOM 100000

#ifdef MQ_FAILPOINTS
/* Thread-safe. Returns 0, or what the caller must fail with. A malformed variable ends the process
 * with a message (exit 2) at the first passage. */
int mq_failpoint(const char *name);
#else
#define mq_failpoint(name) 0
#endif

#endif
