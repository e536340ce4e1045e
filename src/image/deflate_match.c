/* deflate_match: see deflate_block.h. Called by deflate for strips that are to be small.
 *
 * The block's literals and runs are nodes in a row. From each node the longest match with earlier bytes
 * is looked for, and cut so that it ends before a node. Then the cheapest way through the nodes is found
 * from the end backwards, by what literals, runs and matches will cost in bits: first as the runs alone
 * let expect, and once more as that way does. Positions inside runs are never looked at, which is what
 * makes it fast on flat pictures. */
#include "src/image/deflate_block.h"

#include <stdbool.h>
#include <stdlib.h>

#define HASH_BITS 15
#define TRIES 4          /* earlier places looked at, from the nearest on */
#define MATCH_LEAST 4u
#define MATCH_LONG 64u   /* after one of those less is looked for */
#define FAR_GUESS 5u     /* bits of a distance's symbol, before there are any */
#define UNIT 16u         /* costs are in 1/16 bit */

struct match {
	uint16_t length; /* 0: none */
	uint16_t distance;
	uint32_t to; /* the node behind it */
};

struct mq_matcher {
	const uint8_t *strip;
	uint32_t nodes;
	uint32_t at[MQ_BLOCK_TOKENS + 1]; /* where each node begins in the strip; then the block's end */
	struct match match[MQ_BLOCK_TOKENS];
	bool take[MQ_BLOCK_TOKENS]; /* the match */
	uint32_t rest[MQ_BLOCK_TOKENS + 1]; /* what the cheapest way costs from there to the end */
	uint16_t literal_cost[MQ_LITERALS], length_cost[MQ_MATCH_MOST + 1], distance_cost[MQ_DISTANCES];
	/* Positions + 1 of the bytes with a hash, and for each of those the one before; 0: none. */
	uint32_t head[1u << HASH_BITS], earlier[MQ_WINDOW];
};

struct mq_matcher *mq_matcher_open(void)
{
	return calloc(1, sizeof(struct mq_matcher));
}

void mq_matcher_close(struct mq_matcher *m)
{
	free(m);
}

void mq_matcher_begin(struct mq_matcher *m, const uint8_t *strip)
{
	m->strip = strip;
	memset(m->head, 0, sizeof m->head); /* `earlier` is reached from there only */
}

static uint32_t load32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

/* 16 log2 v, v > 0, to within 1. */
static unsigned log2_units(uint32_t v)
{
	static const uint8_t fraction[32] = { 0, 1, 1, 2, 3, 3, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9,
		                              9, 10, 10, 11, 11, 12, 12, 12, 13, 13, 14, 14, 14, 15, 15, 16 };
	unsigned high = 31u - (unsigned)__builtin_clz(v);
	uint32_t top = high >= 5 ? v >> (high - 5) : v << (5 - high);

	return UNIT * high + fraction[top - 32];
}

/* Of a symbol that comes count times in a block of so many symbols; half a time is the least. */
static unsigned cost(uint32_t count, uint32_t all)
{
	unsigned total = log2_units(2 * all + 1), own = log2_units(2 * count + 1);

	return total > own + UNIT ? total - own : UNIT;
}

/* What everything costs, by what the block holds now. guess: it holds no matches yet. */
static void find_costs(struct mq_matcher *m, const struct mq_block *b, bool guess)
{
	uint32_t symbols = 0, distances = 0, i;

	for (i = 0; i < MQ_SYMBOLS; i++)
		symbols += b->symbol[i];
	for (i = 0; i < MQ_DISTANCES; i++)
		distances += b->distance[i];
	for (i = 0; i < MQ_LITERALS; i++)
		m->literal_cost[i] = (uint16_t)cost(b->symbol[i], symbols);
	for (i = 3; i <= MQ_MATCH_MOST; i++)
		m->length_cost[i] =
			(uint16_t)(cost(b->symbol[MQ_LITERALS + 1 + mq_length_symbol(i)], symbols) +
		                   UNIT * mq_length_extra(i));
	for (i = 0; i < MQ_DISTANCES; i++) {
		unsigned symbol = guess ? UNIT * (i ? FAR_GUESS : 1) : cost(b->distance[i], distances);

		m->distance_cost[i] = (uint16_t)(symbol + UNIT * mq_distance_extra(i));
	}
}

static void find_nodes(struct mq_matcher *m, const struct mq_block *b)
{
	uint32_t at = (uint32_t)(b->in - m->strip), i, k;

	m->nodes = 0;
	for (i = 0; i < b->seqs; i++) {
		for (k = 0; k < b->seq[i].literals; k++)
			m->at[m->nodes++] = at++;
		if (b->seq[i].length) {
			m->at[m->nodes++] = at;
			at += b->seq[i].length;
		}
	}
	m->at[m->nodes] = at;
}

/* How many bytes are the same; b lies behind a. */
static unsigned common(const uint8_t *a, const uint8_t *b, unsigned most)
{
	unsigned i = 0;

	for (; most - i >= 8; i += 8) {
		uint64_t x = mq_load64(a + i) ^ mq_load64(b + i);

		if (x)
			return i + (unsigned)__builtin_ctzll(x) / 8;
	}
	while (i < most && a[i] == b[i])
		i++;
	return i;
}

/* The last node that begins at or before `end`, which is at most MQ_MATCH_MOST behind node `from`. */
static uint32_t node_before(const struct mq_matcher *m, uint32_t from, uint32_t end)
{
	uint32_t low = from, high = from + (end - m->at[from]);

	if (high > m->nodes)
		high = m->nodes;
	if (m->at[high] <= end)
		return high;
	while (low + 1 < high) { /* at[low] <= end < at[high] */
		uint32_t middle = (low + high) / 2;

		if (m->at[middle] <= end)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* The longest match with the bytes at m->at[node], of `most`; candidate: where the nearest may be, + 1. */
static void search(struct mq_matcher *m, uint32_t node, uint32_t candidate, unsigned most)
{
	uint32_t at = m->at[node], far = 0, tries;
	const uint8_t *here = m->strip + at;
	unsigned best = MATCH_LEAST - 1;
	uint32_t four = load32(here);

	for (tries = TRIES; tries && candidate && at + 1 - candidate < MQ_WINDOW; tries--) {
		const uint8_t *there = m->strip + candidate - 1;

		if (load32(there) == four && there[best] == here[best]) {
			unsigned length = common(there, here, most);

			if (length > best) {
				best = length;
				far = at + 1 - candidate;
			}
			if (length == most)
				break;
		}
		candidate = m->earlier[candidate % MQ_WINDOW];
	}
	if (far) {
		uint32_t to = node_before(m, node, at + best);

		if (to > node + 1 && m->at[to] - at >= 3)
			m->match[node] = (struct match){ (uint16_t)(m->at[to] - at), (uint16_t)far, to };
	}
}

static void find_matches(struct mq_matcher *m)
{
	uint32_t end = m->at[m->nodes], after = 0, i;

	for (i = 0; i < m->nodes; i++) {
		uint32_t at = m->at[i], *head, candidate;

		m->match[i].length = 0;
		if (end - at < 8)
			continue;
		head = &m->head[load32(m->strip + at) * 2654435761u >> (32 - HASH_BITS)];
		candidate = *head;
		m->earlier[(at + 1) % MQ_WINDOW] = candidate;
		*head = at + 1;
		if (at < after)
			continue;
		search(m, i, candidate, end - at < MQ_MATCH_MOST ? end - at : MQ_MATCH_MOST);
		if (m->match[i].length >= MATCH_LONG)
			after = at + m->match[i].length / 2;
	}
}

/* A run at distance 1, as deflate cuts it. Beyond 2^15 bytes it is not looked at what it costs: no match
 * is an alternative to it. */
static uint32_t run_cost(const struct mq_matcher *m, uint32_t length)
{
	uint32_t whole = (length < MQ_WINDOW ? length : MQ_WINDOW) / MQ_MATCH_MOST;
	uint32_t rest = length % MQ_MATCH_MOST;
	uint32_t bits = whole * (m->length_cost[MQ_MATCH_MOST] + m->distance_cost[0]);

	return rest ? bits + m->length_cost[rest] + m->distance_cost[0] : bits;
}

static void find_way(struct mq_matcher *m)
{
	uint32_t i = m->nodes;

	m->rest[i] = 0;
	while (i-- > 0) {
		uint32_t length = m->at[i + 1] - m->at[i];
		uint32_t best = m->rest[i + 1] + (length == 1 ? m->literal_cost[m->strip[m->at[i]]]
		                                              : run_cost(m, length));
		const struct match *match = &m->match[i];

		m->take[i] = false;
		if (match->length) {
			uint32_t other = m->rest[match->to] + m->length_cost[match->length] +
			                 m->distance_cost[mq_distance_symbol(match->distance)];

			m->take[i] = other < best;
			best = other < best ? other : best;
		}
		m->rest[i] = best;
	}
}

/* Writes the way as the block. */
static void walk(const struct mq_matcher *m, struct mq_block *b)
{
	struct mq_seq seq = { 0, 0, 1 };
	uint32_t i = 0;

	mq_block_begin(b, b->in);
	while (i < m->nodes) {
		if (m->take[i]) {
			seq.length = m->match[i].length;
			seq.distance = m->match[i].distance;
			i = m->match[i].to;
		} else {
			seq.length = m->at[i + 1] - m->at[i];
			i++;
			if (seq.length == 1) {
				seq.literals++;
				continue;
			}
		}
		mq_block_add(b, seq);
		seq = (struct mq_seq){ 0, 0, 1 };
	}
	if (seq.literals) {
		seq.length = 0;
		mq_block_add(b, seq);
	}
}

void mq_matcher_improve(struct mq_matcher *m, struct mq_block *b)
{
	find_nodes(m, b);
	find_costs(m, b, true);
	find_matches(m);
	find_way(m);
	walk(m, b);
	find_costs(m, b, false);
	find_way(m);
	walk(m, b);
}
