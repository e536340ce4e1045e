/* part: see part.h. */
#include "config.h"

#include "worker/part.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/alive.h"
#include "src/failpoint.h"
#include "src/image/npy.h"
#include "src/image/png.h"
#include "src/image/strip.h"
#include "src/image/tilefile.h"
#include "src/spare.h"
#include "src/writeall.h"

#define PNG_EXTRA 65536 /* what is in the file beside pixels */

const char *mq_part_source(enum mq_export_what what)
{
	static const char *const name[] = {"picture.png", "preview.png", "counts.mqc", "counts.mqc"};

	return name[what];
}

uint64_t mq_part_bytes(const struct mq_part *p, uint64_t whole)
{
	uint64_t raw, packed = 2 * whole; /* it may be packed less well than the picture was */

	if (p->what != MQ_EXPORT_PICTURE)
		return MQ_NPY_HEADER_MAX + (uint64_t)p->region.width * p->region.height * 4;
	raw = ((uint64_t)p->region.width * p->job->layout.channels + 1) * p->region.height;
	raw += raw / 256;
	return PNG_EXTRA + (raw < packed ? raw : packed);
}

/* Rows of the region, one after another; a strip is decoded when its first row is asked for. */
struct rows {
	struct mq_part *part;
	struct mq_png_reader *png;
	struct mq_countfile *counts;
	struct mq_strip_encoder *work;
	uint8_t *strip;      /* decoded */
	uint32_t strip_index; /* that it holds, or UINT32_MAX */
	size_t pixel_bytes;
};

static enum mq_status rows_get(void *arg, uint32_t y, uint8_t *out, struct mq_error *err)
{
	struct rows *r = arg;
	struct mq_part *p = r->part;
	const struct mq_layout *l = &p->job->layout;
	uint32_t row = p->region.y + y, index = row / l->strip_rows;
	size_t row_bytes = (size_t)l->width * r->pixel_bytes;
	uint32_t rows = mq_span_rows(l, (struct mq_span){index, 1}), adler;
	enum mq_status s = MQ_OK;

	if (atomic_load_explicit(&p->unwanted, memory_order_relaxed))
		return mq_fail(err, MQ_ECANCELLED, "the download was given up");
	if (r->strip_index != index) {
		r->strip_index = UINT32_MAX;
		if (r->png)
			s = mq_png_strip(r->png, r->work, index, r->strip, &adler, err);
		else
			s = mq_countfile_plane(r->counts, index, p->what == MQ_EXPORT_SMOOTH, r->strip,
			                       rows * row_bytes, err);
		if (s)
			return s;
		r->strip_index = index;
	}
	memcpy(out, r->strip + (row - index * l->strip_rows) * row_bytes + p->region.x * r->pixel_bytes,
	       p->region.width * r->pixel_bytes);
	mq_alive();
	atomic_store_explicit(&p->rows_done, y + 1, memory_order_relaxed);
	return MQ_OK;
}

static enum mq_status write_bytes(int fd, const void *bytes, size_t len, struct mq_error *err)
{
	int e = mq_failpoint("export-write");

	if (!e)
		e = mq_write_all(fd, bytes, len);
	return e ? mq_fail_errno(err, e, "writing a download's temporary file") : MQ_OK;
}

static enum mq_status write_npy(struct rows *r, struct mq_error *err)
{
	struct mq_part *p = r->part;
	size_t row_bytes = (size_t)p->region.width * 4;
	char header[MQ_NPY_HEADER_MAX];
	size_t n = mq_npy_header(header, p->what == MQ_EXPORT_SMOOTH, p->region.height, p->region.width);
	uint8_t *row = malloc(row_bytes);
	enum mq_status s;

	if (!row)
		return mq_fail(err, MQ_ENOMEM_HOST, "host memory: asked for %zu bytes for a row", row_bytes);
	s = write_bytes(p->fd, header, n, err);
	for (uint32_t y = 0; !s && y < p->region.height; y++) {
		s = rows_get(r, y, row, err);
		if (!s)
			s = write_bytes(p->fd, row, row_bytes, err);
	}
	free(row);
	return s;
}

/* Size and SHA-256 of what has been written. */
static enum mq_status seal(struct mq_part *p, struct mq_error *err)
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	unsigned char digest[32], *buffer = malloc(1 << 18);
	enum mq_status s = MQ_OK;
	uint64_t at = 0;
	ssize_t n;

	if (!md || !buffer || !EVP_DigestInit_ex(md, EVP_sha256(), NULL)) {
		s = mq_fail(err, MQ_ENOMEM_HOST, "no memory for a checksum");
		goto out;
	}
	while ((n = pread(p->fd, buffer, 1 << 18, (off_t)at)) > 0) {
		mq_alive();
		if (atomic_load_explicit(&p->unwanted, memory_order_relaxed)) {
			s = mq_fail(err, MQ_ECANCELLED, "the download was given up");
			goto out;
		}
		EVP_DigestUpdate(md, buffer, (size_t)n);
		at += (uint64_t)n;
	}
	if (n < 0) {
		s = mq_fail_errno(err, errno, "reading a download's temporary file");
		goto out;
	}
	EVP_DigestFinal_ex(md, digest, NULL);
	for (int i = 0; i < 32; i++)
		snprintf(p->sha256 + 2 * i, 3, "%02x", digest[i]);
	p->bytes = at;
out:
	EVP_MD_CTX_free(md);
	free(buffer);
	return s;
}

enum mq_status mq_part_make(struct mq_part *p, struct mq_error *err)
{
	const struct mq_job *job = p->job->job;
	const struct mq_layout *l = &p->job->layout;
	struct mq_png_header header = {job->width, job->height, l->channels, job->ppm, p->job->text};
	struct rows r = {.part = p, .strip_index = UINT32_MAX};
	uint32_t strip_rows = l->strip_rows < l->height ? l->strip_rows : l->height;
	enum mq_status s = MQ_OK;
	int source = -1;

	r.pixel_bytes = p->what == MQ_EXPORT_PICTURE ? l->channels : 4;
	r.strip = mq_spare_malloc((size_t)strip_rows * l->width * r.pixel_bytes);
	if (!r.strip)
		return mq_fail(err, MQ_ENOMEM_HOST, "host memory: asked for %zu bytes for a strip",
		               (size_t)strip_rows * l->width * r.pixel_bytes);
	if (p->what == MQ_EXPORT_PICTURE) {
		source = openat(p->source_dir, mq_part_source(p->what),
		                O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		if (source < 0)
			s = mq_fail_errno(err, errno, "the picture of job %lld", (long long)p->job->id);
		if (!s)
			s = mq_png_open(source, &header, l, &r.png, err);
		if (!s)
			s = mq_strip_encoder_open(strip_rows * ((size_t)l->width * l->channels + 1), &r.work, err);
		if (!s)
			s = mq_png_write_rows(p->fd, p->region.width, p->region.height, l->channels, job->ppm,
			                      rows_get, &r, err);
	} else {
		s = mq_countfile_open(p->source_dir, mq_part_source(p->what), p->job->id, l->strips, &r.counts, err);
		if (!s)
			s = write_npy(&r, err);
	}
	if (!s)
		s = seal(p, err);
	mq_strip_encoder_close(r.work);
	mq_png_close(r.png);
	mq_countfile_close(r.counts);
	if (source >= 0)
		close(source);
	free(r.strip);
	return s;
}
