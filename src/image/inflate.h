/* inflate: a strip's deflate stream back to its bytes, by igzip: reading back would prove little if it were
 * of the same hand as deflate. Used by strip alone. */
#ifndef MQ_INFLATE_H
#define MQ_INFLATE_H

#include <isa-l/igzip_lib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Room behind the output, so that a stream that holds too much is seen and wide stores fit. */
#define MQ_INFLATE_SLACK 512u

/* True if the stream in[0 .. n-1] holds exactly `bytes` bytes, which are at out then, and ends with its last
 * byte: in the final block (last), or in a sync flush. out has MQ_INFLATE_SLACK bytes more. state: work
 * memory; what it holds does not matter. */
bool mq_inflate(struct inflate_state *state, const uint8_t *in, size_t n, bool last, uint8_t *out,
                size_t bytes);

#endif
