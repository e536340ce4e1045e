/* clock: the two clocks. What is measured or waited for goes by the steady one, which nobody sets; only what
 * people read, and what is stored for them, goes by the wall's. Any thread. */
#ifndef MQ_CLOCK_H
#define MQ_CLOCK_H

#include <stdint.h>

/* Milliseconds since some moment; never goes back. */
int64_t mq_clock_ms(void);
/* Milliseconds since 1970. May jump, either way. */
int64_t mq_clock_wall_ms(void);

#endif
