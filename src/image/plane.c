/* plane: the planes part of strip.h: counts and smooth counts to zstd frames and back.
 *
 * The 32-bit numbers are split into four planes of bytes first (all lowest bytes, then all second
 * ones, ...): neighbours share their high bytes. The frame has its content's size and a checksum. */
#include "config.h"

#include "src/image/strip.h"

#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "src/failpoint.h"
#include "src/image/strip_work.h"
#include "src/spare.h"

#define PLANE_LEVEL 1

struct mq_plane_work {
	ZSTD_CCtx *zstd;
	uint8_t *split;
	size_t split_size;
};

void mq_plane_work_free(struct mq_plane_work *work)
{
	if (!work)
		return;
	ZSTD_freeCCtx(work->zstd);
	free(work->split);
	free(work);
}

static struct mq_plane_work *work_open(void)
{
	struct mq_plane_work *work = mq_failpoint("plane-alloc") ? NULL : calloc(1, sizeof *work);

	if (!work)
		return NULL;
	work->zstd = ZSTD_createCCtx();
	if (!work->zstd ||
	    ZSTD_isError(
		    ZSTD_CCtx_setParameter(work->zstd, ZSTD_c_compressionLevel, PLANE_LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(work->zstd, ZSTD_c_checksumFlag, 1))) {
		mq_plane_work_free(work);
		return NULL;
	}
	return work;
}

/* The encoder's plane work with room for `bytes`; NULL when memory is out. */
static struct mq_plane_work *work_for(struct mq_strip_encoder *encoder, size_t bytes)
{
	struct mq_plane_work **work = mq_strip_plane_work(encoder);
	uint8_t *grown;

	if (!*work)
		*work = work_open();
	if (!*work || bytes <= (*work)->split_size)
		return *work;
	grown = mq_spare_malloc(bytes);
	if (!grown)
		return NULL;
	free((*work)->split);
	(*work)->split = grown;
	(*work)->split_size = bytes;
	return *work;
}

static void split(const uint8_t *restrict in, size_t n, uint8_t *restrict out)
{
	size_t i;

	for (i = 0; i < n; i++) {
		out[i] = in[4 * i];
		out[n + i] = in[4 * i + 1];
		out[2 * n + i] = in[4 * i + 2];
		out[3 * n + i] = in[4 * i + 3];
	}
}

static void join(const uint8_t *restrict in, size_t n, uint8_t *restrict out)
{
	size_t i;

	for (i = 0; i < n; i++) {
		out[4 * i] = in[i];
		out[4 * i + 1] = in[n + i];
		out[4 * i + 2] = in[2 * n + i];
		out[4 * i + 3] = in[3 * n + i];
	}
}

size_t mq_plane_bound(size_t bytes)
{
	return ZSTD_compressBound(bytes);
}

enum mq_status mq_plane_encode(struct mq_strip_encoder *encoder, const void *plane, size_t bytes,
                               uint8_t *out, size_t room, size_t *written, struct mq_error *err)
{
	struct mq_plane_work *work;
	size_t n;

	if (bytes == 0 || bytes % 4 != 0)
		return mq_fail(err, MQ_EINTERNAL, "a plane of %zu bytes", bytes);
	work = work_for(encoder, bytes);
	if (!work)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory to compress a plane (%zu bytes)",
		               bytes);
	split(plane, bytes / 4, work->split);
	n = ZSTD_compress2(work->zstd, out, room, work->split, bytes);
	if (ZSTD_isError(n))
		return mq_fail(err,
		               ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation ? MQ_ENOMEM_HOST
		                                                                    : MQ_EINTERNAL,
		               "a plane of %zu bytes is not compressed: %s", bytes,
		               ZSTD_getErrorName(n));
	*written = n;
	return MQ_OK;
}

enum mq_status mq_plane_decode(const uint8_t *in, size_t len, void *plane, size_t bytes,
                               struct mq_error *err)
{
	uint8_t *bytes_split;
	size_t n;

	if (bytes == 0 || bytes % 4 != 0)
		return mq_fail(err, MQ_EINTERNAL, "a plane of %zu bytes", bytes);
	if (ZSTD_getFrameContentSize(in, len) != bytes ||
	    ZSTD_findFrameCompressedSize(in, len) != len)
		return mq_fail(err, MQ_ECORRUPT, "a plane is no frame of %zu bytes", bytes);
	bytes_split = mq_failpoint("plane-alloc") ? NULL : malloc(bytes);
	if (!bytes_split)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory to read a plane (%zu bytes)", bytes);
	n = ZSTD_decompress(bytes_split, bytes, in, len);
	if (n == bytes)
		join(bytes_split, bytes / 4, plane);
	free(bytes_split);
	if (ZSTD_isError(n) && ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory to read a plane");
	if (n != bytes)
		return mq_fail(err, MQ_ECORRUPT, "a plane's frame is damaged");
	return MQ_OK;
}
