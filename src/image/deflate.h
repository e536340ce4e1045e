/* deflate: filtered strips to deflate streams (RFC 1951). Used by strip alone.
 *
 * What the filters leave of a picture is bytes that repeat (mostly zeros) with something between. So runs
 * of one byte are all that is looked for (matches at distance 1), and each block has the best codes for
 * what it holds. Where it is to be small, matches with what came before are searched too
 * (deflate_match). The bytes depend on the input alone: there is no arithmetic but on whole numbers,
 * and no code for single instruction sets. */
#ifndef MQ_DEFLATE_H
#define MQ_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Work memory, 0.4 MiB; one a thread. */
struct mq_deflate;
/* NULL: no memory. */
struct mq_deflate *mq_deflate_open(void);
void mq_deflate_close(struct mq_deflate *d);

/* The memory for `small` (0.8 MiB), at its first use. False: there is none. */
bool mq_deflate_prepare_small(struct mq_deflate *d);

/* Room that n bytes need at most, however they look. */
size_t mq_deflate_bound(size_t n);

/* Writes the stream of in[0 .. n-1], n in 1 .. 2^31, and returns its bytes. It ends in a sync flush (an
 * empty stored block, at a whole byte) or, if it is the last, in the final block. small: after
 * mq_deflate_prepare_small. */
size_t mq_deflate(struct mq_deflate *d, const uint8_t *in, size_t n, bool small, bool last,
                  uint8_t *out);

#endif
