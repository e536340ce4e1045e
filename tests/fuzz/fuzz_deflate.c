/* fuzz_deflate: any bytes as a strip, packed and read back by zlib and as strips are; and the same bytes as
 * a strip's deflate stream. The first byte says whether it is its picture's last, and whether to pack it
 * small. */
#include <stdlib.h>
#include <zlib.h>

#include "src/image/deflate.h"
#include "src/image/inflate.h"
#include "tests/fuzz/fuzz.h"

#define MOST 70000u

static void check_zlib(const uint8_t *packed, size_t bytes, const uint8_t *in, size_t n, bool last)
{
	uint8_t *back = malloc(n + 1);
	z_stream z = {0};

	FUZZ_CHECK(back && inflateInit2(&z, -15) == Z_OK);
	z.next_in = (uint8_t *)packed;
	z.avail_in = (uInt)bytes;
	z.next_out = back;
	z.avail_out = (uInt)n + 1;
	FUZZ_CHECK(inflate(&z, Z_SYNC_FLUSH) == (last ? Z_STREAM_END : Z_OK));
	FUZZ_CHECK(z.avail_in == 0 && z.total_out == n && memcmp(back, in, n) == 0);
	inflateEnd(&z);
	free(back);
}

static void there_and_back(struct libdeflate_decompressor *work, const uint8_t *in, size_t n, bool small, bool last)
{
	static struct mq_deflate *d;
	uint8_t *out = malloc(mq_deflate_bound(n) + MQ_INFLATE_TAIL), *back = malloc(n);
	size_t bytes;

	if (!d)
		d = mq_deflate_open();
	FUZZ_CHECK(d && out && back && mq_deflate_prepare_small(d));
	bytes = mq_deflate(d, in, n, small, last, out);
	FUZZ_CHECK(bytes <= mq_deflate_bound(n));
	FUZZ_CHECK(mq_inflate(work, out, bytes, last, back, n) && memcmp(in, back, n) == 0);
	check_zlib(out, bytes, in, n, last);
	free(out);
	free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t made[MOST];
	static struct libdeflate_decompressor *work;
	uint8_t *stream;
	bool last;

	if (size < 2)
		return 0;
	last = data[0] & 1;
	if (!work)
		work = libdeflate_alloc_decompressor();
	stream = malloc(size - 1 + MQ_INFLATE_TAIL);
	FUZZ_CHECK(work && stream);
	memcpy(stream, data + 1, size - 1);
	if (mq_inflate(work, stream, size - 1, last, made, MOST))
		fuzz_touch(made, MOST);
	free(stream);
	there_and_back(work, data + 1, size - 1, data[0] & 2, last);
	return 0;
}
