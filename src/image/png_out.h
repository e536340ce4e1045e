/* png_out: libpng's writer over a sink, with its longjmp errors turned into results in one place.
 * Used by png (strips), png_rows (small pictures) and, for the size it gives, preview. */
#ifndef MQ_PNG_OUT_H
#define MQ_PNG_OUT_H

#include <png.h>
#include <stdbool.h>

#include "src/image/png.h"
#include "src/image/sink.h"

struct mq_png_out {
	png_structp png;
	png_infop info;
	struct mq_sink sink;
	bool no_memory;        /* libpng asked for memory and got none */
	enum mq_status status; /* of the sink, when that is why libpng gave up */
	struct mq_error error;
};

/* Signature, IHDR, sRGB, pHYs and, with a job text, iTXt. out must not move afterwards. */
enum mq_status mq_png_out_open(struct mq_png_out *out, int fd, const struct mq_png_header *header,
                               bool hash, struct mq_error *err);
void mq_png_out_close(struct mq_png_out *out);
/* Calls step, which calls libpng; a longjmp out of it ends here. */
enum mq_status mq_png_out_run(struct mq_png_out *out,
                              void (*step)(struct mq_png_out *out, void *arg), void *arg,
                              struct mq_error *err);

/* mq_png_write_rows, with the size of the file; header without a job text. */
enum mq_status mq_png_rows(int fd, const struct mq_png_header *header,
                           enum mq_status (*row)(void *arg, uint32_t y, uint8_t *out,
                                                 struct mq_error *err),
                           void *arg, uint64_t *bytes, struct mq_error *err);

#endif
