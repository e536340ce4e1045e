/* connect: one worker, and requests to it. A request is sent again when no reply comes (with the same
 * number: every verb may be repeated), and given up after MQ_CALL_MS in all, or when the time that the user
 * gave is over. A signal ends it too. */
#ifndef MQ_CLIENT_CONNECT_H
#define MQ_CLIENT_CONNECT_H

#include <jansson.h>
#include <stddef.h>

#include "src/option.h"
#include "src/status.h"

#define MQ_CALL_MS 5000

struct mq_client;

/* Finds the worker by the options and the environment (endpoint.h). No message is sent yet. */
enum mq_status mq_client_open(const struct mq_options *options, struct mq_client **out,
			      struct mq_error *err);
/* The worker at uri. */
enum mq_status mq_client_open_at(const char *uri, struct mq_client **out, struct mq_error *err);
void mq_client_close(struct mq_client *client);
const char *mq_client_uri(const struct mq_client *client);
/* Requests from now on end at until_ms (mq_clock_ms), with MQ_ETIMEOUT; 0: no such limit. One that is made
 * at that time or later still has a moment, in which a worker that is well answers. */
void mq_client_until(struct mq_client *client, int64_t until_ms);
/* at_ms, or what that limit allows if it is sooner. */
int64_t mq_client_sooner(const struct mq_client *client, int64_t at_ms);

/* One request. args is taken over (NULL: memory was out). *result is an object, the caller's.
 * The worker's own refusals come back with its status and text; MQ_EUNREACH: no reply in time;
 * MQ_ETIMEOUT: none until mq_client_until;
 * MQ_EPROTO, MQ_EVERSION: a reply that is not one; MQ_ESTOPPED: a signal. */
enum mq_status mq_client_call(struct mq_client *client, const char *verb, json_t *args,
			      json_t **result, struct mq_error *err);
/* As mq_client_call, with the bytes behind the reply, at most size. */
enum mq_status mq_client_call_data(struct mq_client *client, const char *verb, json_t *args,
				   json_t **result, void *data, size_t size, size_t *len,
				   struct mq_error *err);

/* No worker there, or gone: trying again may help. */
bool mq_client_lost(enum mq_status status);

#endif
