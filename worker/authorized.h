/* authorized: which public keys may connect from other machines, and as which user: the file
 * authorized_clients of the state directory, one "KEY USER" a line, # for comments. It is looked at
 * whenever somebody asks, and read again when it has changed. Used by remote.c, on the main thread. */
#ifndef MQ_AUTHORIZED_H
#define MQ_AUTHORIZED_H

#include <stdbool.h>
#include <stdint.h>

#include "src/status.h"

#define MQ_AUTHORIZED_FILE "authorized_clients"

struct mq_authorized;

/* dir is borrowed. A missing file is no failure: nobody may connect, which is logged. */
enum mq_status mq_authorized_open(const char *dir, struct mq_authorized **out, struct mq_error *err);
void mq_authorized_close(struct mq_authorized *authorized);

/* The user whose key (Z85) it is. False: nobody's, or the file cannot be relied on. */
bool mq_authorized_find(struct mq_authorized *authorized, const char *key, int64_t *uid);

#endif
