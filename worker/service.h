/* service: the worker's socket. Receives requests, has them carried out, and sends the answers once
 * the store has committed what they promise. A ROUTER of libzmq, on the main thread. */
#ifndef MQ_SERVICE_H
#define MQ_SERVICE_H

#include <stdint.h>

#include "src/status.h"
#include "worker/verbs.h"

struct mq_service;

/* Binds the endpoint. ipc://PATH: a socket left by a worker that is gone is replaced; anything else
 * at the path, a live worker's socket too, is left alone (MQ_EBUSY, MQ_EINVAL). tcp:// is refused. */
enum mq_status mq_service_open(const char *endpoint, struct mq_service **out, struct mq_error *err);
void mq_service_close(struct mq_service *service);

/* For zmq_poll. */
void *mq_service_socket(struct mq_service *service);

/* Takes the requests that wait (a bounded number) and calls the verbs. *more: some were left. */
void mq_service_receive(struct mq_service *service, struct mq_verbs *verbs, int64_t now_ms, bool *more);
/* Sends what mq_service_receive made. */
void mq_service_send(struct mq_service *service);

#endif
