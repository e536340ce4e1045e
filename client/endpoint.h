/* endpoint: where a worker may be listening, and whether one does. */
#ifndef MQ_CLIENT_ENDPOINT_H
#define MQ_CLIENT_ENDPOINT_H

#include "src/option.h"
#include "src/status.h"

/* The first place where a worker accepts connections: --endpoint, else --state-dir's socket, else
 * MANDELQ_ENDPOINT, else MANDELQ_STATE_DIR's socket, else the user's own, else the system's. Only the
 * last two are tried one after the other: a place that was named is the only one. MQ_EUNREACH lists
 * what was tried and says what to type. Caller frees *out. */
enum mq_status mq_endpoint_find(const struct mq_options *options, char **out, struct mq_error *err);

/* For ipc:// whether somebody accepts, without a message; MQ_OK for other transports, where only a
 * request can tell. MQ_EUNREACH: the text is the bare reason. */
enum mq_status mq_endpoint_probe(const char *uri, struct mq_error *err);

#endif
