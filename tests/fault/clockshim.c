/* clockshim: preloaded into the worker by clock.py: a wall clock that somebody sets. $MANDELQ_CLOCK_FILE
 * holds by how many seconds. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long offset(void)
{
	const char *path = getenv("MANDELQ_CLOCK_FILE");
	FILE *file = path ? fopen(path, "r") : NULL;
	long seconds = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%ld", &seconds) != 1)
		seconds = 0;
	fclose(file);
	return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
	int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(
		RTLD_NEXT, "clock_gettime");
	int rc = real(clock, out);

	if (rc == 0 && clock == CLOCK_REALTIME)
		out->tv_sec += offset();
	return rc;
}
