/* endpoint: the order of places, and a plain connect(2) that tells a dead socket at once, where libzmq
 * would go on trying. Called by connect.c and private.c. */
#include "config.h"

#include "client/endpoint.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "src/place.h"

enum mq_status mq_endpoint_probe(const char *uri, struct mq_error *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	enum mq_status status = MQ_OK;
	const char *path = uri + 6;
	size_t len;
	int fd;

	if (strncmp(uri, "ipc://", 6) != 0)
		return MQ_OK;
	len = strlen(path);
	if (len == 0 || len >= sizeof(address.sun_path))
		return mq_fail(err, MQ_EINVAL, "a socket's path has 1 to %zu bytes",
			       sizeof(address.sun_path) - 1);
	memcpy(address.sun_path, path, len + 1);
	if (path[0] == '@')
		address.sun_path[0] = '\0'; /* the abstract name space */

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return mq_fail(err, MQ_EIO, "cannot make a socket: %s", strerror(errno));
	/* EAGAIN: its queue is full, so there is somebody. */
	if (connect(fd, (const struct sockaddr *)&address,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + (path[0] != '@'))) !=
		    0 &&
	    errno != EAGAIN && errno != EINPROGRESS) {
		const char *why = errno == ENOENT         ? "no socket there"
				  : errno == ECONNREFUSED ? "nobody listens"
							  : strerror(errno);

		status = mq_fail(err, MQ_EUNREACH, "%s", why);
	}
	close(fd);
	return status;
}

/* A place that somebody named: it alone counts. */
static enum mq_status find_named(char *uri, const char *who, const char *remedy, char **out,
				 struct mq_error *err)
{
	struct mq_error why;
	enum mq_status status = mq_endpoint_probe(uri, &why);

	if (status == MQ_OK) {
		*out = uri;
		return MQ_OK;
	}
	if (status == MQ_EUNREACH)
		mq_fail(err, status, "no worker answers at %s (%s: %s); start one: %s", uri, who,
			why.text, remedy);
	else
		mq_fail(err, status, "%s: %s: %s", who, uri, why.text);
	free(uri);
	return status;
}

/* HOST:PORT, an IPv6 address in brackets. */
static bool has_port(const char *address)
{
	const char *colon = strrchr(address, ':');
	size_t len = colon ? strlen(colon + 1) : 0, host = colon ? (size_t)(colon - address) : 0;

	if (!host || !len || len > 5 || strspn(colon + 1, "0123456789") != len)
		return false;
	if (memchr(address, ':', host) && !(address[0] == '[' && address[host - 1] == ']'))
		return false;
	return atol(colon + 1) >= 1 && atol(colon + 1) <= 65535;
}

static bool is_endpoint(const char *uri)
{
	if (strncmp(uri, "tcp://", 6) == 0)
		return has_port(uri + 6);
	return strncmp(uri, "ipc://", 6) == 0;
}

static enum mq_status find_endpoint(const char *given, const char *who, char **out,
				    struct mq_error *err)
{
	char remedy[256], *uri;

	if (!is_endpoint(given))
		return mq_fail(err, MQ_EINVAL, "%s: \"%s\" is no endpoint: ipc://PATH is one, "
			       "tcp://HOST:PORT another", who, given);
	uri = strdup(given);
	if (!uri)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for an endpoint");
	snprintf(remedy, sizeof(remedy), "mandelqd --endpoint=%s &", given);
	return find_named(uri, who, remedy, out, err);
}

static enum mq_status find_state_dir(const char *given, const char *who, char **out,
				     struct mq_error *err)
{
	char *dir = NULL, *uri = NULL, remedy[256];
	enum mq_status status = mq_place_state_dir(given, &dir, err);

	if (status == MQ_OK)
		status = mq_place_endpoint(dir, &uri, err);
	if (status == MQ_OK) {
		snprintf(remedy, sizeof(remedy), "mandelqd --state-dir=%s &", dir);
		status = find_named(uri, who, remedy, out, err);
	}
	free(dir);
	return status;
}

/* The user's own worker, then the system's. */
static enum mq_status find_implicit(char **out, struct mq_error *err)
{
	struct mq_error own_why, system_why;
	char *dir = NULL, *own = NULL, *system = NULL;
	enum mq_status status = mq_place_state_dir(NULL, &dir, &own_why);

	if (status == MQ_OK)
		status = mq_place_endpoint(dir, &own, &own_why);
	if (status == MQ_OK)
		status = mq_endpoint_probe(own, &own_why);
	if (status == MQ_OK) {
		*out = own;
		own = NULL;
		goto out;
	}
	status = mq_endpoint_probe(MQ_SYSTEM_ENDPOINT, &system_why);
	if (status == MQ_OK) {
		system = strdup(MQ_SYSTEM_ENDPOINT);
		if (!system)
			status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for an endpoint");
		else
			*out = system;
		goto out;
	}
	status = mq_fail(err, MQ_EUNREACH,
			 "no worker answers; tried %s (%s) and %s (%s); start one: mandelqd & "
			 "or: systemctl start mandelqd",
			 own ? own : "your own", own_why.text, MQ_SYSTEM_ENDPOINT, system_why.text);
out:
	free(own);
	free(dir);
	return status;
}

enum mq_status mq_endpoint_find(const struct mq_options *options, char **out, struct mq_error *err)
{
	const char *given;

	if (options->count[MQ_OPT_ENDPOINT])
		return find_endpoint(options->value[MQ_OPT_ENDPOINT], "--endpoint", out, err);
	if (options->count[MQ_OPT_STATE_DIR])
		return find_state_dir(options->value[MQ_OPT_STATE_DIR], "--state-dir", out, err);
	given = mq_place_environment("MANDELQ_ENDPOINT");
	if (given)
		return find_endpoint(given, "MANDELQ_ENDPOINT", out, err);
	if (mq_place_environment("MANDELQ_STATE_DIR"))
		return find_state_dir(NULL, "MANDELQ_STATE_DIR", out, err);
	return find_implicit(out, err);
}
