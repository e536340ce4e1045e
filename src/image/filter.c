/* filter: see filter.h. */
#include "src/image/filter.h"

#include <string.h>

#define FILTER_SUB 1
#define FILTER_UP 2

typedef uint8_t bytes16 __attribute__((vector_size(16)));

static inline bytes16 load(const uint8_t *p)
{
	bytes16 v;

	memcpy(&v, p, sizeof v);
	return v;
}

static inline void store(uint8_t *p, bytes16 v)
{
	memcpy(p, &v, sizeof v);
}

static void subtract(uint8_t *restrict out, const uint8_t *a, const uint8_t *b, size_t n)
{
	size_t i = 0;

	for (; n - i >= 32; i += 32) {
		store(out + i, load(a + i) - load(b + i));
		store(out + i + 16, load(a + i + 16) - load(b + i + 16));
	}
	for (; i < n; i++)
		out[i] = (uint8_t)(a[i] - b[i]);
}

static void add(uint8_t *restrict out, const uint8_t *a, const uint8_t *b, size_t n)
{
	size_t i = 0;

	for (; n - i >= 32; i += 32) {
		store(out + i, load(a + i) + load(b + i));
		store(out + i + 16, load(a + i + 16) + load(b + i + 16));
	}
	for (; i < n; i++)
		out[i] = (uint8_t)(a[i] + b[i]);
}

/* Sub's way back is a running sum: one row a strip, so plain loops will do. */
static void running_sum1(const uint8_t *in, size_t n, uint8_t *out)
{
	uint8_t left = 0;
	size_t i;

	for (i = 0; i < n; i++)
		out[i] = left = (uint8_t)(left + in[i]);
}

static void running_sum3(const uint8_t *in, size_t n, uint8_t *out)
{
	uint8_t r = 0, g = 0, b = 0;
	size_t i;

	for (i = 0; i + 3 <= n; i += 3) {
		out[i] = r = (uint8_t)(r + in[i]);
		out[i + 1] = g = (uint8_t)(g + in[i + 1]);
		out[i + 2] = b = (uint8_t)(b + in[i + 2]);
	}
}

void mq_filter_apply(const uint8_t *pixels, size_t row_bytes, uint32_t rows, unsigned channels,
                     uint8_t *out)
{
	const uint8_t *row = pixels;
	uint32_t y;

	out[0] = FILTER_SUB;
	memcpy(out + 1, row, channels);
	subtract(out + 1 + channels, row + channels, row, row_bytes - channels);
	for (y = 1; y < rows; y++) {
		out += 1 + row_bytes;
		row += row_bytes;
		out[0] = FILTER_UP;
		subtract(out + 1, row, row - row_bytes, row_bytes);
	}
}

bool mq_filter_undo(const uint8_t *filtered, size_t row_bytes, uint32_t rows, unsigned channels,
                    uint8_t *pixels)
{
	uint32_t y;

	if (filtered[0] != FILTER_SUB)
		return false;
	if (channels == 1)
		running_sum1(filtered + 1, row_bytes, pixels);
	else
		running_sum3(filtered + 1, row_bytes, pixels);
	for (y = 1; y < rows; y++) {
		filtered += 1 + row_bytes;
		pixels += row_bytes;
		if (filtered[0] != FILTER_UP)
			return false;
		add(pixels, filtered + 1, pixels - row_bytes, row_bytes);
	}
	return true;
}
