/* uuid: the UUIDs of GPUs as text, "GPU-" and 32 digits in groups of 8, 4, 4, 4 and 12, as nvidia-smi
 * prints them. Nothing here needs CUDA. Any thread. */
#ifndef MQ_UUID_H
#define MQ_UUID_H

#include <stdbool.h>

#include "src/status.h"

#define MQ_UUID_SIZE 41 /* with the final 0 */

/* 16 bytes to text, in lower case. */
void mq_uuid_format(const unsigned char bytes[16], char out[MQ_UUID_SIZE]);

/* Is text such a UUID, or its beginning with one digit at least? In upper or lower case. */
bool mq_uuid_is_prefix(const char *text);

/* Which of the devices cuda:0 .. cuda:count-1, whose UUIDs these are, does wanted mean, a UUID or its
 * beginning? MQ_EINVAL: none, or more than one; the text lists those that there are, or that it fits. */
enum mq_status mq_uuid_find(const char *wanted, const char (*uuid)[MQ_UUID_SIZE], unsigned count,
                            unsigned *index, struct mq_error *err);

#endif
