/* writeall: a write(2) that is not cut short. */
#ifndef MQ_WRITEALL_H
#define MQ_WRITEALL_H

#include <stddef.h>

/* 0 when all bytes are written to fd, else an errno; how many are written is then unknown. */
int mq_write_all(int fd, const void *bytes, size_t len);

#endif
