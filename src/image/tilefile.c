/* tilefile: see tilefile.h. Written by the worker's encoder threads when a tile is complete, read by
 * assembly and by recovery. */
#include "config.h"

#include "src/image/tilefile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/failpoint.h"
#include "src/image/newfile.h"
#include "src/image/sink.h"
#include "src/image/tileformat.h"

static const struct mq_newfile_kind tile_kind = {
	.create = "tile-create",
	.write = "tile-write",
	.fsync = "tile-fsync",
	.rename = "tile-rename",
	.dirsync = "tile-dirsync",
	.what = "tile file",
};

struct mq_tilefile {
	struct mq_tile_map map;
};

void mq_tilefile_name(char out[64], struct mq_span span, int64_t attempt)
{
	snprintf(out, 64, "tile-%" PRIu32 "-%" PRIu32 "-%" PRId64 ".mqt", span.first, span.count,
	         attempt);
}

/* Header, index and CRC of a tile; NULL when memory is out. */
static uint8_t *make_head(const struct mq_tile_head *info, const struct mq_strip_data *strips)
{
	uint64_t bytes = mq_tile_head_bytes(info->count), end = bytes;
	uint8_t *head = bytes <= SIZE_MAX ? malloc((size_t)bytes) : NULL;
	uint32_t i;

	if (!head)
		return NULL;
	mq_tile_head_put(head, info);
	for (i = 0; i < info->count; i++)
		mq_tile_entry_put(head, i, &strips[i], &end);
	mq_tile_head_seal(head, info->count);
	return head;
}

static enum mq_status put_strip(struct mq_sink *sink, const struct mq_strip_data *strip,
                                struct mq_error *err)
{
	enum mq_status status = mq_sink_put(sink, strip->picture, strip->picture_bytes, err);

	if (status == MQ_OK)
		status = mq_sink_put(sink, strip->counts, strip->counts_bytes, err);
	if (status == MQ_OK)
		status = mq_sink_put(sink, strip->smooth, strip->smooth_bytes, err);
	return status;
}

static enum mq_status put_tile(int fd, const struct mq_tile_head *info,
                               const struct mq_strip_data *strips, uint64_t *bytes,
                               uint8_t sha256[32], struct mq_error *err)
{
	struct mq_sink sink;
	uint8_t *head = make_head(info, strips);
	enum mq_status status;
	uint32_t i;

	if (!head)
		return mq_fail(err, MQ_ENOMEM_HOST,
		               "no memory for the index of a tile of %u strips", info->count);
	status = mq_sink_open(&sink, fd, 0, true, tile_kind.write, "a tile file", err);
	if (status)
		goto out;
	status = mq_sink_put(&sink, head, (size_t)mq_tile_head_bytes(info->count), err);
	for (i = 0; i < info->count && status == MQ_OK; i++)
		status = put_strip(&sink, &strips[i], err);
	if (status == MQ_OK)
		status = mq_sink_finish(&sink, sha256, err);
	*bytes = mq_sink_offset(&sink);
	mq_sink_close(&sink);
out:
	free(head);
	return status;
}

enum mq_status mq_tilefile_write(int dirfd, const char *name, int64_t job, int64_t attempt,
                                 struct mq_span span, unsigned channels,
                                 const struct mq_strip_data *strips, uint64_t *bytes,
                                 uint8_t sha256[32], struct mq_error *err)
{
	struct mq_tile_head info = { .job = job,
		                     .attempt = attempt,
		                     .first = span.first,
		                     .count = span.count,
		                     .channels = channels };
	struct mq_newfile file = { 0 };
	enum mq_status status;
	uint64_t size = 0;
	uint8_t sha[32];
	uint32_t i;

	info.planes = span.count > 0 && strips[0].counts_bytes > 0;
	for (i = 0; i < span.count; i++)
		if (strips[i].picture_bytes == 0 || (strips[i].counts_bytes > 0) != info.planes ||
		    (strips[i].smooth_bytes > 0) != info.planes)
			return mq_fail(err, MQ_EINTERNAL, "strip %u of a tile is incomplete", i);
	status = mq_newfile_create(&file, dirfd, name, &tile_kind, err);
	if (status)
		return status;
	status = put_tile(file.fd, &info, strips, &size, sha, err);
	if (status) {
		mq_newfile_abort(&file);
		return status;
	}
	status = mq_newfile_commit(&file, err);
	if (status == MQ_OK) {
		*bytes = size;
		memcpy(sha256, sha, sizeof sha);
	}
	return status;
}

static enum mq_status check_sum(const struct mq_tile_map *map, uint64_t bytes,
                                const uint8_t sha256[32], const char *name, struct mq_error *err)
{
	uint8_t found[32];
	enum mq_status status;

	if (map->size != bytes)
		return mq_fail(err, MQ_ECORRUPT, "%s has %" PRIu64 " bytes instead of %" PRIu64,
		               name, map->size, bytes);
	status = mq_tile_touch(map, map->bytes, map->size, err);
	if (status)
		return status;
	if (EVP_Digest(map->bytes, (size_t)map->size, found, NULL, EVP_sha256(), NULL) != 1)
		return mq_fail(err, MQ_EINTERNAL, "libcrypto cannot hash %s", name);
	if (memcmp(found, sha256, sizeof found) != 0)
		return mq_fail(err, MQ_ECORRUPT, "%s does not match its SHA-256", name);
	return MQ_OK;
}

enum mq_status mq_tilefile_open(int dirfd, const char *name, int64_t job, struct mq_span span,
                                unsigned channels, uint64_t bytes, const uint8_t sha256[32],
                                struct mq_tilefile **out, struct mq_error *err)
{
	const struct mq_tile_head expected = {
		.job = job, .first = span.first, .count = span.count, .channels = channels
	};
	struct mq_tilefile *file = mq_failpoint("tile-open") ? NULL : calloc(1, sizeof *file);
	enum mq_status status;

	if (!file)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory to open %s", name);
	status = mq_tile_map(&file->map, dirfd, name, err);
	if (status == MQ_OK)
		status = check_sum(&file->map, bytes, sha256, name, err);
	if (status == MQ_OK)
		status = mq_tile_check(&file->map, &expected, true, name, err);
	if (status) {
		mq_tilefile_close(file);
		return status;
	}
	mq_tile_close(&file->map);
	*out = file;
	return MQ_OK;
}

void mq_tilefile_close(struct mq_tilefile *file)
{
	if (!file)
		return;
	mq_tile_unmap(&file->map);
	free(file);
}

void mq_tilefile_strip(const struct mq_tilefile *file, uint32_t index, struct mq_strip_data *out)
{
	mq_tile_entry_get(&file->map, index, out, NULL);
}
