/* huffman: see huffman.h. Equal counts are ordered by symbol, so the code depends on the counts alone. */
#include "src/image/huffman.h"

#include <string.h>

/* What is sorted: count, then symbol. */
#define KEY(count, symbol) ((uint64_t)(count) << 16 | (symbol))
#define KEY_SYMBOL(key) ((unsigned)((key) & 0xffff))
#define KEY_COUNT(key) ((uint32_t)((key) >> 16))

/* Shell's sort: few keys, and qsort would allocate. */
static void sort(uint64_t *key, unsigned n)
{
	static const unsigned gaps[] = { 57, 23, 10, 4, 1 };
	unsigned g, i, k;

	for (g = 0; g < sizeof gaps / sizeof gaps[0]; g++)
		for (i = gaps[g]; i < n; i++) {
			uint64_t moved = key[i];

			for (k = i; k >= gaps[g] && key[k - gaps[g]] > moved; k -= gaps[g])
				key[k] = key[k - gaps[g]];
			key[k] = moved;
		}
}

/* The rarer of the next leaf and the next tree, among those that have no parent yet. */
static uint32_t take(uint32_t *a, unsigned n, unsigned *leaf, unsigned *tree, unsigned next)
{
	uint32_t weight;

	if (*leaf >= n || (*tree < next && a[*tree] < a[*leaf])) {
		weight = a[*tree];
		a[(*tree)++] = next;
		return weight;
	}
	return a[(*leaf)++];
}

/* Moffat and Katajainen, in place: n >= 2 ascending counts become the depths of their leaves, which
 * descend. Trees are made in ascending order too, so the next one to be joined is the oldest. */
static void depths(uint32_t *a, unsigned n)
{
	unsigned leaf = 0, tree = 0, next, inner, left = 1;
	uint32_t depth;

	for (next = 0; next < n - 1; next++) {
		uint32_t weight = take(a, n, &leaf, &tree, next);

		a[next] = weight + take(a, n, &leaf, &tree, next);
	}
	a[n - 2] = 0; /* the root; a[i] of the others is its parent, which comes later */
	for (next = n - 2; next-- > 0;)
		a[next] = a[a[next]] + 1;
	inner = n - 1;
	for (next = n, depth = 0; next > 0; depth++) {
		unsigned here = 0;

		while (inner > 0 && a[inner - 1] == depth) {
			inner--;
			here++;
		}
		for (; left > here; left--)
			a[--next] = depth;
		left = 2 * here;
	}
}

/* How many codes of each length; what is longer than the limit is pulled up, and shorter ones lengthened
 * until there is room for all again. */
static void count_lengths(const uint32_t *depth, unsigned n, unsigned limit, unsigned *per)
{
	unsigned i, l, room = 0;

	for (i = 0; i < n; i++)
		per[depth[i] < limit ? depth[i] : limit]++;
	for (l = 1; l <= limit; l++)
		room += per[l] << (limit - l);
	for (; room > 1u << limit; room--) {
		for (l = limit - 1; per[l] == 0; l--)
			;
		per[limit]--;
		per[l]--;
		per[l + 1] += 2;
	}
}

static uint16_t reversed(unsigned code, unsigned length)
{
	unsigned out = 0;

	for (; length; length--, code >>= 1)
		out = out << 1 | (code & 1);
	return (uint16_t)out;
}

void mq_huffman(const uint32_t *counts, unsigned n, unsigned limit, struct mq_code *codes)
{
	unsigned per[MQ_HUFFMAN_LIMIT + 1] = { 0 }, next[MQ_HUFFMAN_LIMIT + 1], used = 0, i, k, l;
	uint64_t key[MQ_HUFFMAN_MOST];
	uint32_t a[MQ_HUFFMAN_MOST];
	unsigned code = 0;

	for (i = 0; i < n; i++)
		if (counts[i])
			key[used++] = KEY(counts[i], i);
	for (i = 0; used < 2; i++)
		if (!counts[i])
			key[used++] = KEY(1, i);
	sort(key, used);
	for (i = 0; i < used; i++)
		a[i] = KEY_COUNT(key[i]);
	depths(a, used);
	count_lengths(a, used, limit, per);
	memset(codes, 0, n * sizeof *codes);
	for (l = 1, i = used; l <= limit; l++)
		for (k = per[l]; k; k--)
			codes[KEY_SYMBOL(key[--i])].length = (uint16_t)l;
	for (l = 1; l <= limit; l++) {
		next[l] = code;
		code = (code + per[l]) << 1;
	}
	for (i = 0; i < n; i++)
		if (codes[i].length)
			codes[i].bits = reversed(next[codes[i].length]++, codes[i].length);
}
