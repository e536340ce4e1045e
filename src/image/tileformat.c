/* tileformat: see tileformat.h. */
#include "config.h"

#include "src/image/tileformat.h"

#include <errno.h>
#include <fcntl.h>
#include <isa-l/crc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/failpoint.h"
#include "src/image/sink.h"

#define HEADER_BYTES 40u
#define ENTRY_BYTES 68u
#define CRC_BYTES 4u
#define FLAG_PLANES 1u
#define TOUCH_BYTES 32768u

/* The number is raised whenever the same pixels would give other bytes than before: a picture is joined
 * of tiles of one kind. Count files hold none of that. */
static const uint8_t tile_magic[8] = "MQTILE2", count_magic[8] = "MQTILE1";

static const uint8_t *magic_of(uint32_t channels)
{
	return channels ? tile_magic : count_magic;
}

static void put32(uint8_t *p, uint32_t v)
{
	int i;

	for (i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static void put64(uint8_t *p, uint64_t v)
{
	put32(p, (uint32_t)v);
	put32(p + 4, (uint32_t)(v >> 32));
}

static uint32_t get32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t get64(const uint8_t *p)
{
	return get32(p) | (uint64_t)get32(p + 4) << 32;
}

uint64_t mq_tile_head_bytes(uint32_t count)
{
	return HEADER_BYTES + (uint64_t)count * ENTRY_BYTES + CRC_BYTES;
}

void mq_tile_head_put(uint8_t *head, const struct mq_tile_head *info)
{
	memcpy(head, magic_of(info->channels), sizeof tile_magic);
	put64(head + 8, (uint64_t)info->job);
	put64(head + 16, (uint64_t)info->attempt);
	put32(head + 24, info->first);
	put32(head + 28, info->count);
	put32(head + 32, info->channels);
	put32(head + 36, info->planes ? FLAG_PLANES : 0);
}

/* One blob of an entry: offset (0 when it is not there) and bytes. */
static void put_blob(uint8_t *p, size_t bytes, uint64_t *end)
{
	put64(p, bytes ? *end : 0);
	put64(p + 8, bytes);
	*end += bytes;
}

void mq_tile_entry_put(uint8_t *head, uint32_t index, const struct mq_strip_data *strip,
                       uint64_t *end)
{
	uint8_t *p = head + HEADER_BYTES + (uint64_t)index * ENTRY_BYTES;

	put_blob(p, strip->picture_bytes, end);
	put_blob(p + 16, strip->counts_bytes, end);
	put_blob(p + 32, strip->smooth_bytes, end);
	put64(p + 48, strip->filtered);
	put32(p + 56, strip->adler);
	put32(p + 60,
	      strip->counts_bytes ? crc32_gzip_refl(0, strip->counts, strip->counts_bytes) : 0);
	put32(p + 64,
	      strip->smooth_bytes ? crc32_gzip_refl(0, strip->smooth, strip->smooth_bytes) : 0);
}

void mq_tile_head_seal(uint8_t *head, uint32_t count)
{
	uint64_t covered = mq_tile_head_bytes(count) - CRC_BYTES;

	put32(head + covered, crc32_gzip_refl(0, head, covered));
}

enum mq_status mq_tile_map(struct mq_tile_map *map, int dirfd, const char *name,
                           struct mq_error *err)
{
	int error = mq_failpoint("tile-map");
	int fd = error ? -1 : openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	enum mq_status status = MQ_OK;
	struct stat st;
	void *bytes;

	*map = (struct mq_tile_map){NULL, 0, -1};
	if (fd < 0)
		return mq_fail_errno(err, error ? error : errno, "cannot open %s", name);
	if (fstat(fd, &st) != 0) {
		status = mq_fail_errno(err, errno, "cannot read %s", name);
	} else if (!S_ISREG(st.st_mode) || st.st_size <= 0 || (uint64_t)st.st_size > SIZE_MAX) {
		status = mq_fail(err, MQ_ECORRUPT, "%s is empty, or no file", name);
	} else {
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
		if (bytes == MAP_FAILED) {
			status = mq_fail_errno(err, errno, "cannot map %s (%lld bytes)", name,
			                       (long long)st.st_size);
		} else {
			*map = (struct mq_tile_map){bytes, (uint64_t)st.st_size, fd};
			return MQ_OK;
		}
	}
	(void)close(fd); /* only read from */
	return status;
}

enum mq_status mq_tile_touch(const struct mq_tile_map *map, const uint8_t *from, uint64_t bytes,
                             struct mq_error *err)
{
	uint64_t at = (uint64_t)(from - map->bytes), end = at + bytes;
	uint8_t scratch[TOUCH_BYTES];
	int error = mq_failpoint("tile-read");

	for (; !error && at < end; at += sizeof scratch)
		error = mq_read_at(map->fd, scratch, end - at < sizeof scratch ? end - at : sizeof scratch,
		                   at);
	if (error < 0)
		return mq_fail(err, MQ_ECORRUPT, "a tile file was cut while it was read");
	return error ? mq_fail_errno(err, error, "cannot read a tile file") : MQ_OK;
}

void mq_tile_close(struct mq_tile_map *map)
{
	if (map->bytes && map->fd >= 0)
		(void)close(map->fd); /* only read from */
	map->fd = -1;
}

void mq_tile_unmap(struct mq_tile_map *map)
{
	mq_tile_close(map);
	if (map->bytes)
		(void)munmap((void *)map->bytes, (size_t)map->size);
	map->bytes = NULL;
}

/* Whether a blob lies exactly at *end and within the file; moves *end past it. Not there: 0 and 0. */
static bool check_blob(const uint8_t *p, bool wanted, uint64_t size, uint64_t *end)
{
	uint64_t offset = get64(p), bytes = get64(p + 8);

	if (!wanted)
		return offset == 0 && bytes == 0;
	if (bytes == 0 || offset != *end || bytes > size - *end)
		return false;
	*end += bytes;
	return true;
}

static bool check_index(const struct mq_tile_map *map, uint32_t count, bool picture, bool planes)
{
	uint64_t end = mq_tile_head_bytes(count);
	uint32_t i;

	for (i = 0; i < count; i++) {
		const uint8_t *p = map->bytes + HEADER_BYTES + (uint64_t)i * ENTRY_BYTES;

		if (!check_blob(p, picture, map->size, &end) ||
		    !check_blob(p + 16, planes, map->size, &end) ||
		    !check_blob(p + 32, planes, map->size, &end))
			return false;
	}
	return end == map->size;
}

enum mq_status mq_tile_check(const struct mq_tile_map *map, const struct mq_tile_head *expected,
                             bool any_planes, const char *name, struct mq_error *err)
{
	const uint8_t *p = map->bytes;
	uint64_t head = mq_tile_head_bytes(expected->count);
	uint32_t flags;

	if (map->size >= head && expected->channels && memcmp(p, count_magic, sizeof count_magic) == 0)
		return mq_fail(err, MQ_ECORRUPT, "%s was packed by an earlier version", name);
	if (map->size < head || memcmp(p, magic_of(expected->channels), sizeof tile_magic) != 0)
		return mq_fail(err, MQ_ECORRUPT, "%s is no tile file of %u strips", name,
		               expected->count);
	if (get32(p + head - CRC_BYTES) != crc32_gzip_refl(0, p, head - CRC_BYTES))
		return mq_fail(err, MQ_ECORRUPT, "%s: header and index do not match their CRC-32",
		               name);
	flags = get32(p + 36);
	if (get64(p + 8) != (uint64_t)expected->job || get32(p + 24) != expected->first ||
	    get32(p + 28) != expected->count || get32(p + 32) != expected->channels ||
	    (flags & ~FLAG_PLANES) != 0 ||
	    (!any_planes && (flags & FLAG_PLANES) != (expected->planes ? FLAG_PLANES : 0)))
		return mq_fail(err, MQ_ECORRUPT, "%s belongs to another job or tile", name);
	if (!check_index(map, expected->count, expected->channels != 0, flags & FLAG_PLANES))
		return mq_fail(err, MQ_ECORRUPT, "%s: the index does not fit the file", name);
	return MQ_OK;
}

static const uint8_t *get_blob(const struct mq_tile_map *map, const uint8_t *p, size_t *bytes)
{
	*bytes = (size_t)get64(p + 8);
	return *bytes ? map->bytes + get64(p) : NULL;
}

void mq_tile_entry_get(const struct mq_tile_map *map, uint32_t index, struct mq_strip_data *out,
                       uint32_t crc[2])
{
	const uint8_t *p = map->bytes + HEADER_BYTES + (uint64_t)index * ENTRY_BYTES;

	out->picture = get_blob(map, p, &out->picture_bytes);
	out->counts = get_blob(map, p + 16, &out->counts_bytes);
	out->smooth = get_blob(map, p + 32, &out->smooth_bytes);
	out->filtered = get64(p + 48);
	out->adler = get32(p + 56);
	if (crc) {
		crc[0] = get32(p + 60);
		crc[1] = get32(p + 64);
	}
}
