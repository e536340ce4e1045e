/* png_rows: a small picture (preview, region) row by row through libpng's ordinary writer. */
#include "src/image/png_out.h"

#include <stdlib.h>

/* These pictures are made while somebody waits: at level 1 with filter Up they are a little larger
 * and done in a fraction of the default's time. */
#define ROWS_LEVEL 1

static void set_up(struct mq_png_out *out, void *arg)
{
	(void)arg;
	png_set_compression_level(out->png, ROWS_LEVEL);
	png_set_filter(out->png, PNG_FILTER_TYPE_BASE, PNG_FILTER_UP);
}

static void put_row(struct mq_png_out *out, void *arg)
{
	png_write_row(out->png, arg);
}

static void put_end(struct mq_png_out *out, void *arg)
{
	(void)arg;
	png_write_end(out->png, NULL);
}

enum mq_status mq_png_rows(int fd, const struct mq_png_header *header,
                           enum mq_status (*row)(void *arg, uint32_t y, uint8_t *out,
                                                 struct mq_error *err),
                           void *arg, uint64_t *bytes, struct mq_error *err)
{
	size_t row_bytes = (size_t)header->width * header->channels;
	uint8_t *pixels = malloc(row_bytes);
	struct mq_png_out out;
	enum mq_status status;
	uint32_t y;

	if (!pixels)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a row of %zu bytes", row_bytes);
	status = mq_png_out_open(&out, fd, header, false, err);
	if (status)
		goto out;
	status = mq_png_out_run(&out, set_up, NULL, err);
	for (y = 0; y < header->height && status == MQ_OK; y++) {
		status = row(arg, y, pixels, err);
		if (status == MQ_OK)
			status = mq_png_out_run(&out, put_row, pixels, err);
	}
	if (status == MQ_OK)
		status = mq_png_out_run(&out, put_end, NULL, err);
	if (status == MQ_OK)
		status = mq_sink_flush(&out.sink, err);
	if (status == MQ_OK && bytes)
		*bytes = mq_sink_offset(&out.sink);
	mq_png_out_close(&out);
out:
	free(pixels);
	return status;
}

enum mq_status
mq_png_write_rows(int fd, uint32_t width, uint32_t height, unsigned channels, uint32_t ppm,
                  enum mq_status (*row)(void *arg, uint32_t y, uint8_t *out, struct mq_error *err),
                  void *arg, struct mq_error *err)
{
	const struct mq_png_header header = { width, height, channels, ppm, NULL };

	return mq_png_rows(fd, &header, row, arg, NULL, err);
}
