/* listener: see listener.h. */
#include "worker/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include "src/message.h"
#include "worker/tcp.h"

#define SCHEME "ipc://"
#define MONITOR "inproc://monitor"
#define ZAP "inproc://zeromq.zap.01"
#define ZAP_DOMAIN "mandelq"
#ifndef ZMQ_ZAP_ENFORCE_DOMAIN
#define ZMQ_ZAP_ENFORCE_DOMAIN 93 /* in libzmq since 4.3, in its header as a draft */
#endif
#define BACKLOG 1024
#define LINGER_MS 1000

/* NULL: not a unix socket. */
static const char *path_of(const struct mq_listener *l)
{
	return l->keys ? NULL : l->endpoint + strlen(SCHEME);
}

static void unlink_socket(const struct mq_listener *l)
{
	if (path_of(l))
		(void)unlink(path_of(l));
}

/* Is somebody listening on this unix socket? */
static bool socket_is_live(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool live;

	if (fd < 0)
		return true;
	memcpy(a.sun_path, path, strlen(path) + 1);
	live = connect(fd, (struct sockaddr *)&a, sizeof a) == 0 || errno == EAGAIN;
	close(fd);
	return live;
}

static enum mq_status fail_bind(const char *path, struct mq_error *err)
{
	int e = errno;
	enum mq_status s = mq_fail_errno(err, e, "--endpoint: cannot bind %s", path);

	/* Unless the disk is to blame, started again it would be the same. */
	return s == MQ_ENOSPC || s == MQ_ENOMEM_HOST || e == EIO ? s : MQ_EINVAL;
}

/* MQ_OK: nothing is in the way of the socket, or (*stale) what a worker that is gone has left. */
static enum mq_status look_at_path(const char *path, bool *stale, struct mq_error *err)
{
	struct stat st;

	*stale = false;
	if (strlen(path) >= sizeof ((struct sockaddr_un *)NULL)->sun_path)
		return mq_fail(err, MQ_EINVAL, "--endpoint: %s is longer than the %zu bytes of a socket's path",
		               path, sizeof ((struct sockaddr_un *)NULL)->sun_path - 1);
	if (lstat(path, &st))
		return errno == ENOENT ? MQ_OK : fail_bind(path, err);
	if (!S_ISSOCK(st.st_mode))
		return mq_fail(err, MQ_EINVAL, "--endpoint: %s exists and is no socket: it is left alone", path);
	if (socket_is_live(path))
		return mq_fail(err, MQ_EBUSY, "--endpoint: a worker answers at %s already", path);
	*stale = true;
	return MQ_OK;
}

/* Makes way for the socket. */
static enum mq_status clear_path(const char *path, struct mq_error *err)
{
	bool stale;
	enum mq_status s = look_at_path(path, &stale, err);

	if (s || !stale)
		return s;
	if (unlink(path) && errno != ENOENT)
		return mq_fail_errno(err, errno, "--endpoint: removing the stale socket %s", path);
	return MQ_OK;
}

static enum mq_status listen_at(const char *path, int *out, struct mq_error *err)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	enum mq_status s = clear_path(path, err);
	mode_t mask;
	int fd, rc;

	if (s)
		return s;
	/* Not blocking: while it changes hands two threads of libzmq may want the same connection. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return mq_fail_errno(err, errno, "--endpoint: making a socket");
	memcpy(a.sun_path, path, strlen(path) + 1);
	mask = umask(0117); /* from the first moment nobody but user and group may connect */
	rc = bind(fd, (struct sockaddr *)&a, sizeof a);
	umask(mask);
	if (rc) {
		s = fail_bind(path, err);
	} else if (chmod(path, 0660) || listen(fd, BACKLOG)) {
		s = mq_fail_errno(err, errno, "--endpoint: %s", path);
		(void)unlink(path);
	}
	if (s)
		close(fd);
	else
		*out = fd;
	return s;
}

static enum mq_status fail_zmq(struct mq_error *err, const char *what)
{
	return mq_fail(err, MQ_EINTERNAL, "%s: %s", what, zmq_strerror(errno));
}

/* Each message that a peer has on its way, and each that waits for it, may take MQ_MESSAGE_MAX. */
static enum mq_status set_options(struct mq_listener *l, struct mq_error *err)
{
	static const struct mq_listener_option common[] = {
		{ZMQ_LINGER, LINGER_MS},       {ZMQ_RCVHWM, 16},
		{ZMQ_HANDSHAKE_IVL, 5000},     {ZMQ_HEARTBEAT_IVL, 30000},
		{ZMQ_HEARTBEAT_TIMEOUT, 60000},
	};
	int64_t max = MQ_MESSAGE_MAX + MQ_TRANSPORT_MAX;
	int rc = zmq_setsockopt(l->socket, ZMQ_MAXMSGSIZE, &max, sizeof max);

	for (size_t i = 0; !rc && i < sizeof common / sizeof common[0]; i++)
		rc = zmq_setsockopt(l->socket, common[i].option, &common[i].value, sizeof(int));
	for (size_t i = 0; !rc && i < l->option_count; i++)
		rc = zmq_setsockopt(l->socket, l->options[i].option, &l->options[i].value, sizeof(int));
	return rc ? fail_zmq(err, "setting a socket's options") : MQ_OK;
}

/* Watches peers come and go. Its queue has no limit: a full one would stop libzmq's thread. */
static enum mq_status watch_peers(struct mq_listener *l, struct mq_error *err)
{
	int none = 0;

	if (zmq_socket_monitor(l->socket, MONITOR, ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED))
		return fail_zmq(err, "watching a socket");
	l->monitor = zmq_socket(l->context, ZMQ_PAIR);
	if (!l->monitor || zmq_setsockopt(l->monitor, ZMQ_RCVHWM, &none, sizeof none) ||
	    zmq_setsockopt(l->monitor, ZMQ_LINGER, &none, sizeof none) ||
	    zmq_connect(l->monitor, MONITOR))
		return fail_zmq(err, "watching a socket");
	l->peers = 0;
	return MQ_OK;
}

/* CURVE, and somebody to ask before the first peer comes: libzmq would let all in if nobody were there,
 * but for ENFORCE_DOMAIN. */
static enum mq_status set_curve(struct mq_listener *l, struct mq_error *err)
{
	int yes = 1, none = 0;

	l->zap = zmq_socket(l->context, ZMQ_REP);
	if (!l->zap || zmq_setsockopt(l->zap, ZMQ_LINGER, &none, sizeof none) || zmq_bind(l->zap, ZAP) ||
	    zmq_setsockopt(l->socket, ZMQ_ZAP_DOMAIN, ZAP_DOMAIN, strlen(ZAP_DOMAIN)) ||
	    zmq_setsockopt(l->socket, ZMQ_ZAP_ENFORCE_DOMAIN, &yes, sizeof yes) ||
	    zmq_setsockopt(l->socket, ZMQ_CURVE_SERVER, &yes, sizeof yes) ||
	    zmq_setsockopt(l->socket, ZMQ_CURVE_SECRETKEY, l->keys->secret_key, MQ_KEY_SIZE) ||
	    zmq_setsockopt(l->socket, ZMQ_IPV6, &yes, sizeof yes))
		return fail_zmq(err, "setting up CURVE");
	return MQ_OK;
}

/* libzmq owns what it is lent, so it gets a descriptor of its own for the same unix socket; it does
 * not unlink a path then, neither now nor when it closes. */
static enum mq_status bind_socket(struct mq_listener *l, struct mq_error *err)
{
	int fd = fcntl(l->fd, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return mq_fail_errno(err, errno, "--endpoint: %s", l->endpoint);
	if (zmq_setsockopt(l->socket, ZMQ_USE_FD, &fd, sizeof fd)) {
		close(fd);
		return fail_zmq(err, "lending a socket");
	}
	if (zmq_bind(l->socket, l->endpoint))
		return mq_fail(err, MQ_EINVAL, "--endpoint: cannot bind %s: %s", l->endpoint,
		               zmq_strerror(errno));
	return MQ_OK;
}

enum mq_status mq_listener_start(struct mq_listener *l, struct mq_error *err)
{
	enum mq_status s = MQ_OK;

	l->context = zmq_ctx_new();
	l->socket = l->context ? zmq_socket(l->context, l->type) : NULL;
	if (!l->socket)
		s = fail_zmq(err, "opening a socket");
	if (!s)
		s = set_options(l, err);
	if (!s)
		s = watch_peers(l, err);
	if (!s && l->keys)
		s = set_curve(l, err);
	if (!s)
		s = bind_socket(l, err);
	if (s)
		mq_listener_stop(l);
	return s;
}

static void end(struct mq_listener *l)
{
	if (l->socket) {
		(void)zmq_socket_monitor(l->socket, NULL, 0);
		zmq_close(l->socket);
	}
	if (l->monitor)
		zmq_close(l->monitor);
	if (l->zap)
		zmq_close(l->zap);
	if (l->context)
		zmq_ctx_term(l->context);
	l->socket = l->monitor = l->zap = l->context = NULL;
	l->peers = 0;
}

void mq_listener_stop(struct mq_listener *l)
{
	int none = 0;

	if (l->socket)
		(void)zmq_setsockopt(l->socket, ZMQ_LINGER, &none, sizeof none);
	end(l);
}

enum mq_status mq_listener_check(const char *endpoint, struct mq_error *err)
{
	if (!strncmp(endpoint, SCHEME, strlen(SCHEME)) && endpoint[strlen(SCHEME)] == '/')
		return MQ_OK;
	return mq_fail(err, MQ_EINVAL, "--endpoint: %s is neither ipc:///ABSOLUTE/PATH nor tcp://ADDRESS:PORT",
	               endpoint);
}

enum mq_status mq_listener_probe(const char *endpoint, struct mq_error *err)
{
	enum mq_status s = mq_listener_check(endpoint, err);
	const char *path = endpoint + strlen(SCHEME);
	char *folder;
	bool stale;

	if (!s)
		s = look_at_path(path, &stale, err);
	if (s)
		return s;
	folder = strndup(path, (size_t)(strrchr(path, '/') - path) + 1);
	if (!folder)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS))
		s = fail_bind(path, err);
	free(folder);
	return s;
}

enum mq_status mq_listener_open(struct mq_listener *l, const char *endpoint, int type,
                                const struct mq_listener_option *options, size_t option_count,
                                struct mq_error *err)
{
	enum mq_status s = mq_listener_check(endpoint, err);

	if (s)
		return s;
	*l = (struct mq_listener){.type = type, .options = options, .option_count = option_count};
	l->endpoint = strdup(endpoint);
	if (!l->endpoint)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	s = listen_at(path_of(l), &l->fd, err);
	if (!s) {
		s = mq_listener_start(l, err);
		if (s) {
			(void)unlink(path_of(l));
			close(l->fd);
		}
	}
	if (s)
		free(l->endpoint);
	return s;
}

enum mq_status mq_listener_open_tcp(struct mq_listener *l, const char *endpoint, int type,
                                    const struct mq_listener_option *options, size_t option_count,
                                    const struct mq_keypair *keys, struct mq_error *err)
{
	enum mq_status s;

	*l = (struct mq_listener){.type = type, .options = options, .option_count = option_count,
	                          .keys = keys};
	s = mq_tcp_listen(endpoint, &l->fd, &l->endpoint, err);
	if (s)
		return s;
	s = mq_listener_start(l, err);
	if (s) {
		close(l->fd);
		free(l->endpoint);
	}
	return s;
}

void mq_listener_close(struct mq_listener *l)
{
	/* First, so that nobody connects to what will not answer. */
	unlink_socket(l);
	end(l);
	close(l->fd);
	free(l->endpoint);
}

void *mq_listener_monitor(const struct mq_listener *l)
{
	return l->monitor;
}

void *mq_listener_zap(const struct mq_listener *l)
{
	return l->zap;
}

const char *mq_listener_endpoint(const struct mq_listener *l)
{
	return l->endpoint;
}

/* One event: its number and a value, then a frame with an address. */
static bool take_event(struct mq_listener *l, uint16_t *event)
{
	uint8_t data[6];
	char address[1];

	if (zmq_recv(l->monitor, data, sizeof data, ZMQ_DONTWAIT) < (int)sizeof data)
		return false;
	memcpy(event, data, sizeof *event);
	(void)zmq_recv(l->monitor, address, sizeof address, ZMQ_DONTWAIT);
	return true;
}

unsigned mq_listener_peers(struct mq_listener *l)
{
	uint16_t event;

	while (l->monitor && take_event(l, &event)) {
		if (event == ZMQ_EVENT_ACCEPTED)
			l->peers++;
		else if (event == ZMQ_EVENT_DISCONNECTED && l->peers)
			l->peers--;
	}
	return l->peers;
}
