/* preview: see preview.h. Fed by the threads that read a picture back at the end of assembly. */
#include "config.h"

#include "src/image/preview.h"

#include <pthread.h>
#include <stdlib.h>

#include "src/failpoint.h"
#include "src/image/png_out.h"

#define SAMPLES_MAX 4u

struct mq_preview {
	uint32_t width, height; /* of the picture */
	uint32_t factor;
	uint32_t columns, rows; /* of the preview */
	unsigned channels;
	uint32_t column[MQ_PREVIEW_SIDE]
		       [SAMPLES_MAX];    /* the columns of the samples of each column */
	uint8_t across[MQ_PREVIEW_SIDE]; /* and how many they are */
	uint16_t decode[256];
	uint8_t encode[65536];
	pthread_mutex_t lock; /* guards sums */
	uint32_t *sums;       /* linear; at most 16 samples of 65535 */
};

/* The pixels of a side that preview pixel `index` is the mean of, evenly spread; returns how many. */
static unsigned spread(uint32_t side, uint32_t factor, uint32_t index, uint32_t at[SAMPLES_MAX])
{
	uint32_t first = index * factor, block = side - first < factor ? side - first : factor;
	unsigned n = block < SAMPLES_MAX ? block : SAMPLES_MAX, k;

	for (k = 0; k < n; k++)
		at[k] = first + (2 * k + 1) * block / (2 * n);
	return n;
}

enum mq_status mq_preview_open(uint32_t width, uint32_t height, unsigned channels,
                               const struct mq_shade *shade, struct mq_preview **out,
                               struct mq_error *err)
{
	uint32_t side = width > height ? width : height;
	struct mq_preview *p = mq_failpoint("preview-alloc") ? NULL : calloc(1, sizeof *p);
	int error = p ? pthread_mutex_init(&p->lock, NULL) : 0;
	unsigned i;

	if (!p || error) {
		free(p);
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a preview");
	}
	p->width = width;
	p->height = height;
	p->channels = channels;
	p->factor = (side - 1) / MQ_PREVIEW_SIDE + 1;
	p->columns = (width - 1) / p->factor + 1;
	p->rows = (height - 1) / p->factor + 1;
	for (i = 0; i < 256; i++)
		p->decode[i] = shade->decode[i];
	for (i = 0; i < 65536; i++)
		p->encode[i] = shade->encode[i];
	for (i = 0; i < p->columns; i++)
		p->across[i] = (uint8_t)spread(width, p->factor, i, p->column[i]);
	p->sums = calloc((size_t)p->columns * p->rows * channels, sizeof *p->sums);
	if (!p->sums) {
		(void)mq_fail(err, MQ_ENOMEM_HOST, "no memory for a preview of %u x %u", p->columns,
		              p->rows);
		mq_preview_close(p);
		return MQ_ENOMEM_HOST;
	}
	*out = p;
	return MQ_OK;
}

void mq_preview_close(struct mq_preview *preview)
{
	if (!preview)
		return;
	(void)pthread_mutex_destroy(&preview->lock);
	free(preview->sums);
	free(preview);
}

/* Adds one row of the picture to a row of sums; inlined for each number of channels. */
static inline __attribute__((always_inline)) void
add_samples(const struct mq_preview *p, const uint8_t *pixels, uint32_t *sums, unsigned channels)
{
	uint32_t x, sum[3];
	unsigned k, c;

	for (x = 0; x < p->columns; x++) {
		for (c = 0; c < channels; c++)
			sum[c] = sums[c];
		for (k = 0; k < p->across[x]; k++) {
			const uint8_t *pixel = pixels + (size_t)p->column[x][k] * channels;

			for (c = 0; c < channels; c++)
				sum[c] += p->decode[pixel[c]];
		}
		for (c = 0; c < channels; c++)
			*sums++ = sum[c];
	}
}

static void add_row(const struct mq_preview *p, const uint8_t *pixels, uint32_t *sums)
{
	if (p->channels == 1)
		add_samples(p, pixels, sums, 1);
	else
		add_samples(p, pixels, sums, 3);
}

void mq_preview_add(struct mq_preview *preview, uint32_t row0, uint32_t rows, const uint8_t *pixels)
{
	size_t row_bytes = (size_t)preview->width * preview->channels;
	size_t length = (size_t)preview->columns * preview->channels, i;
	uint32_t local[MQ_PREVIEW_SIDE * 3], at[SAMPLES_MAX], y;
	unsigned n, k;

	for (y = row0 / preview->factor; y <= (row0 + rows - 1) / preview->factor; y++) {
		uint32_t *sums = preview->sums + y * length;

		for (i = 0; i < length; i++)
			local[i] = 0;
		n = spread(preview->height, preview->factor, y, at);
		for (k = 0; k < n; k++)
			if (at[k] >= row0 && at[k] - row0 < rows)
				add_row(preview, pixels + (at[k] - row0) * row_bytes, local);
		(void)pthread_mutex_lock(&preview->lock);
		for (i = 0; i < length; i++)
			sums[i] += local[i];
		(void)pthread_mutex_unlock(&preview->lock);
	}
}

static enum mq_status give_row(void *arg, uint32_t y, uint8_t *out, struct mq_error *err)
{
	const struct mq_preview *p = arg;
	const uint32_t *sums = p->sums + (size_t)y * p->columns * p->channels;
	uint32_t at[SAMPLES_MAX], x, samples;
	unsigned down = spread(p->height, p->factor, y, at), c;

	(void)err;
	for (x = 0; x < p->columns; x++) {
		samples = down * p->across[x];
		for (c = 0; c < p->channels; c++)
			*out++ = p->encode[(*sums++ + samples / 2) / samples];
	}
	return MQ_OK;
}

enum mq_status mq_preview_write(struct mq_preview *preview, int fd, uint32_t ppm, uint64_t *bytes,
                                struct mq_error *err)
{
	const struct mq_png_header header = { preview->columns, preview->rows, preview->channels,
		                              ppm, NULL };

	return mq_png_rows(fd, &header, give_row, preview, bytes, err);
}
