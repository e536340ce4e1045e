/* deflate: see deflate.h. A block is gathered first, literals and runs, then gets its codes and is
 * written. */
#include "config.h"

#include "src/image/deflate.h"

#include <stdlib.h>

#include "src/failpoint.h"
#include "src/image/deflate_block.h"
#include "src/image/huffman.h"

#define STORED_MOST 65535u
#define CODE_LENGTHS 19u /* symbols of the code in which the other codes' lengths are sent */
#define CODE_LENGTH_LIMIT 7u

/* How the lengths of the other two codes are sent. */
struct head {
	unsigned symbols, distances; /* sent of each */
	unsigned codes;              /* sent of code */
	unsigned n;
	uint8_t symbol[MQ_SYMBOLS + MQ_DISTANCES], extra[MQ_SYMBOLS + MQ_DISTANCES];
	struct mq_code code[CODE_LENGTHS];
	uint64_t bits;
};

struct bits {
	uint64_t held;
	unsigned n; /* held; below 8 after drain() */
	uint8_t *out;
};

/* A code with its extra bits behind it. */
struct long_code {
	uint32_t bits, length;
};

struct mq_deflate {
	struct mq_block block;
	struct mq_matcher *matcher; /* NULL until something is to be small */
	struct head head;
	struct mq_code symbol[MQ_SYMBOLS], distance[MQ_DISTANCES];
	struct long_code length[MQ_MATCH_MOST + 1];
};

struct mq_deflate *mq_deflate_open(void)
{
	return calloc(1, sizeof(struct mq_deflate));
}

void mq_deflate_close(struct mq_deflate *d)
{
	if (d)
		mq_matcher_close(d->matcher);
	free(d);
}

bool mq_deflate_prepare_small(struct mq_deflate *d)
{
	if (!d->matcher)
		d->matcher = mq_failpoint("strip-alloc") ? NULL : mq_matcher_open();
	return d->matcher != NULL;
}

/* Blocks that codes do not make smaller are stored: 5 bytes for each 65535, and as much for the block
 * itself, of which none but the last is shorter than MQ_BLOCK_TOKENS. */
size_t mq_deflate_bound(size_t n)
{
	return n + n / 2048 + 64;
}

/* At most 56 bits between two calls of drain. */
static inline void put(struct bits *w, uint64_t bits, unsigned n)
{
	w->held |= bits << w->n;
	w->n += n;
}

/* Writes 8 bytes, and keeps those that are whole. */
static inline void drain(struct bits *w)
{
	memcpy(w->out, &w->held, sizeof w->held);
	w->out += w->n / 8;
	w->held >>= w->n & ~7u;
	w->n &= 7;
}

static void fill_byte(struct bits *w)
{
	w->n = (w->n + 7) & ~7u;
	drain(w);
}

void mq_block_begin(struct mq_block *b, const uint8_t *in)
{
	b->in = in;
	b->bytes = 0;
	b->tokens = b->seqs = 0;
	memset(b->symbol, 0, sizeof b->symbol);
	memset(b->distance, 0, sizeof b->distance);
}

void mq_block_add(struct mq_block *b, struct mq_seq seq)
{
	const uint8_t *in = b->in + b->bytes;
	uint32_t whole = seq.length / MQ_MATCH_MOST, rest = seq.length % MQ_MATCH_MOST, i;

	for (i = 0; i < seq.literals; i++)
		b->symbol[in[i]]++;
	if (seq.length) {
		b->symbol[MQ_SYMBOLS - 1] += whole;
		if (rest)
			b->symbol[MQ_LITERALS + 1 + mq_length_symbol(rest)]++;
		b->distance[mq_distance_symbol(seq.distance)] += whole + (rest != 0);
	}
	b->seq[b->seqs++] = seq;
	b->tokens += seq.literals + (seq.length != 0);
	b->bytes += seq.literals + seq.length;
}

/* The lengths of both codes, with repeats (RFC 1951, 3.2.7). */
static void head_symbols(struct head *h, const uint8_t *lengths, unsigned n)
{
	unsigned i, repeat;

	memset(h->extra, 0, sizeof h->extra);
	for (i = 0, h->n = 0; i < n; i += repeat) {
		unsigned length = lengths[i], most = length ? 7 : 138;

		for (repeat = 1; repeat < most && i + repeat < n && lengths[i + repeat] == length;)
			repeat++;
		if (!length && repeat >= 3) {
			h->symbol[h->n] = repeat < 11 ? 17 : 18;
			h->extra[h->n++] = (uint8_t)(repeat - (repeat < 11 ? 3 : 11));
			continue;
		}
		h->symbol[h->n++] = (uint8_t)length;
		if (!length || repeat < 4) {
			repeat = 1;
		} else {
			h->symbol[h->n] = 16;
			h->extra[h->n++] = (uint8_t)(repeat - 4);
		}
	}
}

static unsigned head_extra(unsigned symbol)
{
	return symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
}

static const uint8_t code_order[CODE_LENGTHS] = { 16, 17, 18, 0, 8,  7, 9,  6, 10, 5,
	                                          11, 4,  12, 3, 13, 2, 14, 1, 15 };

static void head_make(struct head *h, const struct mq_code *symbol, const struct mq_code *distance)
{
	uint8_t lengths[MQ_SYMBOLS + MQ_DISTANCES];
	uint32_t counts[CODE_LENGTHS] = { 0 };
	unsigned i;

	h->symbols = MQ_SYMBOLS;
	while (!symbol[h->symbols - 1].length)
		h->symbols--;
	h->distances = MQ_DISTANCES;
	while (!distance[h->distances - 1].length)
		h->distances--;
	for (i = 0; i < h->symbols; i++)
		lengths[i] = (uint8_t)symbol[i].length;
	for (i = 0; i < h->distances; i++)
		lengths[h->symbols + i] = (uint8_t)distance[i].length;
	head_symbols(h, lengths, h->symbols + h->distances);
	for (i = 0; i < h->n; i++)
		counts[h->symbol[i]]++;
	mq_huffman(counts, CODE_LENGTHS, CODE_LENGTH_LIMIT, h->code);
	h->codes = CODE_LENGTHS;
	while (h->codes > 4 && !h->code[code_order[h->codes - 1]].length)
		h->codes--;
	h->bits = 3 + 5 + 5 + 4 + 3 * h->codes;
	for (i = 0; i < h->n; i++)
		h->bits += h->code[h->symbol[i]].length + head_extra(h->symbol[i]);
}

static void head_put(struct bits *w, const struct head *h, bool last)
{
	unsigned i;

	put(w, (last ? 1 : 0) | 2 << 1, 3);
	put(w, h->symbols - 257, 5);
	put(w, h->distances - 1, 5);
	put(w, h->codes - 4, 4);
	drain(w);
	for (i = 0; i < h->codes; i++) {
		put(w, h->code[code_order[i]].length, 3);
		drain(w);
	}
	for (i = 0; i < h->n; i++) {
		const struct mq_code *c = &h->code[h->symbol[i]];

		put(w, c->bits, c->length);
		put(w, h->extra[i], head_extra(h->symbol[i]));
		drain(w);
	}
}

/* How long the block is in its codes. */
static uint64_t coded_bits(const struct mq_deflate *d)
{
	const struct mq_block *b = &d->block;
	uint64_t bits = d->head.bits;
	unsigned i;

	for (i = 0; i < MQ_SYMBOLS; i++)
		bits += (uint64_t)b->symbol[i] * d->symbol[i].length;
	for (i = 8; i < 28; i++) /* the symbols of lengths that have extra bits */
		bits += (uint64_t)b->symbol[MQ_LITERALS + 1 + i] * (i / 4 - 1);
	for (i = 0; i < MQ_DISTANCES; i++)
		bits += (uint64_t)b->distance[i] * (d->distance[i].length + mq_distance_extra(i));
	return bits;
}

static void store(struct bits *w, const uint8_t *in, size_t n, bool last)
{
	while (n) {
		uint32_t part = n < STORED_MOST ? (uint32_t)n : STORED_MOST;

		put(w, last && part == n, 3);
		fill_byte(w);
		put(w, part | (uint64_t)(part ^ STORED_MOST) << 16, 32);
		drain(w);
		memcpy(w->out, in, part);
		w->out += part;
		in += part;
		n -= part;
	}
}

static void put_literals(struct bits *w, const struct mq_code *code, const uint8_t *in, uint32_t n)
{
	for (; n >= 3; n -= 3, in += 3) {
		put(w, code[in[0]].bits, code[in[0]].length);
		put(w, code[in[1]].bits, code[in[1]].length);
		put(w, code[in[2]].bits, code[in[2]].length);
		drain(w);
	}
	for (; n; n--, in++)
		put(w, code[*in].bits, code[*in].length);
	drain(w);
}

/* seq.length > 0 */
static void put_match(struct bits *w, const struct mq_deflate *d, struct mq_seq seq)
{
	unsigned symbol = mq_distance_symbol(seq.distance), extra = mq_distance_extra(symbol);
	uint64_t at = d->distance[symbol].bits |
	              ((seq.distance - 1) & ((1ull << extra) - 1)) << d->distance[symbol].length;
	unsigned at_bits = d->distance[symbol].length + extra;

	while (seq.length) {
		uint32_t part = seq.length < MQ_MATCH_MOST ? seq.length : MQ_MATCH_MOST;

		put(w, d->length[part].bits, d->length[part].length);
		put(w, at, at_bits);
		drain(w);
		seq.length -= part;
	}
}

static void put_coded(struct bits *w, struct mq_deflate *d, bool last)
{
	const struct mq_block *b = &d->block;
	const uint8_t *in = b->in;
	uint32_t i;

	for (i = 3; i <= MQ_MATCH_MOST; i++) {
		const struct mq_code *c = &d->symbol[MQ_LITERALS + 1 + mq_length_symbol(i)];
		uint32_t extra = mq_length_extra(i);

		d->length[i].bits = c->bits | ((i - 3) & ((1u << extra) - 1)) << c->length;
		d->length[i].length = c->length + extra;
	}
	head_put(w, &d->head, last);
	for (i = 0; i < b->seqs; i++) {
		put_literals(w, d->symbol, in, b->seq[i].literals);
		if (b->seq[i].length)
			put_match(w, d, b->seq[i]);
		in += b->seq[i].literals + b->seq[i].length;
	}
	put(w, d->symbol[MQ_LITERALS].bits, d->symbol[MQ_LITERALS].length);
	drain(w);
}

static void put_block(struct bits *w, struct mq_deflate *d, bool small, bool last)
{
	struct mq_block *b = &d->block;

	if (small)
		mq_matcher_improve(d->matcher, b);
	b->symbol[MQ_LITERALS] = 1;
	mq_huffman(b->symbol, MQ_SYMBOLS, MQ_HUFFMAN_LIMIT, d->symbol);
	mq_huffman(b->distance, MQ_DISTANCES, MQ_HUFFMAN_LIMIT, d->distance);
	head_make(&d->head, d->symbol, d->distance);
	if (coded_bits(d) < 8 * (uint64_t)b->bytes)
		put_coded(w, d, last);
	else
		store(w, b->in, b->bytes, last);
}

/* Where in[at .. limit-1] begins a run: four bytes (MQ_RUN_LEAST) that equal the one before them.
 * limit: it does not; the run may go on behind the limit. */
static size_t next_run(const uint8_t *in, size_t at, size_t limit, size_t n)
{
	const uint64_t low7 = 0x7f7f7f7f7f7f7f7full;
	size_t i = at ? at : 1;

	for (; i < limit && n - i >= 8; i += 5) {
		uint64_t x = mq_load64(in + i) ^ mq_load64(in + i - 1);
		uint64_t zero = ~(((x & low7) + low7) | x | low7); /* bit 7 of each byte that is 0 */

		zero &= zero >> 8;
		zero &= zero >> 16;
		if (zero) {
			i += (size_t)__builtin_ctzll(zero) / 8;
			return i < limit ? i : limit;
		}
	}
	for (; i < limit && n - i >= MQ_RUN_LEAST; i++)
		if (in[i] == in[i - 1] && in[i + 1] == in[i] && in[i + 2] == in[i] && in[i + 3] == in[i])
			return i;
	return limit;
}

/* How many bytes equal v. */
static size_t run_length(const uint8_t *in, size_t n, uint8_t v)
{
	const uint64_t all = 0x0101010101010101ull * v;
	size_t i = 0;

	for (; n - i >= 32; i += 32)
		if ((mq_load64(in + i) ^ all) | (mq_load64(in + i + 8) ^ all) |
		    (mq_load64(in + i + 16) ^ all) | (mq_load64(in + i + 24) ^ all))
			break;
	for (; n - i >= 8; i += 8) {
		uint64_t x = mq_load64(in + i) ^ all;

		if (x)
			return i + (size_t)__builtin_ctzll(x) / 8;
	}
	while (i < n && in[i] == v)
		i++;
	return i;
}

size_t mq_deflate(struct mq_deflate *d, const uint8_t *in, size_t n, bool small, bool last,
                  uint8_t *out)
{
	struct bits w = { 0, 0, out };
	struct mq_block *b = &d->block;
	size_t at = 0;

	if (small)
		mq_matcher_begin(d->matcher, in);
	while (at < n) {
		mq_block_begin(b, in + at);
		while (at < n && b->tokens < MQ_BLOCK_TOKENS) {
			size_t room = MQ_BLOCK_TOKENS - b->tokens, limit = n - at < room ? n : at + room;
			size_t run = next_run(in, at, limit, n), length = 0;

			if (run < limit) {
				length = run_length(in + run, n - run, in[run]);
				if (length % MQ_MATCH_MOST < 3)
					length -= length % MQ_MATCH_MOST;
			}
			mq_block_add(b, (struct mq_seq){ (uint32_t)(run - at), (uint32_t)length, 1 });
			at = run + length;
		}
		put_block(&w, d, small, last && at == n);
	}
	if (!last)
		put(&w, 0, 3); /* an empty stored block */
	fill_byte(&w);
	if (!last) {
		put(&w, 0xffff0000, 32);
		drain(&w);
	}
	return (size_t)(w.out - out);
}
