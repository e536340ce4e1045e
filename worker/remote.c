/* remote: see remote.h. */
#include "config.h" /* asprintf, explicit_bzero */

#include "worker/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/log.h"

#define TURN_MAX 64
#define ZAP_FRAMES 7 /* version, request id, domain, address, identity, mechanism, key */
#define FRAME_MAX 256

static char *key_path(const char *dir)
{
	char *path;

	return asprintf(&path, "%s/" MQ_REMOTE_KEY, dir) < 0 ? NULL : path;
}

static enum mq_status read_keys(const char *dir, struct mq_keypair *out, struct mq_error *err)
{
	char *path = key_path(dir);
	enum mq_status s = path ? mq_keyfile_read(path, out, err)
	                        : mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");

	free(path);
	if (s == MQ_ENOENT)
		s = mq_fail(err, MQ_EINVAL,
		               "--endpoint: tcp:// is served with CURVE keys only: run mandelqd keygen "
		               "--state-dir=%s, then put a line \"KEY USER\" for each client into "
		               "%s/" MQ_AUTHORIZED_FILE, dir, dir);
	return s;
}

enum mq_status mq_remote_probe(const char *dir, struct mq_error *err)
{
	struct mq_keypair keys;
	enum mq_status s = read_keys(dir, &keys, err);

	explicit_bzero(&keys, sizeof keys);
	return s;
}

enum mq_status mq_remote_open(const char *dir, struct mq_remote *out, struct mq_error *err)
{
	struct mq_remote r = {.clients = NULL};
	enum mq_status s = read_keys(dir, &r.keys, err);

	if (!s)
		s = mq_authorized_open(dir, &r.clients, err);
	if (!s)
		*out = r;
	return s;
}

void mq_remote_close(struct mq_remote *r)
{
	mq_authorized_close(r->clients);
	explicit_bzero(&r->keys, sizeof r->keys);
	r->clients = NULL;
}

enum mq_status mq_remote_keygen(const char *dir, bool force, struct mq_error *err)
{
	char *path = key_path(dir);
	struct mq_keypair keys;
	bool made = false;
	enum mq_status s = path ? mq_keyfile_ensure(path, force, &keys, &made, err)
	                        : mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");

	if (!s) {
		printf("%s\n", keys.public_key);
		fprintf(stderr, "mandelqd: %s %s; clients need the public key above: mandelq --server-key=KEY\n",
		        path, made ? "is made" : "was there and is left alone (--force replaces it)");
		explicit_bzero(&keys, sizeof keys);
		if (fflush(stdout) || ferror(stdout))
			s = mq_fail(err, MQ_EIO, "cannot write to standard output");
	}
	free(path);
	return s;
}

/* One request's frames, as far as they are wanted. False: there is none, or it is not one of libzmq's. */
static bool take(void *zap, char frame[ZAP_FRAMES][FRAME_MAX], size_t len[ZAP_FRAMES], bool *any)
{
	unsigned count = 0;
	int more = 1;

	*any = false;
	while (more) {
		zmq_msg_t msg;
		size_t size;

		zmq_msg_init(&msg);
		if (zmq_msg_recv(&msg, zap, ZMQ_DONTWAIT) < 0) {
			zmq_msg_close(&msg);
			return false;
		}
		*any = true;
		size = zmq_msg_size(&msg);
		if (count < ZAP_FRAMES && size <= FRAME_MAX) {
			memcpy(frame[count], zmq_msg_data(&msg), size);
			len[count] = size;
		} else {
			count = ZAP_FRAMES; /* too many or too long: none fits any more */
		}
		count++;
		more = zmq_msg_more(&msg);
		zmq_msg_close(&msg);
	}
	return count == ZAP_FRAMES && len[5] == 5 && !memcmp(frame[5], "CURVE", 5) && len[6] == 32;
}

static void reply(void *zap, const char *id, size_t id_len, const char *key)
{
	const char *code = key ? "200" : "400", *text = key ? "OK" : "this key is not authorized";

	/* The requests' own socket waits for all of it: nothing here can block. */
	if (zmq_send(zap, "1.0", 3, ZMQ_SNDMORE) < 0 || zmq_send(zap, id, id_len, ZMQ_SNDMORE) < 0 ||
	    zmq_send(zap, code, 3, ZMQ_SNDMORE) < 0 || zmq_send(zap, text, strlen(text), ZMQ_SNDMORE) < 0 ||
	    zmq_send(zap, key ? key : "", key ? strlen(key) : 0, ZMQ_SNDMORE) < 0 ||
	    zmq_send(zap, "", 0, 0) < 0)
		mq_log(MQ_LOG_ERROR, "answering libzmq: %s", zmq_strerror(zmq_errno()));
}

static void answer_one(struct mq_remote *r, void *zap, bool fits, char frame[ZAP_FRAMES][FRAME_MAX],
                       const size_t len[ZAP_FRAMES])
{
	char key[MQ_KEY_SIZE] = "";
	int64_t uid;
	bool known = fits && zmq_z85_encode(key, (const uint8_t *)frame[6], 32) &&
	             mq_authorized_find(r->clients, key, &uid);

	if (known)
		mq_log(MQ_LOG_DEBUG, "%.*s connects as user %lld", (int)len[3], frame[3], (long long)uid);
	else if (fits)
		mq_log(MQ_LOG_DEBUG, "%.*s is refused: the key %s is not authorized", (int)len[3], frame[3], key);
	reply(zap, frame[1], fits ? len[1] : 0, known ? key : NULL);
}

void mq_remote_answer(struct mq_remote *r, void *zap)
{
	char frame[ZAP_FRAMES][FRAME_MAX];
	size_t len[ZAP_FRAMES];
	bool any, fits;

	for (unsigned i = 0; i < TURN_MAX; i++) {
		fits = take(zap, frame, len, &any);
		if (!any)
			return;
		answer_one(r, zap, fits, frame, len);
	}
}

int64_t mq_remote_owner(struct mq_remote *r, zmq_msg_t *message)
{
	const char *key = zmq_msg_gets(message, "User-Id");
	int64_t uid;

	return key && mq_authorized_find(r->clients, key, &uid) ? uid : -1;
}
