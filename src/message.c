/* message: the envelope around requests and replies. The client encodes requests and decodes
 * replies, the worker the other way round; whatever bytes come in, a decoder only ever says no. */
#include "src/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SEQ_MAX ((1ull << 53) - 1)

/* Parses bytes to an object of our protocol. seq is set as soon as it is known, so that even a
 * message of another version can be answered. */
static enum mq_status open_envelope(const void *bytes, size_t len, json_t **out, uint64_t *seq,
                                    struct mq_error *err)
{
	json_error_t why;
	enum mq_status status;

	*seq = 0;
	if (len > MQ_MESSAGE_MAX)
		return mq_fail(err, MQ_EPROTO, "a message of %zu bytes: the limit is %u", len,
		               MQ_MESSAGE_MAX);
	json_t *root = json_loadb(bytes, len, JSON_REJECT_DUPLICATES, &why);
	if (!root && json_error_code(&why) == json_error_out_of_memory)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a message of %zu bytes", len);
	if (!root)
		return mq_fail(err, MQ_EPROTO, "a message that is not JSON (byte %d: %s)",
		               why.position, why.text);

	json_t *version = json_object_get(root, "mandelq");
	json_t *number = json_object_get(root, "seq");
	if (!json_is_integer(version)) {
		status = mq_fail(err, MQ_EPROTO,
		                 "a message that is not ours: no \"mandelq\" number");
		goto fail;
	}
	if (!json_is_integer(number) || json_integer_value(number) < 0 ||
	    (uint64_t)json_integer_value(number) > SEQ_MAX) {
		status = mq_fail(err, MQ_EPROTO, "a message without a \"seq\" of 0 to 2^53-1");
		goto fail;
	}
	*seq = (uint64_t)json_integer_value(number);
	if (json_integer_value(version) != MQ_PROTOCOL) {
		status = mq_fail(
			err, MQ_EVERSION,
			"protocol %lld is not spoken here, only %d: use the mandelq and mandelqd "
			"of one version",
			(long long)json_integer_value(version), MQ_PROTOCOL);
		goto fail;
	}
	*out = root;
	return MQ_OK;
fail:
	json_decref(root);
	return status;
}

enum mq_status mq_request_decode(const void *bytes, size_t len, struct mq_request *out,
                                 struct mq_error *err)
{
	json_t *root = NULL;

	memset(out, 0, sizeof(*out));
	enum mq_status status = open_envelope(bytes, len, &root, &out->seq, err);
	if (status)
		return status;

	const json_t *verb = json_object_get(root, "verb");
	json_t *args = json_object_get(root, "args");
	if (!json_is_string(verb) || json_string_length(verb) == 0 ||
	    json_string_length(verb) > MQ_VERB_MAX)
		status = mq_fail(err, MQ_EPROTO, "a request without a \"verb\" of 1 to %u bytes",
		                 MQ_VERB_MAX);
	else if (args && !json_is_object(args))
		status = mq_fail(err, MQ_EPROTO, "a request whose \"args\" are no object");
	else if (!(out->args = args ? json_incref(args) : json_object()))
		status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for a request");
	else
		memcpy(out->verb, json_string_value(verb), json_string_length(verb) + 1);
	json_decref(root);
	return status;
}

void mq_request_clear(struct mq_request *request)
{
	json_decref(request->args);
	memset(request, 0, sizeof(*request));
}

static enum mq_status fill_failure(struct mq_reply *out, const json_t *error, struct mq_error *err)
{
	struct mq_error text;

	if (!json_is_string(error))
		return mq_fail(err, MQ_EPROTO, "a reply with status \"%s\" and no \"error\" text",
		               mq_status_name(out->status));
	mq_fail(&text, MQ_OK, "%s", json_string_value(error)); /* one line, whoever sent it */
	memcpy(out->error, text.text, sizeof(text.text));
	return MQ_OK;
}

enum mq_status mq_reply_decode(const void *bytes, size_t len, struct mq_reply *out,
                               struct mq_error *err)
{
	json_t *root = NULL;

	_Static_assert(sizeof(out->error) == sizeof(err->text), "an error text fits a reply");
	memset(out, 0, sizeof(*out));
	enum mq_status status = open_envelope(bytes, len, &root, &out->seq, err);
	if (status)
		return status;

	const char *name = json_string_value(json_object_get(root, "status"));
	json_t *result = json_object_get(root, "result");
	out->status = name ? mq_status_from_name(name) : MQ_EPROTO;
	if (!name || strcmp(name, mq_status_name(out->status)))
		status = mq_fail(err, MQ_EPROTO, "a reply without a known \"status\"");
	else if (out->status)
		status = fill_failure(out, json_object_get(root, "error"), err);
	else if (!result)
		status = mq_fail(err, MQ_EPROTO, "a reply with status \"ok\" and no \"result\"");
	else
		out->result = json_incref(result);
	if (status)
		out->status = MQ_OK;
	json_decref(root);
	return status;
}

void mq_reply_clear(struct mq_reply *reply)
{
	json_decref(reply->result);
	memset(reply, 0, sizeof(*reply));
}

/* Adds value (a reference that is taken over, or NULL: out of memory) to *root; *root becomes NULL
 * on failure, so that a chain of these needs one check at its end. */
static void put(json_t **root, const char *key, json_t *value)
{
	if (!*root) {
		json_decref(value);
		return;
	}
	if (json_object_set_new(*root, key, value) != 0) {
		json_decref(*root);
		*root = NULL;
	}
}

static json_t *begin_envelope(uint64_t seq)
{
	json_t *root = json_object();

	put(&root, "mandelq", json_integer(MQ_PROTOCOL));
	put(&root, "seq", json_integer((json_int_t)seq));
	return root;
}

static char *end_envelope(json_t *root, size_t *len)
{
	char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;

	json_decref(root);
	if (text)
		*len = strlen(text);
	return text;
}

char *mq_request_encode(uint64_t seq, const char *verb, json_t *args, size_t *len)
{
	json_t *root = begin_envelope(seq);

	put(&root, "verb", json_string(verb));
	put(&root, "args", args ? json_incref(args) : json_object());
	return end_envelope(root, len);
}

json_t *mq_message_text(const char *text)
{
	json_t *string = json_string(text);
	char *ascii = string ? NULL : strdup(text);

	if (string || !ascii)
		return string;
	for (char *p = ascii; *p; p++)
		if ((unsigned char)*p >= 0x80)
			*p = '?';
	string = json_string(ascii);
	free(ascii);
	return string;
}

char *mq_reply_encode(uint64_t seq, enum mq_status status, const char *error, json_t *result,
                      size_t *len)
{
	json_t *root = begin_envelope(seq);

	put(&root, "status", json_string(mq_status_name(status)));
	if (status)
		put(&root, "error", mq_message_text(error ? error : ""));
	else
		put(&root, "result", result ? json_incref(result) : json_object());
	return end_envelope(root, len);
}

void mq_time_format(int64_t ms, char out[32])
{
	const int64_t min = -62167219200000, max = 253402300799999; /* years 0000 to 9999 */
	struct tm tm;

	if (ms < min)
		ms = min;
	if (ms > max)
		ms = max;
	int64_t seconds = ms / 1000, rest = ms % 1000;
	if (rest < 0) {
		seconds--;
		rest += 1000;
	}
	time_t t = (time_t)seconds;
	gmtime_r(&t, &tm);
	snprintf(out, 32, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
	         (unsigned)(tm.tm_year + 1900) % 10000u, (unsigned)(tm.tm_mon + 1) % 100u,
	         (unsigned)tm.tm_mday % 100u, (unsigned)tm.tm_hour % 100u,
	         (unsigned)tm.tm_min % 100u, (unsigned)tm.tm_sec % 100u, (unsigned)rest % 1000u);
}
