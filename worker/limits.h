/* limits: what this process may use of the machine. */
#ifndef MQ_LIMITS_H
#define MQ_LIMITS_H

/* Processors of the affinity mask, cut to the cgroup's quota (rounded up); at least 1. */
unsigned mq_limits_threads(void);

/* Raises the soft limit of open files to the hard one: libzmq's ipc listener aborts the process when
 * descriptors run out. */
void mq_limits_raise_files(void);

#endif
