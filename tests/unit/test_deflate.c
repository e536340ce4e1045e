/* test_deflate: deflate against zlib's inflate, our use of libdeflate's against zlib's deflate, both on
 * what strips are and on what is hard; Huffman codes against the plain algorithm; and the bytes, which
 * must not change. */
#include "tests/unit/image_util.h"

#include <zlib.h>

#include "src/image/deflate.h"
#include "src/image/deflate_block.h"
#include "src/image/huffman.h"
#include "src/image/inflate.h"

#define MOST 300000u

static struct mq_deflate *deflater;
static struct libdeflate_decompressor *work;
static uint8_t input[MOST], raw[MOST];

static int setup(void **state)
{
	(void)state;
	deflater = mq_deflate_open();
	work = libdeflate_alloc_decompressor();
	return work && deflater && mq_deflate_prepare_small(deflater) ? 0 : 1;
}

static int teardown(void **state)
{
	(void)state;
	mq_deflate_close(deflater);
	libdeflate_free_decompressor(work);
	return 0;
}

static size_t zlib_inflate(const uint8_t *in, size_t n, bool last)
{
	z_stream z = { 0 };
	size_t made;

	assert_int_equal(inflateInit2(&z, -15), Z_OK);
	z.next_in = (uint8_t *)in;
	z.avail_in = (uInt)n;
	z.next_out = raw;
	z.avail_out = MOST;
	assert_int_equal(inflate(&z, Z_SYNC_FLUSH), last ? Z_STREAM_END : Z_OK);
	assert_int_equal(z.avail_in, 0);
	made = z.total_out;
	inflateEnd(&z);
	return made;
}

/* Deflates input[0 .. n-1] in each way and reads it with both; returns the bytes of fast or small. The
 * room is as small as it may be, so that a sanitizer sees what is written behind it. */
static size_t round_trip(size_t n, bool small)
{
	size_t room = mq_deflate_bound(n), bytes = 0;
	uint8_t *exact = malloc(n), *out = malloc(room);

	assert_non_null(exact);
	assert_non_null(out);
	memcpy(exact, input, n);
	for (int last = 0; last < 2; last++) {
		bytes = mq_deflate(deflater, exact, n, small, last, out);
		assert_true(bytes <= room);
		assert_int_equal(zlib_inflate(out, bytes, last), n);
		assert_memory_equal(raw, input, n);
		memset(raw, 0xa5, sizeof raw);
		assert_true(mq_inflate(work, out, bytes, last, raw, n));
		assert_memory_equal(raw, input, n);
		assert_false(mq_inflate(work, out, bytes, !last, raw, n));
		assert_false(mq_inflate(work, out, bytes, last, raw, n - 1));
	}
	free(exact);
	free(out);
	return bytes;
}

static void both(size_t n)
{
	size_t fast = round_trip(n, false), small = round_trip(n, true);

	assert_true(small <= fast + fast / 50 + 8);
}

/* Runs of every length, some side by side, at every place in a word. */
static void test_runs(void **state)
{
	uint64_t random = 3;
	size_t n = 0, length, k;

	(void)state;
	for (length = 1; length < 1100; length += length < 20 ? 1 : length % 258 < 8 || length % 258 > 250 ? 1 : 13) {
		for (k = 0; k < length; k++)
			input[n++] = (uint8_t)(length * 7);
		for (k = util_random(&random) % 9; k; k--)
			input[n++] = (uint8_t)util_random(&random);
		assert_true(n < MOST - 2000);
	}
	both(n);
	for (length = 1; length < 700; length++) {
		memset(input, 0, length);
		both(length);
		input[0] = 1; /* the run begins at the second byte */
		both(length);
	}
	memset(input, 9, MOST);
	both(MOST);
}

/* Noise is stored, in parts, and grows by no more than the bound; beside it runs are found again. */
static void test_noise(void **state)
{
	uint64_t random = 5;
	size_t i;

	(void)state;
	for (i = 0; i < MOST; i++)
		input[i] = (uint8_t)util_random(&random);
	for (i = 1; i < 70; i++)
		both(i);
	both(MQ_BLOCK_TOKENS - 1);
	both(MQ_BLOCK_TOKENS);
	both(MQ_BLOCK_TOKENS + 1);
	both(MOST);
	assert_true(round_trip(MOST, false) > MOST);
	memset(input + MQ_BLOCK_TOKENS - 2, 0, 5); /* a run across the end of a block */
	memset(input + 200000, 0, 60000);
	both(MOST);
	assert_true(round_trip(MOST, false) < MOST - 59000);
}

/* Counts like Fibonacci's numbers ask for codes of more than 15 bits. */
static void test_long_codes(void **state)
{
	size_t n = 0, a = 1, b = 1, next, k;
	unsigned symbol;

	(void)state;
	for (symbol = 0; n + a < MOST; symbol++) {
		for (k = 0; k < a; k++)
			input[n++] = (uint8_t)(symbol * 11);
		next = a + b;
		a = b;
		b = next;
	}
	assert_true(symbol > 20);
	for (k = n - 1; k > 0; k--) { /* no runs */
		size_t other = (k * 7919 + 13) % (k + 1);
		uint8_t swap = input[k];

		input[k] = input[other];
		input[other] = swap;
	}
	both(n);
}

/* What comes again is found only if it is to be small, as far back as the window reaches, and then is
 * much smaller. */
static void test_matches(void **state)
{
	static const uint32_t periods[] = { 1000, 5000, 20000, 32000, 32766, 32767, 32768, 32769, 32770 };
	uint64_t random = 9;
	size_t i, k;

	(void)state;
	for (k = 0; k < sizeof periods / sizeof periods[0]; k++) {
		for (i = 0; i < periods[k]; i++)
			input[i] = util_random(&random) % 8 ? 0 : (uint8_t)util_random(&random);
		for (; i < 100000; i++)
			input[i] = input[i - periods[k]];
		both(100000);
		if (periods[k] < MQ_WINDOW)
			assert_true(round_trip(100000, true) * 10 < round_trip(100000, false) * 9);
	}
}

/* Streams of zlib, with all kinds of blocks: what earlier versions wrote is read too. */
static void test_inflate_zlib(void **state)
{
	static const int strategies[] = { Z_DEFAULT_STRATEGY, Z_FILTERED, Z_RLE, Z_HUFFMAN_ONLY, Z_FIXED };
	static uint8_t out[MOST + 5000];
	uint64_t random = 1;
	size_t n = 150000, i;

	(void)state;
	for (i = 0; i < n; i++)
		input[i] = i % 3000 < 1000 ? 0 : i % 3000 < 1500 ? (uint8_t)util_random(&random)
		                                                  : (uint8_t)(i * i / 5000);
	for (i = 0; i < sizeof strategies / sizeof strategies[0]; i++)
		for (int level = 0; level < 10; level += 3)
			for (int last = 0; last < 2; last++) {
				z_stream z = { 0 };

				assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, -15, 1 + level % 9,
				                              strategies[i]),
				                 Z_OK);
				z.next_in = input;
				z.avail_in = (uInt)n;
				z.next_out = out;
				z.avail_out = sizeof out;
				assert_int_equal(deflate(&z, last ? Z_FINISH : Z_SYNC_FLUSH),
				                 last ? Z_STREAM_END : Z_OK);
				assert_true(mq_inflate(work, out, z.total_out, last, raw, n));
				assert_memory_equal(raw, input, n);
				deflateEnd(&z);
			}
}

/* Any damage: inflate agrees with zlib whether it is a stream, and on its bytes, or refuses more (what
 * does not end as a strip must). Truncated, it is none. */
static void test_damage(void **state)
{
	uint8_t out[4000], changed[4000], *exact;
	uint64_t random = 77;
	size_t n = 2000, i, bytes;
	unsigned round, right = 0;

	(void)state;
	for (i = 0; i < n; i++)
		input[i] = i % 100 < 60 ? 0 : (uint8_t)(util_random(&random) % 12);
	bytes = mq_deflate(deflater, input, n, true, true, out);
	assert_true(bytes < sizeof out);
	for (i = 0; i < bytes; i++) {
		exact = malloc(i ? i : 1);
		memcpy(exact, out, i);
		assert_false(mq_inflate(work, exact, i, true, raw, n));
		free(exact);
	}
	for (round = 0; round < 200000; round++) {
		z_stream z = { 0 };
		static uint8_t other[3000];
		int end;

		memcpy(changed, out, bytes);
		for (i = 0; i < 1 + round % 3; i++)
			changed[util_random(&random) % (round % 2 ? bytes : 40)] ^= (uint8_t)(1u << util_random(&random) % 8);
		if (!mq_inflate(work, changed, bytes, true, raw, n))
			continue;
		right++;
		assert_int_equal(inflateInit2(&z, -15), Z_OK);
		z.next_in = changed;
		z.avail_in = (uInt)bytes;
		z.next_out = other;
		z.avail_out = sizeof other;
		end = inflate(&z, Z_FINISH);
		/* zlib refuses incomplete codes even if nothing meets their gaps */
		if (end == Z_STREAM_END) {
			assert_int_equal(z.total_out, n);
			assert_memory_equal(raw, other, n);
		}
		inflateEnd(&z);
	}
	assert_true(right > 100);
}

/* Bits of a stream by hand, the lowest of each byte first; a Huffman code's first bit is its highest. */
static void append(uint8_t *out, unsigned *n, unsigned bits, unsigned count, bool code)
{
	for (unsigned i = 0; i < count; i++, ++*n)
		out[*n / 8] |= (uint8_t)((bits >> (code ? count - 1 - i : i) & 1) << *n % 8);
}

/* A literal, then three bytes at this distance (1 to 4), in a final block of fixed codes. */
static bool reaches_back(unsigned distance)
{
	uint8_t out[16] = { 0 };
	unsigned n = 0;

	append(out, &n, 1, 1, false);
	append(out, &n, 1, 2, false);
	append(out, &n, 0x30 + 'A', 8, true);
	append(out, &n, 1, 7, true);
	append(out, &n, distance - 1, 5, true);
	append(out, &n, 0, 7, true);
	return mq_inflate(work, out, (n + 7) / 8, true, raw + 8, 4);
}

static void test_refused(void **state)
{
	static const uint8_t cut[3] = { 1, 0xff, 0xff }; /* where zeros would make a length right */
	static uint8_t full[8 + MQ_INFLATE_TAIL] = { 0, 3, 0, 0xfc, 0xff, 7, 7, 7 };
	static uint8_t flush[13 + MQ_INFLATE_TAIL] = { 0, 3, 0, 0xfc, 0xff, 7, 7, 7, 0, 0, 0, 0xff, 0xff };
	static uint8_t reserved[2] = { 7, 0 };
	uint8_t exact[3];

	(void)state;
	assert_true(reaches_back(1));
	assert_memory_equal(raw + 8, "AAAA", 4);
	assert_false(reaches_back(2));
	assert_false(reaches_back(4));
	memcpy(exact, cut, 3);
	assert_false(mq_inflate(work, exact, 3, true, raw, 65535));
	assert_true(mq_inflate(work, flush, 13, false, raw, 3));
	assert_false(mq_inflate(work, full, 8, false, raw, 3)); /* no flush */
	assert_false(mq_inflate(work, reserved, 2, true, raw, 0));
	assert_false(mq_inflate(work, flush, 0, false, raw, 0));
}

/* The bits that the best code needs, by the plain algorithm: join the two rarest until one is left. */
static uint64_t best_bits(const uint32_t *counts, unsigned n)
{
	uint64_t left[MQ_HUFFMAN_MOST], bits = 0;
	unsigned used = 0, i, k;

	for (i = 0; i < n; i++)
		if (counts[i])
			left[used++] = counts[i];
	for (; used > 1; used--) {
		for (k = 0; k < 2; k++) /* the two least to the end */
			for (i = 0; i < used - 1 - k; i++)
				if (left[i] < left[used - 1 - k]) {
					uint64_t swap = left[i];

					left[i] = left[used - 1 - k];
					left[used - 1 - k] = swap;
				}
		left[used - 2] += left[used - 1];
		bits += left[used - 2];
	}
	return bits;
}

static void test_huffman(void **state)
{
	struct mq_code code[MQ_HUFFMAN_MOST];
	uint32_t counts[MQ_HUFFMAN_MOST];
	unsigned round, i, n, best = 0;
	uint64_t random = 4;

	(void)state;
	for (round = 0; round < 2000; round++) {
		unsigned limit = round % 3 ? 15 : 9, shift = util_random(&random) % 24, symbols = 0;
		unsigned longest = 0;
		uint64_t bits = 0, kraft = 0;

		n = 2 + util_random(&random) % (MQ_HUFFMAN_MOST - 1);
		for (i = 0; i < n; i++) {
			counts[i] = round % 5 && util_random(&random) % 3 ? 0 : util_random(&random) >> 8 >> shift;
			symbols += counts[i] != 0;
		}
		mq_huffman(counts, n, limit, code);
		for (i = 0; i < n; i++) {
			assert_true(code[i].length <= limit);
			assert_true(!counts[i] || code[i].length);
			assert_true(symbols < 2 || counts[i] || !code[i].length);
			bits += (uint64_t)counts[i] * code[i].length;
			longest = code[i].length > longest ? code[i].length : longest;
			kraft += code[i].length ? 1u << (limit - code[i].length) : 0;
		}
		assert_int_equal(kraft, 1u << limit);
		if (symbols > 1 && longest < limit) {
			assert_int_equal(bits, best_bits(counts, n));
			best++;
		} else if (symbols > 1) {
			assert_true(bits >= best_bits(counts, n));
		}
	}
	assert_true(best > 500);
}

/* Not that these bytes are right, but that they stay as they are, with every compiler and machine: a
 * picture is joined of strips that were made before and after a restart. Where they must change,
 * tile_magic in src/image/tileformat.c does too. */
static void test_bytes(void **state)
{
	static uint8_t out[MOST];
	uint8_t *picture = util_picture(400, 600, 1, 2);
	uint32_t sum[2];
	size_t i;

	(void)state;
	for (i = 0; i < 240000; i++)
		input[i] = i < 400 ? picture[i] : (uint8_t)(picture[i] - picture[i - 400]);
	for (int small = 0; small < 2; small++)
		sum[small] = (uint32_t)adler32(1, out, (uInt)mq_deflate(deflater, input, 240000, small, true, out));
	assert_int_equal(sum[0], 0x7e24be60);
	assert_int_equal(sum[1], 0x7063d659);
	free(picture);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs),         cmocka_unit_test(test_noise),
		cmocka_unit_test(test_long_codes),   cmocka_unit_test(test_matches),
		cmocka_unit_test(test_inflate_zlib), cmocka_unit_test(test_damage),
		cmocka_unit_test(test_refused),      cmocka_unit_test(test_huffman),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
