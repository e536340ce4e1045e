/* filter: the two PNG filters that strips use, a strip at a time. Used by strip alone.
 *
 * The first row has filter Sub, the others Up (W3C PNG, 9.2). The loops are written with vectors of
 * 16 bytes, which every x86-64 and AArch64 has, because -O2 leaves such loops scalar. */
#ifndef MQ_FILTER_H
#define MQ_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* pixels: rows * row_bytes. out: rows * (1 + row_bytes). */
void mq_filter_apply(const uint8_t *pixels, size_t row_bytes, uint32_t rows, unsigned channels,
                     uint8_t *out);

/* The way back; false if a row has another filter than it must have. */
bool mq_filter_undo(const uint8_t *filtered, size_t row_bytes, uint32_t rows, unsigned channels,
                    uint8_t *pixels);

#endif
