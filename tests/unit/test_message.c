/* Envelopes there and back, and everything that is not one refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/clock.h"
#include "src/message.h"

static enum mq_status request(const char *text, struct mq_request *out, struct mq_error *err)
{
	return mq_request_decode(text, strlen(text), out, err);
}

static enum mq_status reply(const char *text, struct mq_reply *out)
{
	return mq_reply_decode(text, strlen(text), out, NULL);
}

static void requests_come_back(void **state)
{
	json_t *args = json_pack("{s:i, s:s}", "id", 7, "what", "picture");
	struct mq_request r;
	size_t len = 0;

	(void)state;
	char *text = mq_request_encode((1ull << 53) - 1, "open", args, &len);
	assert_non_null(text);
	assert_int_equal(len, strlen(text));
	assert_int_equal(mq_request_decode(text, len, &r, NULL), MQ_OK);
	assert_int_equal(r.seq, (1ull << 53) - 1);
	assert_string_equal(r.verb, "open");
	assert_true(json_equal(r.args, args));
	mq_request_clear(&r);
	free(text);
	json_decref(args);

	text = mq_request_encode(0, "hello", NULL, &len);
	assert_int_equal(mq_request_decode(text, len, &r, NULL), MQ_OK);
	assert_int_equal(json_object_size(r.args), 0);
	mq_request_clear(&r);
	free(text);
	/* args may be left out */
	assert_int_equal(request("{\"mandelq\":1,\"seq\":2,\"verb\":\"status\"}", &r, NULL), MQ_OK);
	assert_true(json_is_object(r.args));
	mq_request_clear(&r);
}

static void replies_come_back(void **state)
{
	json_t *result = json_pack("{s:i}", "id", 7);
	struct mq_reply r;
	size_t len;

	(void)state;
	char *text = mq_reply_encode(5, MQ_OK, NULL, result, &len);
	assert_int_equal(mq_reply_decode(text, len, &r, NULL), MQ_OK);
	assert_int_equal(r.seq, 5);
	assert_int_equal(r.status, MQ_OK);
	assert_string_equal(r.error, "");
	assert_true(json_equal(r.result, result));
	mq_reply_clear(&r);
	free(text);
	json_decref(result);

	for (int s = MQ_OK + 1; s < MQ_STATUS_COUNT; s++) {
		text = mq_reply_encode(6, (enum mq_status)s, "no job 17", NULL, &len);
		assert_int_equal(mq_reply_decode(text, len, &r, NULL), MQ_OK);
		assert_int_equal(r.status, s);
		assert_string_equal(r.error, "no job 17");
		assert_null(r.result);
		mq_reply_clear(&r);
		free(text);
	}
}

static void an_error_of_any_bytes_can_be_sent(void **state)
{
	struct mq_reply r;
	size_t len;

	(void)state;
	char *text = mq_reply_encode(1, MQ_EIO, "cannot open \xff\xfe.png", NULL, &len);
	assert_non_null(text);
	assert_int_equal(mq_reply_decode(text, len, &r, NULL), MQ_OK);
	assert_string_equal(r.error, "cannot open ?"
	                             "?.png");
	mq_reply_clear(&r);
	free(text);
	/* and one that comes in is one line that fits */
	char error[2000], message[2100];
	memset(error, 'e', sizeof(error) - 1);
	error[sizeof(error) - 1] = '\0';
	snprintf(message, sizeof(message),
	         "{\"mandelq\":1,\"seq\":1,\"status\":\"io\",\"error\":\"a\\n%s\"}", error);
	assert_int_equal(reply(message, &r), MQ_OK);
	assert_int_equal(strlen(r.error), sizeof(r.error) - 1);
	assert_null(strchr(r.error, '\n'));
	mq_reply_clear(&r);
}

static void what_is_not_ours_is_refused(void **state)
{
	static const char *const cases[] = {
		"",
		"x",
		"{",
		"[]",
		"3",
		"null",
		"{}",
		"GET / HTTP/1.1\r\n\r\n",
		"{\"mandelq\":1,\"seq\":1}",
		"{\"mandelq\":1,\"verb\":\"hello\"}",
		"{\"seq\":1,\"verb\":\"hello\"}",
		"{\"mandelq\":\"1\",\"seq\":1,\"verb\":\"hello\"}",
		"{\"mandelq\":1,\"seq\":-1,\"verb\":\"hello\"}",
		"{\"mandelq\":1,\"seq\":9007199254740992,\"verb\":\"hello\"}",
		"{\"mandelq\":1,\"seq\":99999999999999999999,\"verb\":\"hello\"}",
		"{\"mandelq\":1,\"seq\":1.0,\"verb\":\"hello\"}",
		"{\"mandelq\":1,\"seq\":1,\"verb\":\"\"}",
		"{\"mandelq\":1,\"seq\":1,\"verb\":7}",
		"{\"mandelq\":1,\"seq\":1,\"verb\":\"12345678901234567890123456789012\"}",
		"{\"mandelq\":1,\"seq\":1,\"verb\":\"hello\",\"args\":[]}",
		"{\"mandelq\":1,\"seq\":1,\"verb\":\"hello\",\"args\":null}",
		"{\"mandelq\":1,\"seq\":1,\"verb\":\"hello\",\"verb\":\"cancel\"}",
		"{\"mandelq\":1,\"seq\":1,\"verb\":\"hello\",\"args\":{\"a\":1,\"a\":2}}",
		"{\"mandelq\":1,\"seq\":1,\"verb\":\"hel\\u0000lo\"}",
		"{\"mandelq\":1,\"seq\":1,\"verb\":\"hel\xff\"}",
		"{\"mandelq\":1,\"seq\":1,\"verb\":\"hello\"} x",
	};
	struct mq_request r;
	struct mq_error err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		err.text[0] = '\0';
		if (request(cases[i], &r, &err) != MQ_EPROTO)
			fail_msg("taken: %s", cases[i]);
		assert_null(r.args);
		assert_true(err.text[0] != '\0' && !strchr(err.text, '\n'));
	}
	/* 31 bytes of verb are fine */
	assert_int_equal(
		request("{\"mandelq\":1,\"seq\":1,\"verb\":\"1234567890123456789012345678901\"}",
	                &r, NULL),
		MQ_OK);
	mq_request_clear(&r);
}

static void replies_that_make_no_sense_are_refused(void **state)
{
	static const char *const cases[] = {
		"{\"mandelq\":1,\"seq\":1}",
		"{\"mandelq\":1,\"seq\":1,\"status\":\"ok\"}",
		"{\"mandelq\":1,\"seq\":1,\"status\":\"fine\",\"error\":\"x\"}",
		"{\"mandelq\":1,\"seq\":1,\"status\":\"io\"}",
		"{\"mandelq\":1,\"seq\":1,\"status\":\"io\",\"error\":3}",
		"{\"mandelq\":1,\"seq\":1,\"status\":0,\"result\":{}}",
	};
	struct mq_reply r;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(reply(cases[i], &r), MQ_EPROTO);
		assert_null(r.result);
	}
}

static void another_version_can_be_answered(void **state)
{
	struct mq_request r;
	struct mq_reply a;
	struct mq_error err;

	(void)state;
	assert_int_equal(request("{\"mandelq\":2,\"seq\":77,\"words\":[1]}", &r, &err),
	                 MQ_EVERSION);
	assert_int_equal(r.seq, 77);
	assert_null(r.args);
	assert_int_equal(reply("{\"mandelq\":2,\"seq\":78}", &a), MQ_EVERSION);
	assert_int_equal(a.seq, 78);
}

static void size_and_depth_are_bounded(void **state)
{
	struct mq_request r;
	static const char head[] = "{\"mandelq\":1,\"seq\":1,\"verb\":\"hello\",\"args\":{\"a\":";
	char *text = malloc(MQ_MESSAGE_MAX + 2);

	(void)state;
	assert_non_null(text);
	memset(text, ' ', MQ_MESSAGE_MAX + 1);
	memcpy(text, head, sizeof(head) - 1);
	memcpy(text + sizeof(head) - 1, "1}}", 3);
	assert_int_equal(mq_request_decode(text, MQ_MESSAGE_MAX, &r, NULL), MQ_OK);
	mq_request_clear(&r);
	assert_int_equal(mq_request_decode(text, MQ_MESSAGE_MAX + 1, &r, NULL), MQ_EPROTO);
	memset(text + sizeof(head) - 1, '[', MQ_MESSAGE_MAX - sizeof(head));
	assert_int_equal(mq_request_decode(text, MQ_MESSAGE_MAX, &r, NULL), MQ_EPROTO);
	free(text);
}

/* A good message with bytes changed or cut off: decoded or refused, never anything else. */
static void damaged_messages_are_survived(void **state)
{
	static const char good[] = "{\"mandelq\":1,\"seq\":12,\"verb\":\"submit\",\"args\":{"
	                           "\"job\":{\"zoom\":\"1e5\"}}}";
	unsigned char bytes[sizeof(good)];
	struct mq_request r;
	unsigned taken = 0;

	(void)state;
	srand(5);
	for (int i = 0; i < 30000; i++) {
		memcpy(bytes, good, sizeof(good));
		for (int n = rand() % 3; n >= 0; n--)
			bytes[(size_t)rand() % (sizeof(good) - 1)] = (unsigned char)rand();
		size_t len = rand() % 4 ? sizeof(good) - 1 : (size_t)rand() % sizeof(good);
		enum mq_status status = mq_request_decode(bytes, len, &r, NULL);
		assert_true(status == MQ_OK || status == MQ_EPROTO || status == MQ_EVERSION);
		if (!status) {
			taken++;
			mq_request_clear(&r);
		}
	}
	assert_true(taken > 0);
}

static void times(void **state)
{
	static const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00.000Z" },
		{ 1769860800000, "2026-01-31T12:00:00.000Z" },
		{ 1709251199999, "2024-02-29T23:59:59.999Z" },
		{ -1, "1969-12-31T23:59:59.999Z" },
		{ INT64_MAX, "9999-12-31T23:59:59.999Z" },
		{ INT64_MIN, "0000-01-01T00:00:00.000Z" },
	};
	char text[32];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		mq_time_format(cases[i].ms, text);
		assert_string_equal(text, cases[i].text);
	}
	assert_true(mq_clock_wall_ms() > 1700000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_come_back),
		cmocka_unit_test(replies_come_back),
		cmocka_unit_test(an_error_of_any_bytes_can_be_sent),
		cmocka_unit_test(what_is_not_ours_is_refused),
		cmocka_unit_test(replies_that_make_no_sense_are_refused),
		cmocka_unit_test(another_version_can_be_answered),
		cmocka_unit_test(size_and_depth_are_bounded),
		cmocka_unit_test(damaged_messages_are_survived),
		cmocka_unit_test(times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
