/* bytes: see bytes.h. */
#include "src/bytes.h"

#include <stdio.h>

char *mq_bytes_text(double bytes, char out[32])
{
	static const char *const units[] = { "B", "kB", "MB", "GB", "TB", "PB" };
	unsigned unit = 0;

	while (bytes >= 999.5 && unit < 5) {
		bytes /= 1000;
		unit++;
	}
	snprintf(out, 32, "%.*f %s", unit && bytes < 99.5 ? 1 : 0, bytes, units[unit]);
	return out;
}
