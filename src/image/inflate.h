/* inflate: a strip's deflate stream back to its bytes, by libdeflate: reading back would prove little if it
 * were of the same hand as deflate. Used by strip alone. */
#ifndef MQ_INFLATE_H
#define MQ_INFLATE_H

#include <libdeflate.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes behind the input that are written to. */
#define MQ_INFLATE_TAIL 2u

/* True if the stream in[0 .. n-1] holds exactly `bytes` bytes, which are at out then, and ends with its last
 * byte: in the final block (last), or in a sync flush. in has MQ_INFLATE_TAIL bytes more. */
bool mq_inflate(struct libdeflate_decompressor *d, uint8_t *in, size_t n, bool last, uint8_t *out,
                size_t bytes);

#endif
