/* deflate_block: what deflate and deflate_match share: a block as literals and matches, before it has
 * codes. Used inside src/image only. */
#ifndef MQ_DEFLATE_BLOCK_H
#define MQ_DEFLATE_BLOCK_H

#include <stdint.h>
#include <string.h>

#define MQ_BLOCK_TOKENS 32768u /* literals, runs and matches; one run of any length is one */
#define MQ_MATCH_MOST 258u
#define MQ_RUN_LEAST 4u   /* shorter ones are as short as literals */
#define MQ_WINDOW 32768u

#define MQ_LITERALS 256u  /* symbols before it are literals, it is the end of the block */
#define MQ_SYMBOLS 286u
#define MQ_DISTANCES 30u

/* Literals, then a match (length 0: none). One at distance 1 may have any length, but never leaves a
 * rest of 1 or 2 above a multiple of MQ_MATCH_MOST. Others have at most MQ_MATCH_MOST. */
struct mq_seq {
	uint32_t literals, length, distance;
};

struct mq_block {
	const uint8_t *in; /* its first byte */
	size_t bytes;
	uint32_t tokens, seqs;
	uint32_t symbol[MQ_SYMBOLS], distance[MQ_DISTANCES]; /* how often each is needed */
	struct mq_seq seq[MQ_BLOCK_TOKENS];
};

/* RFC 1951, 3.2.5: the symbol of a length (3 .. 258) behind MQ_LITERALS + 1, and its extra bits. */
static inline unsigned mq_length_extra(unsigned length)
{
	unsigned x = length - 3;

	return x < 8 || length == MQ_MATCH_MOST ? 0 : 29u - (unsigned)__builtin_clz(x);
}

static inline unsigned mq_length_symbol(unsigned length)
{
	unsigned x = length - 3, extra = mq_length_extra(length);

	return length == MQ_MATCH_MOST ? 28 : 4 * extra + (x >> extra);
}

/* The symbol of a distance (1 .. 32768), and a symbol's extra bits. */
static inline unsigned mq_distance_symbol(unsigned distance)
{
	unsigned x = distance - 1, high;

	if (x < 4)
		return x;
	high = 31u - (unsigned)__builtin_clz(x);
	return 2 * high + (x >> (high - 1) & 1);
}

static inline unsigned mq_distance_extra(unsigned symbol)
{
	return symbol < 4 ? 0 : symbol / 2 - 1;
}

/* Little-endian, as all machines are that mandelq runs on. */
static inline uint64_t mq_load64(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof v);
	return v;
}

/* An empty block behind the last one. */
void mq_block_begin(struct mq_block *b, const uint8_t *in);
/* Adds literals and match, which are the next bytes. */
void mq_block_add(struct mq_block *b, struct mq_seq seq);

/* deflate_match: the block once more, with matches in it where they make it smaller. */
struct mq_matcher;
struct mq_matcher *mq_matcher_open(void);
void mq_matcher_close(struct mq_matcher *m);
/* The next bytes belong to no earlier ones; strip: where they begin. */
void mq_matcher_begin(struct mq_matcher *m, const uint8_t *strip);
/* b: of literals and runs, the next block of the strip. */
void mq_matcher_improve(struct mq_matcher *m, struct mq_block *b);

#endif
