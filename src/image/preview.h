/* preview: a picture made smaller, at most MQ_PREVIEW_SIDE a side, from strips as they are decoded.
 *
 * One preview pixel is the mean, in linear light, of up to 4 x 4 samples spread evenly over its block
 * of f x f pixels, f = ceil(max(W,H) / MQ_PREVIEW_SIDE). Strips may come in any order and from any
 * thread; memory is that of the preview alone. */
#ifndef MQ_PREVIEW_H
#define MQ_PREVIEW_H

#include <stdint.h>

#include "src/scene.h"
#include "src/status.h"

#define MQ_PREVIEW_SIDE 2048u

struct mq_preview;
enum mq_status mq_preview_open(uint32_t width, uint32_t height, unsigned channels,
                               const struct mq_shade *shade, struct mq_preview **out,
                               struct mq_error *err);
void mq_preview_close(struct mq_preview *preview);
/* rows of the picture from row0 on. Thread-safe. */
void mq_preview_add(struct mq_preview *preview, uint32_t row0, uint32_t rows, const uint8_t *pixels);
/* Writes the PNG to fd; all rows have been added. Does not sync. */
enum mq_status mq_preview_write(struct mq_preview *preview, int fd, uint32_t ppm, uint64_t *bytes,
                                struct mq_error *err);

#endif
