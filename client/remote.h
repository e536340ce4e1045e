/* remote: a connection over tcp, which is CURVE's always: the keys for it, and what became of its
 * handshake, of which libzmq tells its monitor alone. Used by connect.c. */
#ifndef MQ_CLIENT_REMOTE_H
#define MQ_CLIENT_REMOTE_H

#include <stdbool.h>

#include "src/keyfile.h"
#include "src/option.h"
#include "src/status.h"

struct mq_remote {
	struct mq_keypair keys;
	char server[MQ_KEY_SIZE];
	bool ipv6;
	/* private */
	unsigned monitors;
	unsigned broken; /* handshakes that the other end gave up, since the last that went well */
};

/* Is it an endpoint of this kind? */
bool mq_remote_is(const char *uri);

/* The keys: --key or ~/.config/mandelq/client.key; --server-key or the endpoint's line in
 * ~/.config/mandelq/known_servers. MQ_EINVAL says what is missing and what to type. */
enum mq_status mq_remote_read(const struct mq_options *options, const char *uri, struct mq_remote *out,
			      struct mq_error *err);

/* Sets up a socket that is not connected yet. *monitor is to be polled for mq_remote_look, and goes to
 * mq_remote_unwatch before the socket is closed. */
enum mq_status mq_remote_apply(struct mq_remote *remote, void *context, void *socket, void **monitor,
			       struct mq_error *err);
void mq_remote_unwatch(void *socket, void *monitor);

/* Takes what the monitor has. MQ_EPERM: the worker refuses these keys, or is none; trying again is of
 * no use. */
enum mq_status mq_remote_look(struct mq_remote *remote, void *monitor, const char *uri,
			      struct mq_error *err);

/* The time is up: MQ_EPERM when every handshake has failed, else MQ_EUNREACH. */
enum mq_status mq_remote_give_up(const struct mq_remote *remote, const char *uri, int seconds,
				 struct mq_error *err);

/* Where the keys are: --key or the user's own. Caller frees *out. */
enum mq_status mq_remote_key_path(const struct mq_options *options, char **out, struct mq_error *err);

#endif
