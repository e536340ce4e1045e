/* remote: who is behind a connection over tcp. CURVE proves that a peer has the secret to its public
 * key; libzmq then asks here, over ZAP (ZeroMQ RFC 27), whether that key may connect, and tells the key
 * with each message. Used by service, on the main thread. */
#ifndef MQ_REMOTE_H
#define MQ_REMOTE_H

#include <stdbool.h>
#include <stdint.h>
#include <zmq.h>

#include "src/keyfile.h"
#include "src/status.h"
#include "worker/authorized.h"

#define MQ_REMOTE_KEY "server.key"

struct mq_remote {
	struct mq_keypair keys;
	/* private */
	struct mq_authorized *clients;
};

/* Are there keys in the state directory? MQ_EINVAL: none, and what to do. Changes nothing. */
enum mq_status mq_remote_probe(const char *state_dir, struct mq_error *err);

/* Reads the keys of the state directory. Fails as mq_remote_probe. */
enum mq_status mq_remote_open(const char *state_dir, struct mq_remote *out, struct mq_error *err);
void mq_remote_close(struct mq_remote *remote);

/* "mandelqd keygen": makes the keys, unless there are some and force is not set, and prints the public
 * one. */
enum mq_status mq_remote_keygen(const char *state_dir, bool force, struct mq_error *err);

/* Answers the ZAP requests that wait at the socket (a bounded number). */
void mq_remote_answer(struct mq_remote *remote, void *zap);

/* The user whose key sent the message; -1: the key has been taken off the list since it connected. */
int64_t mq_remote_owner(struct mq_remote *remote, zmq_msg_t *message);

#endif
