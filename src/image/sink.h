/* sink: buffered writing to a file descriptor, with the SHA-256 of what was written. Used by png,
 * tilefile and countfile. After a failure every later call gives the same failure. One thread. */
#ifndef MQ_SINK_H
#define MQ_SINK_H

#include <openssl/evp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/status.h"

struct mq_sink {
	int fd;
	const char *failpoint; /* passed before each write to the file */
	const char *what;      /* for error texts: "the picture" */
	uint64_t flushed;      /* the file offset that the buffer goes to */
	size_t used;
	uint8_t *buffer;
	EVP_MD_CTX *sha; /* NULL: no checksum wanted */
	enum mq_status status;
	struct mq_error error;
};

/* Writes from file offset `offset` on; failpoint and what must outlive the sink. */
enum mq_status mq_sink_open(struct mq_sink *sink, int fd, uint64_t offset, bool hash,
                            const char *failpoint, const char *what, struct mq_error *err);
void mq_sink_close(struct mq_sink *sink);
enum mq_status mq_sink_put(struct mq_sink *sink, const void *data, size_t bytes,
                           struct mq_error *err);
enum mq_status mq_sink_flush(struct mq_sink *sink, struct mq_error *err);
/* Flushes; the SHA-256 only of a sink that hashes, once. */
enum mq_status mq_sink_finish(struct mq_sink *sink, uint8_t sha256[32], struct mq_error *err);

/* The file offset of the next byte. */
static inline uint64_t mq_sink_offset(const struct mq_sink *sink)
{
	return sink->flushed + sink->used;
}

/* All of data at an offset; 0 or an errno. */
int mq_write_at(int fd, const void *data, size_t bytes, uint64_t offset);
/* All of out from an offset; 0, an errno, or -1 when the file ends before. */
int mq_read_at(int fd, void *out, size_t bytes, uint64_t offset);

#endif
