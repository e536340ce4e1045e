/* service: the worker's socket. Receives requests, has them carried out, and sends the answers once
 * the store has committed what they promise. A ROUTER of libzmq, on the main thread. */
#ifndef MQ_SERVICE_H
#define MQ_SERVICE_H

#include <stdint.h>

#include "src/status.h"
#include "worker/listener.h"
#include "worker/remote.h"
#include "worker/verbs.h"

struct mq_service;

/* Binds the endpoint, see mq_listener_open; with remote (borrowed) a tcp one, see mq_listener_open_tcp. */
enum mq_status mq_service_open(const char *endpoint, struct mq_remote *remote, struct mq_service **out,
                               struct mq_error *err);
void mq_service_close(struct mq_service *service);

struct mq_listener *mq_service_listener(struct mq_service *service);
/* Drops every peer, and the answers that wait. mq_listener_start serves again. */
void mq_service_stop(struct mq_service *service);

/* Lets in who may, takes the requests that wait (a bounded number) and calls the verbs. *more: some were left. */
void mq_service_receive(struct mq_service *service, struct mq_verbs *verbs, int64_t now_ms, bool *more);
/* Sends what mq_service_receive made. */
void mq_service_send(struct mq_service *service);

#endif
