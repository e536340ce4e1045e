/* fuzz_message: both decoders on the same bytes; what they take, they take again from their encoder. */
#include "src/message.h"
#include "tests/fuzz/fuzz.h"

static void check_request(const uint8_t *data, size_t size)
{
	struct mq_request in, again;
	struct mq_error err = {""};
	size_t len;
	char *text;

	if (mq_request_decode(data, size, &in, &err)) {
		FUZZ_CHECK(err.text[0] && !in.args);
		return;
	}
	text = mq_request_encode(in.seq, in.verb, in.args, &len);
	FUZZ_CHECK(text);
	/* Escapes may make it longer than a message can be. */
	if (len <= MQ_MESSAGE_MAX) {
		FUZZ_CHECK(mq_request_decode(text, len, &again, &err) == MQ_OK);
		FUZZ_CHECK(in.seq == again.seq && !strcmp(in.verb, again.verb) &&
		           json_equal(in.args, again.args));
		mq_request_clear(&again);
	}
	free(text);
	mq_request_clear(&in);
}

static void check_reply(const uint8_t *data, size_t size)
{
	struct mq_reply in, again;
	struct mq_error err = {""};
	size_t len;
	char *text;

	if (mq_reply_decode(data, size, &in, &err)) {
		FUZZ_CHECK(err.text[0] && !in.result);
		return;
	}
	text = mq_reply_encode(in.seq, in.status, in.error, in.result, &len);
	FUZZ_CHECK(text);
	if (len <= MQ_MESSAGE_MAX) {
		FUZZ_CHECK(mq_reply_decode(text, len, &again, &err) == MQ_OK);
		FUZZ_CHECK(in.seq == again.seq && in.status == again.status);
		mq_reply_clear(&again);
	}
	free(text);
	mq_reply_clear(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_request(data, size);
	check_reply(data, size);
	return 0;
}
