/* clock: see clock.h. */
#include "src/clock.h"

#include <time.h>

static int64_t read_ms(clockid_t clock)
{
	struct timespec t;

	(void)clock_gettime(clock, &t); /* both are always there */
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t mq_clock_ms(void)
{
	return read_ms(CLOCK_MONOTONIC);
}

int64_t mq_clock_wall_ms(void)
{
	return read_ms(CLOCK_REALTIME);
}
