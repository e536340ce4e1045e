/* inflate: see inflate.h. */
#include "src/image/inflate.h"

#include <string.h>

static const uint8_t flush[4] = { 0, 0, 0xff, 0xff };
static const uint8_t empty[2] = { 3, 0 }; /* an empty final block */

/* After all input: a sync flush was its end, and nothing is left over: the next block may begin here. */
static bool ends_in_flush(struct inflate_state *s, const uint8_t *in, size_t n)
{
	uint8_t next[sizeof empty];
	uint32_t made = s->total_out;

	if (n < sizeof flush || memcmp(in + n - sizeof flush, flush, sizeof flush) != 0 || s->bfinal ||
	    (s->block_state != ISAL_BLOCK_NEW_HDR && s->block_state != ISAL_BLOCK_HDR) ||
	    s->tmp_in_size != 0 || s->read_in_length != 0)
		return false;
	memcpy(next, empty, sizeof next);
	s->next_in = next;
	s->avail_in = sizeof next;
	return isal_inflate(s) == ISAL_DECOMP_OK && s->block_state == ISAL_BLOCK_FINISH &&
	       s->avail_in == 0 && s->read_in_length < 8 && s->total_out == made;
}

bool mq_inflate(struct inflate_state *s, const uint8_t *in, size_t n, bool last, uint8_t *out,
                size_t bytes)
{
	if (n > UINT32_MAX || bytes > UINT32_MAX - MQ_INFLATE_SLACK)
		return false;
	isal_inflate_init(s);
	s->next_in = (uint8_t *)in; /* not written to */
	s->avail_in = (uint32_t)n;
	s->next_out = out;
	s->avail_out = (uint32_t)(bytes + MQ_INFLATE_SLACK);
	if (isal_inflate(s) != ISAL_DECOMP_OK || s->avail_in != 0 || s->total_out != bytes)
		return false;
	return last ? s->block_state == ISAL_BLOCK_FINISH && s->read_in_length < 8
	            : ends_in_flush(s, in, n);
}
