/* connect: a DEALER socket that is thrown away and made again when a reply does not come (the Lazy
 * Pirate of the ZeroMQ guide). Called by every command. Replies are not trusted: whatever comes, the
 * result is an object or a failure. */
#include "config.h"

#include "client/connect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <zmq.h>

#include "client/endpoint.h"
#include "client/interrupt.h"
#include "client/remote.h"
#include "src/clock.h"
#include "src/message.h"

#define ATTEMPT_MS 1700
#define GRACE_MS 250 /* that a request has although its caller's time is over */

struct mq_client {
	void *context, *socket;
	struct mq_remote *remote; /* over tcp, or NULL; and what tells of its handshakes */
	void *monitor;
	char *uri;
	uint64_t seq;
	int64_t until_ms; /* 0: no limit but MQ_CALL_MS */
};

/* What came back: the reply's text and the bytes behind it. */
struct incoming {
	void *data;
	size_t size, len;
	bool has_data;
};

static enum mq_status open_socket(struct mq_client *c, struct mq_error *err)
{
	static const struct {
		int option, value;
	} settings[] = {
		{ ZMQ_LINGER, 0 },
		{ ZMQ_SNDHWM, 16 },
		{ ZMQ_RCVHWM, 16 },
		{ ZMQ_HEARTBEAT_IVL, 2000 },
		{ ZMQ_HEARTBEAT_TIMEOUT, 5000 },
		{ ZMQ_HANDSHAKE_IVL, 5000 },
		{ ZMQ_RECONNECT_IVL, 50 },
		{ ZMQ_RECONNECT_IVL_MAX, 500 },
	};
	int64_t max = (MQ_MESSAGE_MAX > MQ_READ_MAX ? MQ_MESSAGE_MAX : MQ_READ_MAX) + MQ_TRANSPORT_MAX;
	int rc;

	if (c->socket)
		return MQ_OK;
	c->socket = zmq_socket(c->context, ZMQ_DEALER);
	if (!c->socket)
		return mq_fail(err, MQ_EIO, "cannot make a socket: %s", zmq_strerror(errno));
	rc = zmq_setsockopt(c->socket, ZMQ_MAXMSGSIZE, &max, sizeof(max));
	for (size_t i = 0; rc == 0 && i < sizeof(settings) / sizeof(settings[0]); i++)
		rc = zmq_setsockopt(c->socket, settings[i].option, &settings[i].value, sizeof(int));
	if (rc != 0)
		return mq_fail(err, MQ_EIO, "cannot set up a socket: %s", zmq_strerror(errno));
	if (c->remote) {
		enum mq_status status =
			mq_remote_apply(c->remote, c->context, c->socket, &c->monitor, err);

		if (status != MQ_OK)
			return status;
	}
	if (zmq_connect(c->socket, c->uri) != 0)
		return mq_fail(err, MQ_EINVAL, "cannot connect to the endpoint %s: %s", c->uri,
			       zmq_strerror(errno));
	return MQ_OK;
}

static void close_socket(struct mq_client *c)
{
	if (c->monitor)
		mq_remote_unwatch(c->socket, c->monitor);
	if (c->socket)
		zmq_close(c->socket);
	c->socket = c->monitor = NULL;
}

static enum mq_status open_remote(struct mq_client *c, const struct mq_options *options,
				  struct mq_error *err)
{
	c->remote = calloc(1, sizeof(*c->remote));
	return c->remote ? mq_remote_read(options, c->uri, c->remote, err)
			 : mq_fail(err, MQ_ENOMEM_HOST, "no memory for keys");
}

/* Takes uri over, also on failure. options: for the keys; NULL: a worker of our own. */
static enum mq_status open_client(char *uri, const struct mq_options *options, struct mq_client **out,
				  struct mq_error *err)
{
	struct mq_client *c = calloc(1, sizeof(*c));
	enum mq_status status;

	if (!c || !uri) {
		free(uri);
		free(c);
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a connection");
	}
	c->uri = uri;
	/* A start of its own, so that no late reply to an earlier process fits. */
	if (getrandom(&c->seq, sizeof(c->seq), 0) != (ssize_t)sizeof(c->seq))
		c->seq = (uint64_t)mq_clock_ms();
	c->seq &= (1ull << 48) - 1;
	status = options && mq_remote_is(uri) ? open_remote(c, options, err) : MQ_OK;
	if (status == MQ_OK) {
		c->context = zmq_ctx_new();
		status = c->context ? open_socket(c, err)
				    : mq_fail(err, MQ_ENOMEM_HOST, "cannot start libzmq: %s",
					      zmq_strerror(errno));
	}
	if (status != MQ_OK) {
		mq_client_close(c);
		return status;
	}
	*out = c;
	return MQ_OK;
}

enum mq_status mq_client_open_at(const char *uri, struct mq_client **out, struct mq_error *err)
{
	return open_client(strdup(uri), NULL, out, err);
}

enum mq_status mq_client_open(const struct mq_options *options, struct mq_client **out,
			      struct mq_error *err)
{
	char *uri = NULL;
	enum mq_status status = mq_endpoint_find(options, &uri, err);

	return status == MQ_OK ? open_client(uri, options, out, err) : status;
}

void mq_client_close(struct mq_client *client)
{
	if (!client)
		return;
	close_socket(client);
	if (client->context)
		zmq_ctx_term(client->context);
	if (client->remote)
		explicit_bzero(client->remote, sizeof(*client->remote));
	free(client->remote);
	free(client->uri);
	free(client);
}

const char *mq_client_uri(const struct mq_client *client)
{
	return client->uri;
}

void mq_client_until(struct mq_client *client, int64_t until_ms)
{
	client->until_ms = until_ms;
}

int64_t mq_client_sooner(const struct mq_client *client, int64_t at_ms)
{
	int64_t least = mq_clock_ms() + GRACE_MS, until = client->until_ms;

	if (!until || until >= at_ms)
		return at_ms;
	until = until > least ? until : least;
	return until < at_ms ? until : at_ms;
}

bool mq_client_lost(enum mq_status status)
{
	return status == MQ_EUNREACH || status == MQ_EBUSY ||
	       (status == MQ_ESTOPPED && !mq_interrupted());
}

/* Takes one whole message off the socket. MQ_EPROTO when it has not one or two frames that fit. */
static enum mq_status take_message(struct mq_client *c, zmq_msg_t *head, struct incoming *in,
				   struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	bool more;

	in->has_data = false;
	in->len = 0;
	if (zmq_msg_recv(head, c->socket, ZMQ_DONTWAIT) < 0)
		return mq_fail(err, MQ_EIO, "cannot receive: %s", zmq_strerror(errno));
	more = zmq_msg_more(head);
	while (more) {
		zmq_msg_t part;

		zmq_msg_init(&part);
		if (zmq_msg_recv(&part, c->socket, 0) < 0) {
			zmq_msg_close(&part);
			return mq_fail(err, MQ_EIO, "cannot receive: %s", zmq_strerror(errno));
		}
		if (in->has_data || zmq_msg_size(&part) > in->size) {
			status =
				mq_fail(err, MQ_EPROTO, "a reply from %s that is too long", c->uri);
		} else {
			in->has_data = true;
			in->len = zmq_msg_size(&part);
			if (in->len)
				memcpy(in->data, zmq_msg_data(&part), in->len);
		}
		more = zmq_msg_more(&part);
		zmq_msg_close(&part);
	}
	return status;
}

/* Waits until `until` for the reply with number seq; others are late and dropped. MQ_ETIMEOUT. */
static enum mq_status receive(struct mq_client *c, uint64_t seq, int64_t until,
			      struct mq_reply *reply, struct incoming *in, struct mq_error *err)
{
	for (;;) {
		zmq_pollitem_t items[3] = { { .socket = c->socket, .events = ZMQ_POLLIN } };
		int count = 1;
		int64_t left = until - mq_clock_ms();
		enum mq_status status = mq_interrupt_check(err);
		zmq_msg_t head;

		if (status != MQ_OK)
			return status;
		if (left <= 0)
			return MQ_ETIMEOUT;
		if (c->monitor)
			items[count++] =
				(zmq_pollitem_t){ .socket = c->monitor, .events = ZMQ_POLLIN };
		if (mq_interrupt_fd() >= 0)
			items[count++] =
				(zmq_pollitem_t){ .fd = mq_interrupt_fd(), .events = ZMQ_POLLIN };
		if (zmq_poll(items, count, (long)left) < 0 && errno != EINTR)
			return mq_fail(err, MQ_EIO, "cannot wait for a reply: %s",
				       zmq_strerror(errno));
		if (c->monitor)
			status = mq_remote_look(c->remote, c->monitor, c->uri, err);
		if (status != MQ_OK)
			return status;
		if (!(items[0].revents & ZMQ_POLLIN))
			continue;

		zmq_msg_init(&head);
		status = take_message(c, &head, in, err);
		if (status == MQ_OK)
			status = mq_reply_decode(zmq_msg_data(&head), zmq_msg_size(&head), reply,
						 err);
		zmq_msg_close(&head);
		if (status != MQ_OK)
			return status;
		/* 0: the answer to a message that the worker could not read */
		if (reply->seq == seq || (reply->seq == 0 && reply->status != MQ_OK))
			return MQ_OK;
		mq_reply_clear(reply);
	}
}

/* cut: it was the caller's time that ended, not MQ_CALL_MS. */
static enum mq_status fail_silent(const struct mq_client *c, bool cut, struct mq_error *err)
{
	if (c->remote) {
		enum mq_status status =
			mq_remote_give_up(c->remote, c->uri, MQ_CALL_MS / 1000, err);

		if (!cut || status != MQ_EUNREACH)
			return status;
	}
	if (cut)
		return mq_fail(err, MQ_ETIMEOUT, "the time ran out, and the worker at %s does not answer",
			       c->uri);
	return mq_fail(err, MQ_EUNREACH, "the worker at %s does not answer (waited %d s)", c->uri,
		       MQ_CALL_MS / 1000);
}

static enum mq_status exchange(struct mq_client *c, const char *text, size_t len,
			       struct mq_reply *reply, struct incoming *in, struct mq_error *err)
{
	int64_t full = mq_clock_ms() + MQ_CALL_MS, deadline = mq_client_sooner(c, full);

	for (;;) {
		int64_t now = mq_clock_ms(), until = now + ATTEMPT_MS;
		enum mq_status status;

		if (now >= deadline)
			return fail_silent(c, deadline < full, err);
		status = open_socket(c, err);
		if (status != MQ_OK)
			return status;
		if (zmq_send(c->socket, text, len, ZMQ_DONTWAIT) < 0 && errno != EAGAIN)
			return mq_fail(err, MQ_EIO, "cannot send to %s: %s", c->uri,
				       zmq_strerror(errno));
		status = receive(c, c->seq, until < deadline ? until : deadline, reply, in, err);
		if (status == MQ_OK)
			return MQ_OK;
		close_socket(c); /* whatever it still holds is of no use to the next request */
		if (status != MQ_ETIMEOUT)
			return status;
	}
}

enum mq_status mq_client_call_data(struct mq_client *client, const char *verb, json_t *args,
				   json_t **result, void *data, size_t size, size_t *len,
				   struct mq_error *err)
{
	struct incoming in = { .data = data, .size = size };
	struct mq_reply reply = { 0 };
	enum mq_status status;
	size_t bytes = 0;
	char *text = NULL;

	client->seq++;
	if (args)
		text = mq_request_encode(client->seq, verb, args, &bytes);
	json_decref(args);
	if (!text)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a request");
	if (bytes > MQ_MESSAGE_MAX)
		status = mq_fail(err, MQ_EINVAL, "the request has %zu bytes, the limit is %u",
				 bytes, MQ_MESSAGE_MAX);
	else
		status = exchange(client, text, bytes, &reply, &in, err);
	free(text);
	if (status != MQ_OK)
		return status;

	if (reply.status != MQ_OK)
		status = mq_fail(err, reply.status, "%s",
				 reply.error[0] ? reply.error : mq_status_name(reply.status));
	else if (!json_is_object(reply.result) || in.has_data != (size > 0))
		status = mq_fail(err, MQ_EPROTO, "the worker at %s sent no proper answer to \"%s\"",
				 client->uri, verb);
	else
		*result = json_incref(reply.result);
	if (len)
		*len = in.len;
	mq_reply_clear(&reply);
	return status;
}

enum mq_status mq_client_call(struct mq_client *client, const char *verb, json_t *args,
			      json_t **result, struct mq_error *err)
{
	return mq_client_call_data(client, verb, args, result, NULL, 0, NULL, err);
}
