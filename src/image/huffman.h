/* huffman: the shortest prefix code for how often symbols occur. Used by deflate alone. */
#ifndef MQ_HUFFMAN_H
#define MQ_HUFFMAN_H

#include <stdint.h>

#define MQ_HUFFMAN_MOST 286u /* symbols */
#define MQ_HUFFMAN_LIMIT 15u /* bits of a code */

struct mq_code {
	uint16_t bits; /* the first one lowest, as deflate sends it */
	uint16_t length;
};

/* counts of n symbols (2 .. MQ_HUFFMAN_MOST); the sum is at most 2^31. A symbol that does not occur has
 * length 0, except that at least two have a code: so the code is complete, as some decoders want.
 * limit: 7 .. MQ_HUFFMAN_LIMIT, and 2^limit >= n. */
void mq_huffman(const uint32_t *counts, unsigned n, unsigned limit, struct mq_code *codes);

#endif
