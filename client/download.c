/* download: open, poll until it is ready, read piece by piece, close, which says whether the file has been
 * kept. Called by fetch and render. A handle that the worker has forgotten (MQ_ESTALE) is opened again, and
 * the reading goes on if it is still the same data. */
#include "config.h"

#include "client/download.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "client/interrupt.h"
#include "client/progress.h"
#include "client/rows.h"
#include "client/target.h"
#include "src/message.h"

#define POLL_MIN_MS 20
#define POLL_MAX_MS 500
#define REOPEN_MAX 5 /* without a byte in between */

struct transfer {
	struct mq_client *client;
	const struct mq_download *request;
	struct mq_progress progress;
	int64_t handle, bytes, offset;
	char sha256[65]; /* empty: the worker gave none */
	bool opened, known;
	EVP_MD_CTX *digest;
	struct mq_target *target;
	unsigned char *buffer;
};

static enum mq_status fail_answer(const char *verb, struct mq_error *err)
{
	return mq_fail(err, MQ_EPROTO, "the worker sent no proper answer to \"%s\"", verb);
}

/* Takes in a reply to open or poll. */
static enum mq_status take_state(struct transfer *t, const json_t *result, bool *ready,
				 struct mq_error *err)
{
	const json_t *flag = json_object_get(result, "ready");
	const char *sha256 = mq_row_text(result, "sha256", "");
	size_t len = strlen(sha256);
	int64_t bytes;

	if (!mq_row_integer(result, "handle", 0, &t->handle) || !json_is_boolean(flag))
		return fail_answer("open", err);
	t->opened = true;
	*ready = json_is_true(flag);
	if (!*ready)
		return MQ_OK;
	if (!mq_row_integer(result, "bytes", 0, &bytes) ||
	    (len && (len != 64 || strspn(sha256, "0123456789abcdef") != 64)))
		return fail_answer("open", err);
	if (t->known && (bytes != t->bytes || strcmp(sha256, t->sha256) != 0))
		return mq_fail(err, MQ_ECORRUPT,
			       "the output of job %lld has changed while it was read",
			       (long long)t->request->id);
	t->known = true;
	t->bytes = bytes;
	memcpy(t->sha256, sha256, len + 1);
	return MQ_OK;
}

static json_t *open_args(const struct mq_download *d)
{
	json_t *args = json_pack("{s:I,s:s}", "id", (json_int_t)d->id, "what", d->what);

	if (args && d->region && json_object_set(args, "region", d->region) != 0) {
		json_decref(args);
		return NULL;
	}
	return args;
}

/* Opens, and polls until the data is ready. */
static enum mq_status open_ready(struct transfer *t, struct mq_error *err)
{
	json_t *result = NULL;
	unsigned interval = POLL_MIN_MS;
	bool ready = false;
	enum mq_status status =
		mq_client_call(t->client, "open", open_args(t->request), &result, err);

	while (status == MQ_OK) {
		status = take_state(t, result, &ready, err);
		if (!ready)
			mq_progress_step(&t->progress, "preparing",
					 mq_row_number(result, "progress", 0), 1, NULL);
		json_decref(result);
		result = NULL;
		if (status != MQ_OK || ready)
			break;
		mq_interrupt_sleep(interval);
		interval = interval * 2 < POLL_MAX_MS ? interval * 2 : POLL_MAX_MS;
		status = mq_client_call(t->client, "poll",
					json_pack("{s:I}", "handle", (json_int_t)t->handle),
					&result, err);
	}
	return status;
}

/* One piece at t->offset, checked, hashed and written. */
static enum mq_status read_piece(struct transfer *t, struct mq_error *err)
{
	int64_t left = t->bytes - t->offset, bytes, crc;
	size_t want = left < (int64_t)MQ_READ_MAX ? (size_t)left : MQ_READ_MAX, len = 0;
	json_t *result = NULL;
	enum mq_status status;

	status = mq_client_call_data(t->client, "read",
				     json_pack("{s:I,s:I,s:I}", "handle", (json_int_t)t->handle,
					       "offset", (json_int_t)t->offset, "length",
					       (json_int_t)want),
				     &result, t->buffer, want, &len, err);
	if (status != MQ_OK)
		return status;
	if (!mq_row_integer(result, "bytes", 1, &bytes) || (size_t)bytes != len ||
	    !mq_row_integer(result, "crc32", 0, &crc))
		status = fail_answer("read", err);
	else if ((int64_t)crc32_z(0, t->buffer, len) != crc)
		status = mq_fail(err, MQ_ECORRUPT, "bytes %lld to %lld of job %lld came damaged",
				 (long long)t->offset, (long long)(t->offset + bytes - 1),
				 (long long)t->request->id);
	else if (EVP_DigestUpdate(t->digest, t->buffer, len) != 1)
		status = mq_fail(err, MQ_EINTERNAL, "libcrypto cannot compute SHA-256");
	else
		status = mq_target_write(t->target, t->buffer, len, err);
	if (status == MQ_OK)
		t->offset += bytes;
	json_decref(result);
	return status;
}

static enum mq_status read_all(struct transfer *t, struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	unsigned reopened = 0;

	while (status == MQ_OK && t->offset < t->bytes) {
		status = read_piece(t, err);
		if (status == MQ_OK) {
			reopened = 0;
			mq_progress_step(&t->progress, "fetching", (double)t->offset,
					 (double)t->bytes, "B");
		} else if (status == MQ_ESTALE && reopened++ < REOPEN_MAX) {
			t->opened = false;
			status = open_ready(t, err);
		}
	}
	return status;
}

static enum mq_status check_sha256(struct transfer *t, struct mq_error *err)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	char hex[65];

	if (EVP_DigestFinal_ex(t->digest, digest, &len) != 1 || len != 32)
		return mq_fail(err, MQ_EINTERNAL, "libcrypto cannot compute SHA-256");
	for (unsigned i = 0; i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	if (t->sha256[0] && strcmp(hex, t->sha256) != 0)
		return mq_fail(err, MQ_ECORRUPT,
			       "what came of job %lld has not the checksum that the worker named: its file there is "
			       "damaged; render it again: mandelq submit --like=%lld",
			       (long long)t->request->id, (long long)t->request->id);
	return MQ_OK;
}

/* The worker gives the handle back by itself after a while, so a failure here is of no account. kept: the
 * file is whole and durable; only then may the worker take the picture for fetched. */
static enum mq_status close_handle(struct transfer *t, bool kept, bool *counted)
{
	json_t *args = json_pack("{s:I}", "handle", (json_int_t)t->handle), *result = NULL;
	enum mq_status status;

	if (kept && args && json_object_set_new(args, "kept", json_true()) != 0) {
		json_decref(args);
		args = NULL;
	}
	status = mq_client_call(t->client, "close", args, &result, NULL);
	/* A worker that knows nothing of this says nothing. */
	*counted = status == MQ_OK && !json_is_false(json_object_get(result, "kept"));
	json_decref(result);
	return status;
}

/* Nor is a picture that does not count worth a failure: it only stays for longer. */
static void end_handle(struct transfer *t, bool kept)
{
	bool picture = strcmp(t->request->what, "picture") == 0 && !t->request->region, counted;
	enum mq_status status = close_handle(t, kept, &counted);

	/* The handle may have expired meanwhile, or the worker be another. */
	if (kept && picture && status == MQ_OK && !counted && open_ready(t, NULL) == MQ_OK)
		(void)close_handle(t, true, &counted);
}

enum mq_status mq_download(struct mq_client *client, const struct mq_download *download,
			   struct mq_error *err)
{
	struct transfer t = { .client = client, .request = download };
	enum mq_status status;

	t.buffer = malloc(MQ_READ_MAX);
	t.digest = EVP_MD_CTX_new();
	if (!t.buffer || !t.digest || EVP_DigestInit_ex(t.digest, EVP_sha256(), NULL) != 1) {
		status = mq_fail(err, MQ_ENOMEM_HOST, "no memory to receive a file");
		goto out;
	}
	mq_progress_begin(&t.progress, download->quiet);
	status = open_ready(&t, err);
	if (status == MQ_OK)
		status = mq_target_open(download->path, download->force, &t.target, err);
	if (status == MQ_OK)
		status = read_all(&t, err);
	if (status == MQ_OK)
		status = check_sha256(&t, err);
	if (status == MQ_OK)
		status = mq_target_commit(t.target, err);
	mq_progress_end(&t.progress);
	if (t.opened && !mq_client_lost(status) && status != MQ_ESTOPPED)
		end_handle(&t, status == MQ_OK);
out:
	mq_target_close(t.target);
	EVP_MD_CTX_free(t.digest);
	free(t.buffer);
	return status;
}
