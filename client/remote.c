/* remote: see remote.h. */
#include "config.h"

#include "client/remote.h"

#include <errno.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <zmq.h>

#include "src/place.h"

#define SCHEME "tcp://"
#define KNOWN_SERVERS "known_servers"
#define BLANK " \t\r\n"
#define EVENTS (ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | \
		ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
/* A worker that has just been started or stopped breaks one off; no more in a request's time. */
#define BROKEN_MAX 3

bool mq_remote_is(const char *uri)
{
	return strncmp(uri, SCHEME, strlen(SCHEME)) == 0;
}

enum mq_status mq_remote_key_path(const struct mq_options *options, char **out, struct mq_error *err)
{
	if (!options->count[MQ_OPT_KEY])
		return mq_place_config("client.key", out, err);
	if (!options->value[MQ_OPT_KEY][0])
		return mq_fail(err, MQ_EINVAL, "--key: a file is needed, not an empty text");
	*out = strdup(options->value[MQ_OPT_KEY]);
	return *out ? MQ_OK : mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
}

static enum mq_status read_keys(const struct mq_options *options, struct mq_remote *r,
				struct mq_error *err)
{
	char *path = NULL;
	enum mq_status status = mq_remote_key_path(options, &path, err);

	if (status == MQ_OK)
		status = mq_keyfile_read(path, &r->keys, err);
	if (status == MQ_ENOENT)
		status = mq_fail(err, MQ_EINVAL,
				 "a tcp endpoint needs keys, and there is no %s: mandelq keygen makes it", path);
	free(path);
	return status;
}

/* The key of the first line that is "WHO KEY"; with who NULL "KEY" alone. */
static enum mq_status find_key(const char *path, const char *who, char out[MQ_KEY_SIZE],
			       struct mq_error *err)
{
	FILE *f = fopen(path, "re");
	char line[1024];

	out[0] = '\0';
	if (!f)
		return mq_fail_errno(err, errno, "%s", path);
	while (!out[0] && fgets(line, sizeof(line), f)) {
		char *save = NULL, *word = strtok_r(line, BLANK, &save);

		if (who && word && strcmp(word, who) == 0)
			word = strtok_r(NULL, BLANK, &save);
		else if (who)
			continue;
		if (word && mq_key_valid(word))
			memcpy(out, word, MQ_KEY_SIZE);
	}
	fclose(f);
	return out[0] ? MQ_OK : mq_fail(err, MQ_ENOENT, "no key for it in %s", path);
}

static enum mq_status read_server_key(const struct mq_options *options, const char *uri,
				      struct mq_remote *r, struct mq_error *err)
{
	const char *given = options->count[MQ_OPT_SERVER_KEY] ? options->value[MQ_OPT_SERVER_KEY] : NULL;
	char *path = NULL;
	enum mq_status status;

	if (given && mq_key_valid(given)) {
		memcpy(r->server, given, MQ_KEY_SIZE);
		return MQ_OK;
	}
	if (given) {
		status = find_key(given, NULL, r->server, err);
		return status == MQ_OK ? MQ_OK
				       : mq_fail(err, MQ_EINVAL,
						 "--server-key: neither a key of 40 characters nor a file with "
						 "one: %s", given);
	}
	status = mq_place_config(KNOWN_SERVERS, &path, err);
	if (status != MQ_OK)
		return status;
	status = find_key(path, uri, r->server, err);
	if (status != MQ_OK)
		status = mq_fail(err, MQ_EINVAL,
				 "the public key of the worker at %s is not known: give --server-key=KEY, or "
				 "put a line \"%s KEY\" into %s (mandelqd keygen has printed it)",
				 uri, uri, path);
	free(path);
	return status;
}

/* libzmq takes a name's first address only: an IPv4 one, unless the name has none. */
static bool needs_ipv6(const char *uri)
{
	const char *host = uri + strlen(SCHEME), *colon = strrchr(host, ':');
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *list = NULL;
	char name[256];

	if (host[0] == '[' || !colon || colon - host >= (ptrdiff_t)sizeof(name))
		return true;
	memcpy(name, host, (size_t)(colon - host));
	name[colon - host] = '\0';
	if (getaddrinfo(name, NULL, &hints, &list) != 0)
		return true;
	freeaddrinfo(list);
	return false;
}

enum mq_status mq_remote_read(const struct mq_options *options, const char *uri, struct mq_remote *out,
			      struct mq_error *err)
{
	enum mq_status status = read_keys(options, out, err);

	if (status == MQ_OK)
		status = read_server_key(options, uri, out, err);
	if (status == MQ_OK)
		out->ipv6 = needs_ipv6(uri);
	return status;
}

/* A name of its own each time: the last monitor's may not be free yet. */
static void *watch(struct mq_remote *r, void *socket, void *context)
{
	char address[64];
	void *monitor;
	int none = 0;

	snprintf(address, sizeof(address), "inproc://handshake-%u", ++r->monitors);
	if (zmq_socket_monitor(socket, address, EVENTS) != 0)
		return NULL;
	monitor = zmq_socket(context, ZMQ_PAIR);
	if (monitor && zmq_setsockopt(monitor, ZMQ_LINGER, &none, sizeof(none)) == 0 &&
	    zmq_connect(monitor, address) == 0)
		return monitor;
	if (monitor)
		zmq_close(monitor);
	return NULL;
}

enum mq_status mq_remote_apply(struct mq_remote *remote, void *context, void *socket, void **monitor,
			       struct mq_error *err)
{
	int ipv6 = remote->ipv6;

	if (zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, remote->server, MQ_KEY_SIZE) != 0 ||
	    zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, remote->keys.public_key, MQ_KEY_SIZE) != 0 ||
	    zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, remote->keys.secret_key, MQ_KEY_SIZE) != 0 ||
	    zmq_setsockopt(socket, ZMQ_IPV6, &ipv6, sizeof(ipv6)) != 0)
		return mq_fail(err, MQ_EIO, "cannot set up CURVE: %s", zmq_strerror(errno));
	*monitor = watch(remote, socket, context);
	return *monitor ? MQ_OK : mq_fail(err, MQ_EIO, "cannot watch a socket: %s", zmq_strerror(errno));
}

void mq_remote_unwatch(void *socket, void *monitor)
{
	(void)zmq_socket_monitor(socket, NULL, 0);
	zmq_close(monitor);
}

/* One event: its number and a value, then a frame with an address. */
static bool take_event(void *monitor, uint16_t *event, uint32_t *value)
{
	uint8_t data[6];
	char address[1];

	if (zmq_recv(monitor, data, sizeof(data), ZMQ_DONTWAIT) < (int)sizeof(data))
		return false;
	memcpy(event, data, sizeof(*event));
	memcpy(value, data + sizeof(*event), sizeof(*value));
	(void)zmq_recv(monitor, address, sizeof(address), ZMQ_DONTWAIT);
	return true;
}

enum mq_status mq_remote_look(struct mq_remote *r, void *monitor, const char *uri, struct mq_error *err)
{
	uint16_t event;
	uint32_t value;

	while (take_event(monitor, &event, &value)) {
		if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
			r->broken = 0;
		else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH && value == 400)
			return mq_fail(err, MQ_EPERM,
				       "the worker at %s does not know your key: a line \"%s USER\" must stand in "
				       "its authorized_clients", uri, r->keys.public_key);
		else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL &&
			 value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH)
			return mq_fail(err, MQ_EPERM, "what answers at %s speaks no CURVE: it is no mandelqd",
				       uri);
		else
			r->broken++;
	}
	return MQ_OK;
}

enum mq_status mq_remote_give_up(const struct mq_remote *r, const char *uri, int seconds,
				 struct mq_error *err)
{
	if (r->broken >= BROKEN_MAX)
		return mq_fail(err, MQ_EPERM,
			       "what listens at %s broke off %u handshakes: --server-key is not its public key "
			       "(mandelqd keygen has printed that), or it is no mandelqd", uri, r->broken);
	return mq_fail(err, MQ_EUNREACH, "the worker at %s does not answer (waited %d s)", uri, seconds);
}
