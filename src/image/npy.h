/* npy: the header of a NumPy array file (format 1.0): '<u4' or '<f4', C order, shape (H, W). */
#ifndef MQ_NPY_H
#define MQ_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MQ_NPY_HEADER_MAX 128

/* Returns the header's bytes (a multiple of 64, at most MQ_NPY_HEADER_MAX). */
size_t mq_npy_header(char out[MQ_NPY_HEADER_MAX], bool is_float, uint32_t height, uint32_t width);

#endif
