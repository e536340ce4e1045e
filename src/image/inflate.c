/* inflate: see inflate.h. */
#include "src/image/inflate.h"

#include <string.h>

static const uint8_t flush[4] = { 0, 0, 0xff, 0xff };
static const uint8_t empty[MQ_INFLATE_TAIL] = { 3, 0 }; /* an empty final block */

bool mq_inflate(struct libdeflate_decompressor *d, uint8_t *in, size_t n, bool last, uint8_t *out,
                size_t bytes)
{
	size_t taken, made;

	/* libdeflate reads whole streams only: one that ends in a sync flush gets a final block. */
	if (!last) {
		if (n < sizeof flush || memcmp(in + n - sizeof flush, flush, sizeof flush) != 0)
			return false;
		memcpy(in + n, empty, sizeof empty);
		n += sizeof empty;
	}
	return libdeflate_deflate_decompress_ex(d, in, n, out, bytes, &taken, &made) == LIBDEFLATE_SUCCESS &&
	       taken == n && made == bytes;
}
