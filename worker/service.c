/* service: see service.h. */
#include "worker/service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zmq.h>

#include "src/log.h"
#include "src/message.h"

#define TURN_MAX 256          /* requests a turn: they share its commit */
#define ANSWER_BYTES_MAX (64u << 20) /* of one turn's answers */

struct pending {
	zmq_msg_t peer;
	uint64_t seq;
	struct mq_answer answer;
};

struct mq_service {
	void *context, *router;
	char *path; /* of an ipc endpoint, or NULL */
	struct pending pending[TURN_MAX];
	size_t count;
};

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

/* libzmq unlinks whatever lies at the path before it binds. */
static enum mq_status check_path(const char *path, struct mq_error *err)
{
	struct stat st;

	if (strlen(path) >= sizeof ((struct sockaddr_un *)NULL)->sun_path)
		return mq_fail(err, MQ_EINVAL, "--endpoint: %s is longer than the %zu bytes of a socket's path",
		               path, sizeof ((struct sockaddr_un *)NULL)->sun_path - 1);
	if (lstat(path, &st))
		return errno == ENOENT ? MQ_OK : mq_fail_errno(err, errno, "--endpoint: %s", path);
	if (!S_ISSOCK(st.st_mode))
		return mq_fail(err, MQ_EINVAL, "--endpoint: %s exists and is no socket: it is left alone", path);
	if (socket_is_live(path))
		return mq_fail(err, MQ_EBUSY, "--endpoint: a worker answers at %s already", path);
	return MQ_OK;
}

static enum mq_status set_int(void *socket, int option, int value, struct mq_error *err)
{
	if (zmq_setsockopt(socket, option, &value, sizeof value))
		return mq_fail(err, MQ_EINTERNAL, "setting socket option %d: %s", option, zmq_strerror(errno));
	return MQ_OK;
}

static enum mq_status set_options(void *router, struct mq_error *err)
{
	static const struct {
		int option, value;
	} ints[] = {
		{ZMQ_LINGER, 1000},       {ZMQ_SNDHWM, 256},          {ZMQ_RCVHWM, 256},
		{ZMQ_HANDSHAKE_IVL, 5000}, {ZMQ_HEARTBEAT_IVL, 30000}, {ZMQ_HEARTBEAT_TIMEOUT, 60000},
		{ZMQ_BACKLOG, 1024},      {ZMQ_ROUTER_HANDOVER, 0},
	};
	int64_t max = MQ_MESSAGE_MAX;
	enum mq_status s = MQ_OK;

	for (size_t i = 0; !s && i < sizeof ints / sizeof ints[0]; i++)
		s = set_int(router, ints[i].option, ints[i].value, err);
	if (!s && zmq_setsockopt(router, ZMQ_MAXMSGSIZE, &max, sizeof max))
		s = mq_fail(err, MQ_EINTERNAL, "setting the message limit: %s", zmq_strerror(errno));
	return s;
}

static enum mq_status bind_endpoint(struct mq_service *v, const char *endpoint, struct mq_error *err)
{
	mode_t mask;
	enum mq_status s;
	int rc;

	if (strncmp(endpoint, "ipc://", 6) || endpoint[6] != '/')
		return mq_fail(err, MQ_EINVAL,
		               "--endpoint: %s is not ipc:///ABSOLUTE/PATH; to reach a worker from another "
		               "machine, forward its socket with ssh -L",
		               endpoint);
	s = check_path(endpoint + 6, err);
	if (s)
		return s;
	v->path = strdup(endpoint + 6);
	if (!v->path)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	mask = umask(0117); /* from the first moment nobody but user and group may connect */
	rc = zmq_bind(v->router, endpoint);
	umask(mask);
	if (rc) {
		s = mq_fail(err, MQ_EINVAL, "--endpoint: cannot bind %s: %s", endpoint, zmq_strerror(errno));
		free(v->path);
		v->path = NULL;
		return s;
	}
	if (chmod(v->path, 0660))
		return mq_fail_errno(err, errno, "setting the mode of %s", v->path);
	return MQ_OK;
}

enum mq_status mq_service_open(const char *endpoint, struct mq_service **out, struct mq_error *err)
{
	struct mq_service *v = calloc(1, sizeof *v);
	enum mq_status s;

	if (!v)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for the socket");
	v->context = zmq_ctx_new();
	if (v->context && !zmq_ctx_set(v->context, ZMQ_MAX_SOCKETS, 16))
		v->router = zmq_socket(v->context, ZMQ_ROUTER);
	if (!v->router)
		s = mq_fail(err, MQ_EINTERNAL, "opening a socket: %s", zmq_strerror(errno));
	else
		s = set_options(v->router, err);
	if (!s)
		s = bind_endpoint(v, endpoint, err);
	if (s)
		mq_service_close(v);
	else
		*out = v;
	return s;
}

static void pending_clear(struct pending *p)
{
	zmq_msg_close(&p->peer);
	mq_answer_clear(&p->answer);
}

void mq_service_close(struct mq_service *v)
{
	if (!v)
		return;
	while (v->count)
		pending_clear(&v->pending[--v->count]);
	if (v->router)
		zmq_close(v->router);
	if (v->context)
		zmq_ctx_term(v->context);
	if (v->path)
		(void)unlink(v->path);
	free(v->path);
	free(v);
}

void *mq_service_socket(struct mq_service *v)
{
	return v->router;
}

/* One frame, waiting for nothing. False: there is none. */
static bool frame(struct mq_service *v, zmq_msg_t *msg)
{
	zmq_msg_init(msg);
	if (zmq_msg_recv(msg, v->router, ZMQ_DONTWAIT) >= 0)
		return true;
	if (errno != EAGAIN && errno != EINTR)
		mq_log(MQ_LOG_ERROR, "receiving: %s", zmq_strerror(errno));
	zmq_msg_close(msg);
	return false;
}

/* Reads away what follows the body. */
static unsigned drain(struct mq_service *v)
{
	zmq_msg_t msg;
	unsigned extra = 0;

	while (frame(v, &msg)) {
		int more = zmq_msg_more(&msg);

		zmq_msg_close(&msg);
		extra++;
		if (!more)
			break;
	}
	return extra;
}

static void carry_out(struct pending *p, struct mq_verbs *verbs, zmq_msg_t *body, unsigned extra,
                      int64_t now_ms)
{
	struct mq_request request = {0};
	enum mq_status s;

	s = mq_request_decode(zmq_msg_data(body), zmq_msg_size(body), &request, &p->answer.error);
	p->seq = request.seq;
	if (!s && extra) {
		mq_request_clear(&request);
		s = mq_fail(&p->answer.error, MQ_EPROTO, "a request is one frame, not %u", extra + 1);
	}
	p->answer.status = s;
	if (s)
		return;
	mq_verbs_call(verbs, &request, -1, now_ms, &p->answer);
	mq_request_clear(&request);
}

void mq_service_receive(struct mq_service *v, struct mq_verbs *verbs, int64_t now_ms, bool *more)
{
	size_t bytes = 0;

	*more = false;
	while (v->count < TURN_MAX && bytes < ANSWER_BYTES_MAX) {
		struct pending *p = &v->pending[v->count];
		zmq_msg_t body;

		memset(&p->answer, 0, sizeof p->answer);
		if (!frame(v, &p->peer))
			return;
		if (!zmq_msg_more(&p->peer) || !frame(v, &body)) {
			zmq_msg_close(&p->peer);
			continue;
		}
		carry_out(p, verbs, &body, zmq_msg_more(&body) ? drain(v) : 0, now_ms);
		zmq_msg_close(&body);
		bytes += p->answer.data_len;
		v->count++;
	}
	*more = true;
}

static void free_data(void *data, void *hint)
{
	(void)hint;
	free(data);
}

/* A peer that is gone, or too slow to take its answers, loses them: it asks again. */
static void send_one(struct mq_service *v, struct pending *p)
{
	struct mq_answer *a = &p->answer;
	zmq_msg_t msg;
	size_t len;
	char *text = mq_reply_encode(p->seq, a->status, a->status ? a->error.text : NULL, a->result, &len);

	if (!text) {
		mq_log(MQ_LOG_ERROR, "no memory to encode a reply");
		return;
	}
	if (zmq_msg_send(&p->peer, v->router, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
		free(text);
		return;
	}
	if (zmq_msg_init_data(&msg, text, len, free_data, NULL)) {
		free(text);
		zmq_msg_init(&msg);
	}
	if (zmq_msg_send(&msg, v->router, (a->data ? ZMQ_SNDMORE : 0) | ZMQ_DONTWAIT) < 0) {
		zmq_msg_close(&msg);
		return;
	}
	if (!a->data)
		return;
	if (zmq_msg_init_data(&msg, a->data, a->data_len, free_data, NULL)) {
		zmq_msg_init(&msg);
	} else {
		a->data = NULL;
	}
	if (zmq_msg_send(&msg, v->router, ZMQ_DONTWAIT) < 0)
		zmq_msg_close(&msg);
}

void mq_service_send(struct mq_service *v)
{
	for (size_t i = 0; i < v->count; i++) {
		send_one(v, &v->pending[i]);
		pending_clear(&v->pending[i]);
	}
	v->count = 0;
}
