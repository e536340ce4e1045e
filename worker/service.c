/* service: see service.h. */
#include "worker/service.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#include "src/clock.h"
#include "src/log.h"
#include "src/message.h"

#define TURN_MAX 256                 /* requests a turn: they share its commit */
#define ANSWER_BYTES_MAX (64u << 20) /* of one turn's answers */
#define TURN_MS 50                   /* no request is begun later in a turn: answers wait for its end */
/* Answers that may wait for one peer; those beyond are lost. The data of one takes MQ_READ_MAX. */
#define PEER_ANSWERS_MAX 32

struct pending {
	zmq_msg_t peer;
	char *text; /* NULL: there was no memory for an answer */
	size_t text_len;
	void *data;
	size_t data_len;
};

struct mq_service {
	struct mq_listener listener;
	struct mq_remote *remote; /* NULL: peers are of this machine */
	struct pending pending[TURN_MAX];
	size_t count;
};

enum mq_status mq_service_open(const char *endpoint, struct mq_remote *remote, struct mq_service **out,
                               struct mq_error *err)
{
	static const struct mq_listener_option options[] = {{ZMQ_SNDHWM, PEER_ANSWERS_MAX},
	                                                    {ZMQ_ROUTER_HANDOVER, 0}};
	struct mq_service *v = calloc(1, sizeof *v);
	enum mq_status s;

	if (!v)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for the socket");
	v->remote = remote;
	if (remote)
		s = mq_listener_open_tcp(&v->listener, endpoint, ZMQ_ROUTER, options,
		                         sizeof options / sizeof options[0], &remote->keys, err);
	else
		s = mq_listener_open(&v->listener, endpoint, ZMQ_ROUTER, options,
		                     sizeof options / sizeof options[0], err);
	if (s)
		free(v);
	else
		*out = v;
	return s;
}

static void pending_clear(struct pending *p)
{
	zmq_msg_close(&p->peer);
	free(p->text);
	free(p->data);
}

static void drop_pending(struct mq_service *v)
{
	while (v->count)
		pending_clear(&v->pending[--v->count]);
}

void mq_service_close(struct mq_service *v)
{
	if (!v)
		return;
	drop_pending(v);
	mq_listener_close(&v->listener);
	free(v);
}

struct mq_listener *mq_service_listener(struct mq_service *v)
{
	return &v->listener;
}

void mq_service_stop(struct mq_service *v)
{
	drop_pending(v);
	mq_listener_stop(&v->listener);
}

/* One frame, waiting for nothing. False: there is none. */
static bool frame(struct mq_service *v, zmq_msg_t *msg)
{
	zmq_msg_init(msg);
	if (zmq_msg_recv(msg, v->listener.socket, ZMQ_DONTWAIT) >= 0)
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

/* The user behind a connection over ipc, as the kernel told libzmq ("localhost:UID:GID:PID"); -1 for
 * every other peer: no address on a network begins so. */
static int64_t peer_uid(zmq_msg_t *body)
{
	const char *address = zmq_msg_gets(body, "Peer-Address");
	unsigned uid, gid;
	int pid, end = 0;

	if (!address || sscanf(address, "localhost:%u:%u:%d%n", &uid, &gid, &pid, &end) != 3 || address[end])
		return -1;
	return uid;
}

/* Who asks. Over ipc an unknown user may look; over tcp nobody unknown may anything. */
static enum mq_status owner_of(struct mq_service *v, zmq_msg_t *body, int64_t *owner, struct mq_error *err)
{
	*owner = v->remote ? mq_remote_owner(v->remote, body) : peer_uid(body);
	return v->remote && *owner < 0 ? mq_fail(err, MQ_EPERM, "your key is not authorized any more") : MQ_OK;
}

/* The answer as it will be sent: its size counts from now on, and a failed commit sends none. */
static void encode(struct pending *p, uint64_t seq, struct mq_answer *a)
{
	p->text = mq_reply_encode(seq, a->status, a->status ? a->error.text : NULL, a->result,
	                          &p->text_len);
	if (!p->text) {
		mq_log(MQ_LOG_ERROR, "no memory to encode a reply");
		p->text_len = 0;
	}
	p->data = a->data;
	p->data_len = a->data_len;
	a->data = NULL;
	mq_answer_clear(a);
}

static void carry_out(struct mq_service *v, struct pending *p, struct mq_verbs *verbs, zmq_msg_t *body, unsigned extra,
                      int64_t now_ms)
{
	struct mq_request request = {0};
	struct mq_answer answer = {0};
	int64_t owner = -1;
	uint64_t seq;
	enum mq_status s;

	s = mq_request_decode(zmq_msg_data(body), zmq_msg_size(body), &request, &answer.error);
	seq = request.seq;
	if (!s && extra)
		s = mq_fail(&answer.error, MQ_EPROTO, "a request is one frame, not %u", extra + 1);
	if (!s)
		s = owner_of(v, body, &owner, &answer.error);
	answer.status = s;
	if (!s)
		mq_verbs_call(verbs, &request, owner, now_ms, &answer);
	encode(p, seq, &answer);
	mq_request_clear(&request);
}

void mq_service_receive(struct mq_service *v, struct mq_verbs *verbs, int64_t now_ms, bool *more)
{
	int64_t begun = mq_clock_ms();
	size_t bytes = 0;

	*more = false;
	if (v->remote)
		mq_remote_answer(v->remote, mq_listener_zap(&v->listener));
	while (v->count < TURN_MAX && bytes < ANSWER_BYTES_MAX && mq_clock_ms() - begun < TURN_MS) {
		struct pending *p = &v->pending[v->count];
		zmq_msg_t body;

		if (!frame(v, &p->peer))
			return;
		if (!zmq_msg_more(&p->peer) || !frame(v, &body)) {
			zmq_msg_close(&p->peer);
			continue;
		}
		carry_out(v, p, verbs, &body, zmq_msg_more(&body) ? drain(v) : 0, now_ms);
		zmq_msg_close(&body);
		bytes += p->text_len + p->data_len;
		v->count++;
	}
	*more = true;
}

/* A frame behind the peer's own. One that cannot be made, for want of memory, is sent empty and as the
 * last: what is sent next must not become a part of this message. */
static bool send_frame(struct mq_service *v, const void *data, size_t len, int more)
{
	if (zmq_send(v->listener.socket, data, len, more | ZMQ_DONTWAIT) >= 0)
		return true;
	(void)zmq_send(v->listener.socket, NULL, 0, ZMQ_DONTWAIT);
	return false;
}

/* A peer that is gone, or too slow to take its answers, loses them: it asks again. */
static void send_one(struct mq_service *v, struct pending *p)
{
	if (!p->text || zmq_msg_send(&p->peer, v->listener.socket, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0)
		return;
	if (send_frame(v, p->text, p->text_len, p->data ? ZMQ_SNDMORE : 0) && p->data)
		(void)send_frame(v, p->data, p->data_len, 0);
}

void mq_service_send(struct mq_service *v)
{
	for (size_t i = 0; i < v->count; i++) {
		send_one(v, &v->pending[i]);
		pending_clear(&v->pending[i]);
	}
	v->count = 0;
}
