/* listener: a bound ZeroMQ socket whose peers are not trusted. Used by service and publish, on the main
 * thread alone.
 *
 * libzmq lets a peer without limit fill memory with frames of a message that never ends, and would
 * unlink whatever lies at the path it binds. So the unix socket is made here and lent to libzmq, each
 * listener has a context of its own, and all that its peers hold can be dropped at once: stop frees it
 * to the last byte, start serves the same socket again, and clients that were cut off try again. TCP
 * likewise, always with CURVE and a ZAP handler. */
#ifndef MQ_LISTENER_H
#define MQ_LISTENER_H

#include <stdbool.h>
#include <stddef.h>

#include "src/keyfile.h"
#include "src/status.h"

struct mq_listener_option {
	int option, value;
};

struct mq_listener {
	void *socket; /* NULL while it is stopped */
	/* private */
	int type;
	const struct mq_listener_option *options;
	size_t option_count;
	void *context, *monitor;
	const struct mq_keypair *keys; /* NULL: no CURVE */
	void *zap;
	char *endpoint;
	int fd;
	unsigned peers;
};

/* Has a unix socket's endpoint the shape of one? MQ_EINVAL. */
enum mq_status mq_listener_check(const char *endpoint, struct mq_error *err);

/* Could it be listened at? Changes nothing: what mq_listener_open refuses is known before the rest is begun. */
enum mq_status mq_listener_probe(const char *endpoint, struct mq_error *err);

/* Checks the endpoint and listens at it. ipc://PATH: a socket left by a worker that is gone is
 * replaced; anything else at the path, a live worker's socket too, is left alone (MQ_EBUSY,
 * MQ_EINVAL). options must outlive the listener. On failure nothing needs closing. */
enum mq_status mq_listener_open(struct mq_listener *listener, const char *endpoint, int type,
                                const struct mq_listener_option *options, size_t option_count,
                                struct mq_error *err);
/* As mq_listener_open, for tcp://HOST:PORT (worker/tcp.h). keys must outlive the listener. Nobody gets in
 * unless the requests at mq_listener_zap are answered. */
enum mq_status mq_listener_open_tcp(struct mq_listener *listener, const char *endpoint, int type,
                                    const struct mq_listener_option *options, size_t option_count,
                                    const struct mq_keypair *keys, struct mq_error *err);
/* Sends what is queued for at most a second, and removes the unix socket. */
void mq_listener_close(struct mq_listener *listener);

/* Drops every peer and all that is queued for or from them. */
void mq_listener_stop(struct mq_listener *listener);
enum mq_status mq_listener_start(struct mq_listener *listener, struct mq_error *err);

/* Readable when peers came or went: mq_listener_peers then. */
void *mq_listener_monitor(const struct mq_listener *listener);
/* Where libzmq asks who may connect (a REP socket); NULL without CURVE or while it is stopped. */
void *mq_listener_zap(const struct mq_listener *listener);
/* The endpoint, with the port that the system chose. */
const char *mq_listener_endpoint(const struct mq_listener *listener);
/* Connections now, shaken hands or not. */
unsigned mq_listener_peers(struct mq_listener *listener);

#endif
