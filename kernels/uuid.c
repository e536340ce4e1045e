/* uuid: see uuid.h. Called by cuda.c, and by the worker for what --device says. */
#include "kernels/uuid.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

void mq_uuid_format(const unsigned char bytes[16], char out[MQ_UUID_SIZE])
{
	char *at = out + sprintf(out, "GPU");

	for (unsigned i = 0; i < 16; i++)
		at += sprintf(at, "%s%02x", i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
		              bytes[i]);
}

bool mq_uuid_is_prefix(const char *text)
{
	static const char shape[] = "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	size_t n = strlen(text);

	if (n < 5 || n > sizeof shape - 1 || strncasecmp(text, shape, 4) != 0)
		return false;
	for (size_t i = 4; i < n; i++)
		if (shape[i] == '-' ? text[i] != '-' : !strchr("0123456789abcdefABCDEF", text[i]))
			return false;
	return true;
}

/* Adds ", cuda:N UUID" to a list that is cut when it is full. */
static void list_add(char *list, size_t size, unsigned index, const char *uuid)
{
	size_t n = strlen(list);

	snprintf(list + n, size - n, "%scuda:%u %s", n ? ", " : "", index, uuid);
}

enum mq_status mq_uuid_find(const char *wanted, const char (*uuid)[MQ_UUID_SIZE], unsigned count,
                            unsigned *index, struct mq_error *err)
{
	char all[400] = "", fitting[400] = "";
	unsigned found = 0, first = 0;

	for (unsigned i = 0; i < count; i++) {
		list_add(all, sizeof all, i, uuid[i]);
		if (strncasecmp(wanted, uuid[i], strlen(wanted)) != 0)
			continue;
		list_add(fitting, sizeof fitting, i, uuid[i]);
		if (!found++)
			first = i;
	}
	if (!found)
		return mq_fail(err, MQ_EINVAL, "there is no %.40s: there is %s", wanted,
		               count ? all : "no CUDA device");
	if (found > 1)
		return mq_fail(err, MQ_EINVAL, "%.40s is more than one device: %s", wanted, fitting);
	*index = first;
	return MQ_OK;
}
