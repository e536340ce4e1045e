/* sink: see sink.h. */
#include "config.h"

#include "src/image/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/alive.h"
#include "src/failpoint.h"

#define BUFFER_BYTES (256u << 10)

int mq_write_at(int fd, const void *data, size_t bytes, uint64_t offset)
{
	const uint8_t *p = data;

	while (bytes > 0) {
		ssize_t n = pwrite(fd, p, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : EIO;
		p += n;
		bytes -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

int mq_read_at(int fd, void *out, size_t bytes, uint64_t offset)
{
	uint8_t *p = out;

	while (bytes > 0) {
		ssize_t n = pread(fd, p, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : -1;
		p += n;
		bytes -= (size_t)n;
		offset += (uint64_t)n;
	}
	return 0;
}

enum mq_status mq_sink_open(struct mq_sink *sink, int fd, uint64_t offset, bool hash,
                            const char *failpoint, const char *what, struct mq_error *err)
{
	memset(sink, 0, sizeof *sink);
	sink->fd = fd;
	sink->failpoint = failpoint;
	sink->what = what;
	sink->flushed = offset;
	sink->buffer = mq_failpoint("sink-alloc") ? NULL : malloc(BUFFER_BYTES);
	if (hash)
		sink->sha = EVP_MD_CTX_new();
	if (!sink->buffer || (hash && !sink->sha)) {
		mq_sink_close(sink);
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory to write %s (%u bytes)", what,
		               BUFFER_BYTES);
	}
	if (hash && EVP_DigestInit_ex(sink->sha, EVP_sha256(), NULL) != 1) {
		mq_sink_close(sink);
		return mq_fail(err, MQ_EINTERNAL, "libcrypto has no SHA-256");
	}
	return MQ_OK;
}

void mq_sink_close(struct mq_sink *sink)
{
	EVP_MD_CTX_free(sink->sha);
	free(sink->buffer);
	sink->sha = NULL;
	sink->buffer = NULL;
}

/* Keeps a failure for later calls and hands it out. */
static enum mq_status sink_failed(struct mq_sink *sink, struct mq_error *err)
{
	return mq_fail(err, sink->status, "%s", sink->error.text);
}

static enum mq_status write_out(struct mq_sink *sink, const void *data, size_t bytes,
                                struct mq_error *err)
{
	int error = mq_failpoint(sink->failpoint);

	mq_alive();
	if (!error)
		error = mq_write_at(sink->fd, data, bytes, sink->flushed);
	if (error)
		sink->status = mq_fail_errno(&sink->error, error, "cannot write %s", sink->what);
	else if (sink->sha && EVP_DigestUpdate(sink->sha, data, bytes) != 1)
		sink->status =
			mq_fail(&sink->error, MQ_EINTERNAL, "libcrypto cannot hash %s", sink->what);
	if (sink->status)
		return sink_failed(sink, err);
	sink->flushed += bytes;
	return MQ_OK;
}

enum mq_status mq_sink_flush(struct mq_sink *sink, struct mq_error *err)
{
	enum mq_status status = MQ_OK;

	if (sink->status)
		return sink_failed(sink, err);
	if (sink->used > 0)
		status = write_out(sink, sink->buffer, sink->used, err);
	if (status == MQ_OK)
		sink->used = 0;
	return status;
}

enum mq_status mq_sink_put(struct mq_sink *sink, const void *data, size_t bytes,
                           struct mq_error *err)
{
	enum mq_status status;

	if (sink->status)
		return sink_failed(sink, err);
	if (bytes > BUFFER_BYTES - sink->used) {
		status = mq_sink_flush(sink, err);
		if (status)
			return status;
		if (bytes >= BUFFER_BYTES)
			return write_out(sink, data, bytes, err);
	}
	if (bytes > 0)
		memcpy(sink->buffer + sink->used, data, bytes);
	sink->used += bytes;
	return MQ_OK;
}

enum mq_status mq_sink_finish(struct mq_sink *sink, uint8_t sha256[32], struct mq_error *err)
{
	enum mq_status status = mq_sink_flush(sink, err);

	if (status == MQ_OK && EVP_DigestFinal_ex(sink->sha, sha256, NULL) != 1)
		status = mq_fail(err, MQ_EINTERNAL, "libcrypto cannot hash %s", sink->what);
	return status;
}
