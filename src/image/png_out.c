/* png_out: see png_out.h. Functions that libpng may leave by longjmp hold nothing that must be freed. */
#include "src/image/png_out.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "src/pngtext.h"

static void on_error(png_structp png, png_const_charp text)
{
	struct mq_png_out *out = png_get_error_ptr(png);

	if (out->status == MQ_OK)
		(void)mq_fail(&out->error, MQ_EINTERNAL, "libpng: %s", text);
	png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
	(void)png;
	(void)text;
}

static void *on_malloc(png_structp png, png_alloc_size_t bytes)
{
	struct mq_png_out *out = png_get_mem_ptr(png);
	void *p = malloc(bytes);

	if (!p)
		out->no_memory = true;
	return p;
}

static void on_free(png_structp png, void *p)
{
	(void)png;
	free(p);
}

static void on_write(png_structp png, png_bytep data, size_t bytes)
{
	struct mq_png_out *out = png_get_io_ptr(png);

	out->status = mq_sink_put(&out->sink, data, bytes, &out->error);
	if (out->status)
		png_error(png, "write");
}

/* The sink is flushed by its owner. */
static void on_flush(png_structp png)
{
	(void)png;
}

enum mq_status mq_png_out_run(struct mq_png_out *out,
                              void (*step)(struct mq_png_out *out, void *arg), void *arg,
                              struct mq_error *err)
{
	if (setjmp(png_jmpbuf(out->png)) == 0) {
		step(out, arg);
		return MQ_OK;
	}
	if (out->status)
		return mq_fail(err, out->status, "%s", out->error.text);
	if (out->no_memory)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory to write a PNG");
	return mq_fail(err, MQ_EINTERNAL, "%s", out->error.text);
}

static void put_info(struct mq_png_out *out, void *arg)
{
	const struct mq_png_header *h = arg;
	png_text text;

	/* libpng refuses sides over 1,000,000 unless told, also when writing. */
	png_set_user_limits(out->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
	png_set_write_fn(out->png, out, on_write, on_flush);
	png_set_IHDR(out->png, out->info, h->width, h->height, 8,
	             h->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB,
	             PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_set_sRGB(out->png, out->info, PNG_sRGB_INTENT_PERCEPTUAL);
	png_set_pHYs(out->png, out->info, h->ppm, h->ppm, PNG_RESOLUTION_METER);
	if (h->job_text) {
		char keyword[] = MQ_PNGTEXT_KEYWORD;

		memset(&text, 0, sizeof text);
		text.compression = PNG_ITXT_COMPRESSION_NONE;
		text.key = keyword;
		text.text = (char *)h->job_text; /* copied by libpng */
		text.itxt_length = strlen(h->job_text);
		png_set_text(out->png, out->info, &text, 1);
	}
	png_write_info(out->png, out->info);
}

enum mq_status mq_png_out_open(struct mq_png_out *out, int fd, const struct mq_png_header *header,
                               bool hash, struct mq_error *err)
{
	enum mq_status status;

	memset(out, 0, sizeof *out);
	status = mq_sink_open(&out->sink, fd, 0, hash, "png-write", "the picture", err);
	if (status)
		return status;
	out->png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, out, on_error, on_warning, out,
	                                     on_malloc, on_free);
	if (out->png)
		out->info = png_create_info_struct(out->png);
	if (!out->info)
		status = mq_fail(err, MQ_ENOMEM_HOST, "no memory to write a PNG");
	else
		status = mq_png_out_run(out, put_info, (void *)header, err);
	if (status)
		mq_png_out_close(out);
	return status;
}

void mq_png_out_close(struct mq_png_out *out)
{
	if (out->png)
		png_destroy_write_struct(&out->png, &out->info);
	mq_sink_close(&out->sink);
}
