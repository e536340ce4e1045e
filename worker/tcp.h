/* tcp: a listening TCP socket for an endpoint tcp://HOST:PORT. Used by listener. */
#ifndef MQ_TCP_H
#define MQ_TCP_H

#include "src/status.h"

#define MQ_TCP_SCHEME "tcp://"

/* Has it the shape of such an endpoint? MQ_EINVAL. */
enum mq_status mq_tcp_check(const char *endpoint, struct mq_error *err);

/* HOST: an IPv4 address, an IPv6 address in brackets, or * for all of both. PORT 0: any that is free.
 * *bound: the endpoint with the port that it has; the caller frees it and closes *fd. MQ_EINVAL. */
enum mq_status mq_tcp_listen(const char *endpoint, int *fd, char **bound, struct mq_error *err);

#endif
