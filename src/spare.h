/* spare: allocations that leave something to others. libzmq ends the process when it gets no memory for a
 * message; so whatever can be refused, and waited for, asks here and is refused a little earlier. */
#ifndef MQ_SPARE_H
#define MQ_SPARE_H

#include <stdbool.h>
#include <stddef.h>

#define MQ_SPARE_BYTES ((size_t)1 << 20)

/* Whether there still is as much. A few microseconds; what it looks at is given back at once. */
bool mq_spare_left(void);

/* As malloc; also NULL if less than MQ_SPARE_BYTES would be left. */
void *mq_spare_malloc(size_t bytes);

#endif
