/* tcp: see tcp.h. */
#include "config.h" /* asprintf */

#include "worker/tcp.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define BACKLOG 1024

struct address {
	char host[80];
	const char *port;
	bool all, brackets;
};

static enum mq_status split(const char *endpoint, struct address *out, struct mq_error *err)
{
	const char *host = endpoint + strlen(MQ_TCP_SCHEME), *colon = strrchr(host, ':');
	size_t len = colon ? (size_t)(colon - host) : 0;

	if (colon && len && len < sizeof out->host) {
		out->brackets = len > 2 && host[0] == '[' && host[len - 1] == ']';
		memcpy(out->host, host + out->brackets, len - 2 * out->brackets);
		out->host[len - 2 * out->brackets] = '\0';
		out->port = colon + 1;
		out->all = !strcmp(out->host, "*");
		/* an IPv6 address without brackets would be cut at its last group */
		if (*out->port && strspn(out->port, "0123456789") == strlen(out->port) &&
		    atol(out->port) <= 65535 && (out->brackets || !strchr(out->host, ':')))
			return MQ_OK;
	}
	return mq_fail(err, MQ_EINVAL,
	               "--endpoint: %s is not tcp://ADDRESS:PORT, as tcp://192.0.2.1:5555, "
	               "tcp://[2001:db8::1]:5555 or tcp://*:5555",
	               endpoint);
}

/* The errno, or 0. all: IPv4 as well. */
static int listen_at(const struct addrinfo *a, bool all, int *out)
{
	int on = 1, v6only = !all, e = 0;
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) ||
	    (a->ai_family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6only, sizeof v6only)) ||
	    bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, BACKLOG))
		e = errno;
	if (e)
		close(fd);
	else
		*out = fd;
	return e;
}

static enum mq_status name(int fd, const struct address *a, char **bound, struct mq_error *err)
{
	struct sockaddr_storage at;
	socklen_t len = sizeof at;
	char port[8];

	if (getsockname(fd, (struct sockaddr *)&at, &len) ||
	    getnameinfo((struct sockaddr *)&at, len, NULL, 0, port, sizeof port, NI_NUMERICSERV) ||
	    asprintf(bound, MQ_TCP_SCHEME "%s%s%s:%s", a->brackets ? "[" : "", a->host,
	             a->brackets ? "]" : "", port) < 0)
		return mq_fail(err, MQ_EIO, "--endpoint: the socket's own address cannot be told");
	return MQ_OK;
}

enum mq_status mq_tcp_check(const char *endpoint, struct mq_error *err)
{
	struct address a;

	return split(endpoint, &a, err);
}

enum mq_status mq_tcp_listen(const char *endpoint, int *fd, char **bound, struct mq_error *err)
{
	struct addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV,
	                         .ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;
	struct address a;
	enum mq_status s = split(endpoint, &a, err);
	int e;

	if (s)
		return s;
	hints.ai_family = a.brackets ? AF_INET6 : AF_INET;
	e = getaddrinfo(a.all ? NULL : a.host, a.port, &hints, &list);
	if (e)
		return mq_fail(err, MQ_EINVAL, "--endpoint: %s: %s is no address of a network interface: %s",
		               endpoint, a.host, gai_strerror(e));
	e = EAFNOSUPPORT;
	if (a.all) {
		struct addrinfo *six = NULL;

		hints.ai_family = AF_INET6;
		if (!getaddrinfo(NULL, a.port, &hints, &six)) {
			e = listen_at(six, true, fd);
			freeaddrinfo(six);
		}
	}
	/* Without IPv6 in the kernel, or allowed to the service. */
	if (!a.all || e == EAFNOSUPPORT || e == EADDRNOTAVAIL)
		e = listen_at(list, false, fd);
	freeaddrinfo(list);
	if (e == EAFNOSUPPORT)
		return mq_fail(err, MQ_EINVAL,
		               "--endpoint: cannot listen at %s: %s; the service's unit keeps it from the network "
		               "until a drop-in allows it, see mandelqd(8)",
		               endpoint, strerror(e));
	if (e)
		return mq_fail(err, MQ_EINVAL, "--endpoint: cannot listen at %s: %s", endpoint, strerror(e));
	s = name(*fd, &a, bound, err);
	if (s)
		close(*fd);
	return s;
}
