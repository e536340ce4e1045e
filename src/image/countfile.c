/* countfile: the kept counts of a whole job (tilefile.h): a tile file over all strips, without
 * pictures. Its index is known only at the end and goes to the room left for it at the front. */
#include "config.h"

#include "src/image/tilefile.h"

#include <isa-l/crc.h>
#include <stdlib.h>
#include <string.h>

#include "src/failpoint.h"
#include "src/image/newfile.h"
#include "src/image/sink.h"
#include "src/image/strip.h"
#include "src/image/tileformat.h"

static const struct mq_newfile_kind counts_kind = {
	.create = "counts-create",
	.write = "counts-write",
	.fsync = "counts-fsync",
	.rename = "counts-rename",
	.dirsync = "counts-dirsync",
	.what = "count file",
};

struct mq_countfile_writer {
	struct mq_newfile file;
	struct mq_sink sink;
	struct mq_tile_head info;
	uint32_t next; /* strip */
	uint64_t end;
	uint8_t *head;
};

struct mq_countfile {
	struct mq_tile_map map;
};

static struct mq_tile_head counts_head(int64_t job, uint32_t strips)
{
	return (struct mq_tile_head){ .job = job, .count = strips, .planes = true };
}

enum mq_status mq_countfile_create(int dirfd, const char *name, int64_t job, uint32_t strips,
                                   struct mq_countfile_writer **out, struct mq_error *err)
{
	uint64_t bytes = mq_tile_head_bytes(strips);
	struct mq_countfile_writer *w = calloc(1, sizeof *w);
	enum mq_status status;

	if (w && bytes <= SIZE_MAX)
		w->head = calloc(1, (size_t)bytes);
	if (!w || !w->head) {
		status = mq_fail(err, MQ_ENOMEM_HOST,
		                 "no memory for the index of the counts (%llu bytes)",
		                 (unsigned long long)bytes);
		goto fail;
	}
	w->info = counts_head(job, strips);
	w->end = bytes;
	status = mq_newfile_create(&w->file, dirfd, name, &counts_kind, err);
	if (status)
		goto fail;
	status = mq_sink_open(&w->sink, w->file.fd, bytes, false, counts_kind.write, "the counts",
	                      err);
	if (status) {
		mq_newfile_abort(&w->file);
		goto fail;
	}
	*out = w;
	return MQ_OK;
fail:
	if (w)
		free(w->head);
	free(w);
	return status;
}

static void writer_free(struct mq_countfile_writer *writer)
{
	mq_sink_close(&writer->sink);
	free(writer->head);
	free(writer);
}

enum mq_status mq_countfile_add(struct mq_countfile_writer *writer,
                                const struct mq_strip_data *strip, struct mq_error *err)
{
	const struct mq_strip_data planes = {
		.counts = strip->counts,
		.counts_bytes = strip->counts_bytes,
		.smooth = strip->smooth,
		.smooth_bytes = strip->smooth_bytes,
	};
	enum mq_status status;

	if (writer->next >= writer->info.count || planes.counts_bytes == 0 ||
	    planes.smooth_bytes == 0)
		return mq_fail(err, MQ_EINTERNAL, "strip %u has no counts to keep", writer->next);
	status = mq_sink_put(&writer->sink, planes.counts, planes.counts_bytes, err);
	if (status == MQ_OK)
		status = mq_sink_put(&writer->sink, planes.smooth, planes.smooth_bytes, err);
	if (status == MQ_OK)
		mq_tile_entry_put(writer->head, writer->next++, &planes, &writer->end);
	return status;
}

static enum mq_status put_head(struct mq_countfile_writer *writer, struct mq_error *err)
{
	int error = mq_failpoint("counts-index");

	mq_tile_head_put(writer->head, &writer->info);
	mq_tile_head_seal(writer->head, writer->info.count);
	if (!error)
		error = mq_write_at(writer->file.fd, writer->head,
		                    (size_t)mq_tile_head_bytes(writer->info.count), 0);
	if (error)
		return mq_fail_errno(err, error, "cannot write the index of the counts");
	return MQ_OK;
}

enum mq_status mq_countfile_finish(struct mq_countfile_writer *writer, uint64_t *bytes,
                                   struct mq_error *err)
{
	enum mq_status status;

	if (writer->next != writer->info.count)
		status = mq_fail(err, MQ_EINTERNAL, "counts of %u strips instead of %u",
		                 writer->next, writer->info.count);
	else
		status = mq_sink_flush(&writer->sink, err);
	if (status == MQ_OK)
		status = put_head(writer, err);
	if (status) {
		mq_countfile_abort(writer);
		return status;
	}
	status = mq_newfile_commit(&writer->file, err);
	if (status == MQ_OK)
		*bytes = writer->end;
	writer_free(writer);
	return status;
}

void mq_countfile_abort(struct mq_countfile_writer *writer)
{
	if (!writer)
		return;
	mq_newfile_abort(&writer->file);
	writer_free(writer);
}

enum mq_status mq_countfile_open(int dirfd, const char *name, int64_t job, uint32_t strips,
                                 struct mq_countfile **out, struct mq_error *err)
{
	const struct mq_tile_head expected = counts_head(job, strips);
	struct mq_countfile *file = calloc(1, sizeof *file);
	enum mq_status status;

	if (!file)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory to open %s", name);
	status = mq_tile_map(&file->map, dirfd, name, err);
	if (status == MQ_OK && file->map.size >= mq_tile_head_bytes(strips))
		status = mq_tile_touch(&file->map, file->map.bytes, mq_tile_head_bytes(strips), err);
	if (status == MQ_OK)
		status = mq_tile_check(&file->map, &expected, false, name, err);
	if (status) {
		mq_countfile_close(file);
		return status;
	}
	*out = file;
	return MQ_OK;
}

void mq_countfile_close(struct mq_countfile *file)
{
	if (!file)
		return;
	mq_tile_unmap(&file->map);
	free(file);
}

enum mq_status mq_countfile_plane(const struct mq_countfile *file, uint32_t strip, bool smooth,
                                  void *plane, size_t bytes, struct mq_error *err)
{
	struct mq_strip_data data;
	const uint8_t *in;
	uint32_t crc[2];
	size_t len;
	enum mq_status status;

	mq_tile_entry_get(&file->map, strip, &data, crc);
	in = smooth ? data.smooth : data.counts;
	len = smooth ? data.smooth_bytes : data.counts_bytes;
	status = mq_tile_touch(&file->map, in, len, err);
	if (status)
		return status;
	/* zstd ignores a bit or two of its header; this CRC covers every byte. */
	if (crc32_gzip_refl(0, in, len) != crc[smooth])
		return mq_fail(err, MQ_ECORRUPT, "the counts of strip %u do not match their CRC-32",
		               strip);
	return mq_plane_decode(in, len, plane, bytes, err);
}
