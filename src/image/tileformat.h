/* tileformat: the bytes before the data of a tile file or a count file, and the check of a mapped
 * one. Used by tilefile and countfile; tilefile.h describes the layout. */
#ifndef MQ_TILEFORMAT_H
#define MQ_TILEFORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/image/tilefile.h"

struct mq_tile_head {
	int64_t job, attempt;
	uint32_t first, count; /* strips */
	uint32_t channels;     /* 0: a count file, without pictures */
	bool planes;
};

/* Header, index and CRC together. */
uint64_t mq_tile_head_bytes(uint32_t count);

/* Writes the header into head (mq_tile_head_bytes of it). */
void mq_tile_head_put(uint8_t *head, const struct mq_tile_head *info);
/* Index entry `index`; *end is where its data begins, and is moved past them. */
void mq_tile_entry_put(uint8_t *head, uint32_t index, const struct mq_strip_data *strip,
                       uint64_t *end);
/* The CRC, when all entries are there. */
void mq_tile_head_seal(uint8_t *head, uint32_t count);

/* A file mapped read-only. A sector that cannot be read is a SIGBUS in a map: so what is used of it is
 * read from the file before (mq_tile_touch), where that is MQ_EIO. */
struct mq_tile_map {
	const uint8_t *bytes; /* NULL: not mapped */
	uint64_t size;
	int fd;
};
/* Maps a file of the directory. MQ_ENOENT, MQ_EIO, MQ_ENOMEM_HOST, MQ_ECORRUPT (empty). */
enum mq_status mq_tile_map(struct mq_tile_map *map, int dirfd, const char *name,
                           struct mq_error *err);
/* MQ_EIO; MQ_ECORRUPT: the file has been cut. */
enum mq_status mq_tile_touch(const struct mq_tile_map *map, const uint8_t *from, uint64_t bytes,
                             struct mq_error *err);
/* All that will be touched has been: the map stays. */
void mq_tile_close(struct mq_tile_map *map);
void mq_tile_unmap(struct mq_tile_map *map);

/* Checks header and index of any bytes at all: what they must say (attempt: taken from the file), that
 * the CRC is right, and that the data of all entries lie one behind the other up to the last byte. */
enum mq_status mq_tile_check(const struct mq_tile_map *map, const struct mq_tile_head *expected,
                             bool any_planes, const char *name, struct mq_error *err);

/* An entry of a checked map. crc (may be NULL): of its counts and smooth planes. */
void mq_tile_entry_get(const struct mq_tile_map *map, uint32_t index, struct mq_strip_data *out,
                       uint32_t crc[2]);

#endif
