/* tilefile: one finished tile on disk: its strips, compressed, ready to be joined.
 *
 * Layout; all numbers little-endian and unsigned:
 *
 *   0   8  magic "MQTILE2\0", in a count file "MQTILE1\0". Tiles of earlier versions had that too; as their
 *          strips were packed otherwise they are MQ_ECORRUPT, so that a resumed job's file is that of
 *          an uninterrupted one
 *   8   8  job
 *   16  8  attempt (0 in a count file)
 *   24  4  first strip
 *   28  4  number of strips, N
 *   32  4  channels: 1 or 3; 0 in a count file, which has no pictures
 *   36  4  flags: 1 counts and smooth planes are kept; no others
 *   40  68 N  index, an entry a strip:
 *          0   8, 8  offset in the file, and bytes, of the strip's deflate stream (strip.h)
 *          16  8, 8  likewise of its counts (a zstd frame, strip.h), 0 and 0 when not kept
 *          32  8, 8  likewise of its smooth counts
 *          48  8     filtered bytes
 *          56  4     Adler-32 of the filtered bytes
 *          60  4, 4  CRC-32 of the counts and of the smooth counts as they lie in the file
 *   40 + 68 N  4  CRC-32 of all before
 *   44 + 68 N     the data, entry by entry in the order above, without gaps, up to the file's end
 *
 * The SHA-256 of the whole file is in the database and is checked when the tile is used.
 *
 * The same format holds a job's kept counts: one file over all strips (see mq_countfile_*). */
#ifndef MQ_TILEFILE_H
#define MQ_TILEFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/status.h"
#include "src/tile.h"

struct mq_strip_data {
	const uint8_t *picture; size_t picture_bytes; /* mq_strip_encode's output */
	uint32_t adler; uint64_t filtered;
	const uint8_t *counts; size_t counts_bytes;   /* zstd; NULL and 0 when not kept */
	const uint8_t *smooth; size_t smooth_bytes;
};

/* Writes a tile file: temporary file in the directory `dirfd`, fsync, rename to `name`, fsync of the
 * directory. On failure no file of either name is left. MQ_ENOSPC, MQ_EIO, MQ_ESYNC. */
enum mq_status mq_tilefile_write(int dirfd, const char *name, int64_t job, int64_t attempt,
                                 struct mq_span span, unsigned channels,
                                 const struct mq_strip_data *strips, uint64_t *bytes,
                                 uint8_t sha256[32], struct mq_error *err);

/* The name of an attempt's tile file ("tile-FIRST-COUNT-ATTEMPT.mqt"). */
void mq_tilefile_name(char out[64], struct mq_span span, int64_t attempt);

struct mq_tilefile;
/* Opens, checks size and SHA-256 against what the database says, header and index against the rest.
 * MQ_ECORRUPT, MQ_ENOENT or MQ_EIO: render it again. The handle holds the file mapped read-only. */
enum mq_status mq_tilefile_open(int dirfd, const char *name, int64_t job, struct mq_span span,
                                unsigned channels, uint64_t bytes, const uint8_t sha256[32],
                                struct mq_tilefile **out, struct mq_error *err);
void mq_tilefile_close(struct mq_tilefile *file);
/* index: 0 .. span.count-1. The pointers live as long as the handle. */
void mq_tilefile_strip(const struct mq_tilefile *file, uint32_t index, struct mq_strip_data *out);

/* A job's kept counts: the planes of all strips in one file, made at assembly tile by tile. */
struct mq_countfile_writer;
/* Starts NAME.tmp in dirfd for so many strips. */
enum mq_status mq_countfile_create(int dirfd, const char *name, int64_t job, uint32_t strips,
                                   struct mq_countfile_writer **out, struct mq_error *err);
/* Strips must come in order. */
enum mq_status mq_countfile_add(struct mq_countfile_writer *writer, const struct mq_strip_data *strip,
                                struct mq_error *err);
/* Index, fsync, rename, fsync of the directory. Frees the writer, also on failure. */
enum mq_status mq_countfile_finish(struct mq_countfile_writer *writer, uint64_t *bytes,
                                   struct mq_error *err);
void mq_countfile_abort(struct mq_countfile_writer *writer);

struct mq_countfile;
enum mq_status mq_countfile_open(int dirfd, const char *name, int64_t job, uint32_t strips,
                                 struct mq_countfile **out, struct mq_error *err);
void mq_countfile_close(struct mq_countfile *file);
/* One strip's plane (smooth: the float32 one), rows*width 32-bit numbers. MQ_ECORRUPT. */
enum mq_status mq_countfile_plane(const struct mq_countfile *file, uint32_t strip, bool smooth,
                                  void *plane, size_t bytes, struct mq_error *err);

#endif
