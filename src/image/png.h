/* png: joins compressed strips into one PNG, and reads one back whole.
 *
 * Signature, IHDR, sRGB, pHYs, iTXt (the job), one IDAT a strip, IEND. The first IDAT begins with the
 * zlib header, the last one ends with the joined Adler-32. No part is compressed again. libpng writes
 * the chunks. */
#ifndef MQ_PNG_H
#define MQ_PNG_H

#include <stddef.h>
#include <stdint.h>

#include "src/status.h"
#include "src/tile.h"

struct mq_png_header {
	uint32_t width, height;
	unsigned channels;
	uint32_t ppm;
	const char *job_text; /* goes into iTXt; UTF-8 */
};

struct mq_png_writer;
/* Starts writing at the beginning of fd (buffered; fd stays the caller's). */
enum mq_status mq_png_create(int fd, const struct mq_png_header *header, struct mq_png_writer **out,
                             struct mq_error *err);
/* The next strip: one IDAT. last: also joins and writes the Adler-32. *offset (may be NULL) is where
 * the strip's deflate data lies in the file. */
enum mq_status mq_png_add(struct mq_png_writer *writer, const uint8_t *deflated, size_t bytes,
                          uint32_t adler, uint64_t filtered, bool last, uint64_t *offset,
                          struct mq_error *err);
/* IEND and flush; gives the file's size and SHA-256 as written. Does not sync. Frees the writer, also
 * on failure. */
enum mq_status mq_png_finish(struct mq_png_writer *writer, uint64_t *bytes, uint8_t sha256[32],
                             struct mq_error *err);
void mq_png_abort(struct mq_png_writer *writer);

/* Reading back what lies on disk. Walks every chunk of the file (types, order, lengths, that it ends
 * with IEND) and notes where each strip's IDAT lies; the caller checks the strips, side by side if it
 * likes, with mq_png_strip. */
struct mq_png_reader;
enum mq_status mq_png_open(int fd, const struct mq_png_header *expected, const struct mq_layout *layout,
                           struct mq_png_reader **out, struct mq_error *err);
void mq_png_close(struct mq_png_reader *reader);
/* Strip `index` read back from disk: the IDAT's CRC, the whole deflate stream, its length, its filters
 * and its Adler-32. pixels gets the decoded rows. adler_out is for the join, which the caller checks
 * against mq_png_adler. Thread-safe with one encoder (work memory) a thread. */
struct mq_strip_encoder;
enum mq_status mq_png_strip(struct mq_png_reader *reader, struct mq_strip_encoder *work, uint32_t index,
                            uint8_t *pixels, uint32_t *adler_out, struct mq_error *err);
/* The Adler-32 at the end of the file's zlib stream, and the one that strips in order give. */
uint32_t mq_png_adler(const struct mq_png_reader *reader);
uint32_t mq_adler_join(uint32_t first, uint32_t second, uint64_t second_bytes);

/* A small picture (preview, region) in one go through libpng's ordinary writer, rows from a callback
 * (row y into out). Writes to fd; does not sync. */
enum mq_status mq_png_write_rows(int fd, uint32_t width, uint32_t height, unsigned channels, uint32_t ppm,
                                 enum mq_status (*row)(void *arg, uint32_t y, uint8_t *out,
                                                       struct mq_error *err),
                                 void *arg, struct mq_error *err);

#endif
