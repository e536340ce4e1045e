/* message: requests and replies as bytes, and back (mandelq-protocol(7)). No sockets here.
 *
 * One JSON object a message, in one frame of at most MQ_MESSAGE_MAX bytes:
 *   request  {"mandelq":1, "seq":N, "verb":"submit", "args":{...}}
 *   reply    {"mandelq":1, "seq":N, "status":"ok", "result":...}
 *            {"mandelq":1, "seq":N, "status":"invalid", "error":"one line"}
 * A reply may be followed by one frame of raw bytes (the data of "read"). Numbers are below 2^53. */
#ifndef MQ_MESSAGE_H
#define MQ_MESSAGE_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "src/status.h"

#define MQ_PROTOCOL 1
#define MQ_MESSAGE_MAX (1u << 20)
#define MQ_VERB_MAX 31u
#define MQ_READ_MAX (1u << 20) /* bytes one "read" gives at most */
/* What the transport may add to a frame before it is looked at: CURVE's box and nonce. */
#define MQ_TRANSPORT_MAX 1024u

struct mq_request {
	uint64_t seq;
	char verb[MQ_VERB_MAX + 1];
	json_t *args; /* an object, owned */
};

struct mq_reply {
	uint64_t seq;
	enum mq_status status;
	char error[512];  /* empty when status is MQ_OK */
	json_t *result;   /* owned; NULL unless status is MQ_OK */
};

/* MQ_EPROTO: not one of our messages; MQ_EVERSION: a protocol that we do not speak (seq is set, so
 * that it can be answered). On failure nothing needs clearing. */
enum mq_status mq_request_decode(const void *bytes, size_t len, struct mq_request *out,
                                 struct mq_error *err);
void mq_request_clear(struct mq_request *request);
enum mq_status mq_reply_decode(const void *bytes, size_t len, struct mq_reply *out,
                               struct mq_error *err);
void mq_reply_clear(struct mq_reply *reply);

/* Text for a message. What quotes somebody's words or a file's name need not be UTF-8: then each byte that
 * is not ASCII is a '?'. NULL: memory is out. */
json_t *mq_message_text(const char *text);

/* Text to send, *len without the NUL; the caller frees it. args and result are borrowed and may be
 * NULL. NULL: memory is out. */
char *mq_request_encode(uint64_t seq, const char *verb, json_t *args, size_t *len);
char *mq_reply_encode(uint64_t seq, enum mq_status status, const char *error, json_t *result,
                      size_t *len);

/* now as RFC 3339 in UTC with milliseconds ("2026-01-31T12:00:00.000Z"); ms since 1970. */
void mq_time_format(int64_t ms, char out[32]);

#endif
