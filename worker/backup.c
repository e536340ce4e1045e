/* backup: see backup.h. */
#include "worker/backup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include <zlib.h>
#include <zmq.h>

#include "src/message.h"
#include "src/store/store.h"
#include "src/writeall.h"
#include "worker/backup_target.h"

#define ANSWER_MS 10000
#define BUSY_TRIES 100 /* while a copy for somebody else is made */
#define ASK_MS 50

struct asker {
	void *context, *socket;
	uint64_t seq;
};

static enum mq_status asker_open(struct asker *a, const char *endpoint, struct mq_error *err)
{
	int linger = 0, wait = ANSWER_MS;

	a->context = zmq_ctx_new();
	a->socket = a->context ? zmq_socket(a->context, ZMQ_DEALER) : NULL;
	if (!a->socket || zmq_setsockopt(a->socket, ZMQ_LINGER, &linger, sizeof linger) ||
	    zmq_setsockopt(a->socket, ZMQ_RCVTIMEO, &wait, sizeof wait) ||
	    zmq_connect(a->socket, endpoint))
		return mq_fail(err, MQ_EUNREACH, "--backup: %s: %s", endpoint, zmq_strerror(errno));
	return MQ_OK;
}

static void asker_close(struct asker *a)
{
	if (a->socket)
		zmq_close(a->socket);
	if (a->context)
		zmq_ctx_term(a->context);
}

/* Takes what follows the reply; only the first frame's bytes are kept. */
static enum mq_status take_data(struct asker *a, void *data, size_t size, size_t *len,
                                struct mq_error *err)
{
	int n = zmq_recv(a->socket, data, size, 0);

	if (n < 0 || (size_t)n > size)
		return mq_fail(err, MQ_EPROTO, "--backup: the worker's answer is cut off");
	*len = (size_t)n;
	return MQ_OK;
}

/* args is taken over. */
static enum mq_status ask(struct asker *a, const char *verb, json_t *args, json_t **result, void *data,
                          size_t size, size_t *len, struct mq_error *err)
{
	struct mq_reply reply = {0};
	size_t bytes = 0;
	char *text = args ? mq_request_encode(++a->seq, verb, args, &bytes) : NULL;
	zmq_msg_t msg;
	bool more;
	enum mq_status s = MQ_OK;

	json_decref(args);
	if (!text)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a request");
	if (zmq_send(a->socket, text, bytes, 0) < 0)
		s = mq_fail(err, MQ_EUNREACH, "--backup: asking the worker: %s", zmq_strerror(errno));
	free(text);
	if (s)
		return s;
	zmq_msg_init(&msg);
	if (zmq_msg_recv(&msg, a->socket, 0) < 0)
		s = mq_fail(err, MQ_EUNREACH, "--backup: the worker does not answer");
	else
		s = mq_reply_decode(zmq_msg_data(&msg), zmq_msg_size(&msg), &reply, err);
	more = zmq_msg_more(&msg);
	zmq_msg_close(&msg);
	if (s)
		return s;
	if (reply.status)
		s = mq_fail(err, reply.status, "%s", reply.error);
	else if (more != (size > 0))
		s = mq_fail(err, MQ_EPROTO, "--backup: the worker gave no proper answer to \"%s\"", verb);
	else if (more)
		s = take_data(a, data, size, len, err);
	*result = s ? NULL : json_incref(reply.result);
	mq_reply_clear(&reply);
	return s;
}

static enum mq_status receive(struct asker *a, json_int_t handle, json_int_t bytes, int fd,
                              const char *path, struct mq_error *err)
{
	uint8_t *buffer = malloc(MQ_READ_MAX);
	enum mq_status s = buffer ? MQ_OK : mq_fail(err, MQ_ENOMEM_HOST, "no memory to receive a copy");

	for (json_int_t at = 0; !s && at < bytes;) {
		json_t *result = NULL;
		size_t len = 0;
		int e;

		s = ask(a, "read",
		        json_pack("{s:I, s:I, s:I}", "handle", handle, "offset", at, "length",
		                  (json_int_t)MQ_READ_MAX),
		        &result, buffer, MQ_READ_MAX, &len, err);
		if (!s && (!len || json_integer_value(json_object_get(result, "crc32")) !=
		                           (json_int_t)crc32_z(0, buffer, len)))
			s = mq_fail(err, MQ_ECORRUPT, "--backup: the copy came damaged");
		e = s ? 0 : mq_write_all(fd, buffer, len);
		if (e)
			s = mq_fail_errno(err, e, "writing %s", path);
		at += (json_int_t)len;
		json_decref(result);
	}
	free(buffer);
	return s;
}

/* Until the worker has made it, however long that takes: it tells when it fails. */
static enum mq_status await(struct asker *a, json_t **result, struct mq_error *err)
{
	enum mq_status s = MQ_OK;

	while (!s && !json_is_true(json_object_get(*result, "ready"))) {
		json_t *handle = json_incref(json_object_get(*result, "handle"));

		json_decref(*result);
		*result = NULL;
		usleep(ASK_MS * 1000);
		s = ask(a, "poll", json_pack("{s:o}", "handle", handle), result, NULL, 0, NULL, err);
	}
	return s == MQ_ESTALE ? mq_fail(err, s, "--backup: the worker has given the copy up: try again") : s;
}

static enum mq_status open_copy(struct asker *a, json_int_t *handle, json_int_t *bytes,
                                struct mq_error *err)
{
	json_t *result = NULL;
	enum mq_status s = MQ_EBUSY;

	for (int i = 0; s == MQ_EBUSY && i < BUSY_TRIES; i++) {
		if (i)
			usleep(ASK_MS * 1000);
		s = ask(a, "backup", json_object(), &result, NULL, 0, NULL, err);
	}
	if (!s)
		s = await(a, &result, err);
	if (!s) {
		*handle = json_integer_value(json_object_get(result, "handle"));
		*bytes = json_integer_value(json_object_get(result, "bytes"));
		if (*bytes <= 0)
			s = mq_fail(err, MQ_EPROTO, "--backup: the worker has no copy to give");
	}
	json_decref(result);
	return s;
}

static enum mq_status from_worker(const char *endpoint, const struct mq_backup_target *target,
                                  struct mq_error *err)
{
	struct asker a = {NULL, NULL, 0};
	json_int_t handle = 0, bytes = 0;
	enum mq_status s = asker_open(&a, endpoint, err);

	if (!s)
		s = open_copy(&a, &handle, &bytes, err);
	if (!s)
		s = receive(&a, handle, bytes, target->fd, target->temporary, err);
	asker_close(&a);
	return s;
}

/* Nothing is made where there is nothing: this is no worker. */
static enum mq_status lock(const char *state_dir, int *fd, bool *running, struct mq_error *err)
{
	char *path;

	if (asprintf(&path, "%s/lock", state_dir) < 0)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	*fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	free(path);
	if (*fd < 0 && errno == ENOENT)
		return mq_fail(err, MQ_EINVAL, "--backup: %s holds no state of a worker", state_dir);
	if (*fd < 0)
		return mq_fail_errno(err, errno, "--backup: %s/lock", state_dir);
	*running = flock(*fd, LOCK_EX | LOCK_NB) != 0;
	if (*running && errno != EWOULDBLOCK)
		return mq_fail_errno(err, errno, "locking %s/lock", state_dir);
	return MQ_OK;
}

/* The worker's, or the database that lies there, as a new file. */
static enum mq_status copy(const char *endpoint, const char *database, bool running,
                           struct mq_backup_target *target, struct mq_error *err)
{
	enum mq_status s = running ? from_worker(endpoint, target, err)
	                           : mq_store_copy(database, target->temporary, err);

	return s ? s : mq_backup_target_commit(target, err);
}

enum mq_status mq_backup(const struct mq_settings *set, const char *file, struct mq_error *err)
{
	struct mq_backup_target target;
	char *database = NULL;
	bool running = false;
	int fd = -1;
	enum mq_status s = mq_option_blame(set->state_dir_origin, lock(set->state_dir, &fd, &running, err), err);

	if (!s && asprintf(&database, "%s/mandelq.db", set->state_dir) < 0) {
		database = NULL;
		s = mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	} else if (!s && !running && access(database, F_OK)) {
		s = mq_option_blame(set->state_dir_origin,
		                    mq_fail(err, MQ_EINVAL, "--backup: there is no %s", database), err);
	} else if (!s) {
		s = mq_backup_target_open(&target, set->state_dir, file, err);
		if (!s)
			s = copy(set->endpoint, database, running, &target, err);
		mq_backup_target_close(&target);
	}
	free(database);
	if (fd >= 0)
		close(fd);
	return s;
}
