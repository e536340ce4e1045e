/* npy: see npy.h. The worker puts this header before the planes that it sends. */
#include "src/image/npy.h"

#include <stdio.h>
#include <string.h>

#define MAGIC_BYTES 10 /* "\x93NUMPY", version 1.0, 16-bit length of the text that follows */

size_t mq_npy_header(char out[MQ_NPY_HEADER_MAX], bool is_float, uint32_t height, uint32_t width)
{
	char text[MQ_NPY_HEADER_MAX];
	int n = snprintf(text, sizeof text,
	                 "{'descr': '<%c4', 'fortran_order': False, 'shape': (%u, %u), }",
	                 is_float ? 'f' : 'u', height, width);
	size_t total = (MAGIC_BYTES + (size_t)n + 1 + 63) / 64 * 64;
	size_t padded = total - MAGIC_BYTES;

	memcpy(out, "\x93NUMPY\x01\x00", 8);
	out[8] = (char)(padded & 0xff);
	out[9] = (char)(padded >> 8);
	memset(out + MAGIC_BYTES, ' ', padded);
	memcpy(out + MAGIC_BYTES, text, (size_t)n);
	out[total - 1] = '\n';
	return total;
}
