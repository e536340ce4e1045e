/* status: the table of results (wire name, exit code) and the makers of error texts. Called by
 * everybody; holds no state. An error text is always one line without control characters. */
#include "config.h" /* the GNU strerror_r */

#include "src/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	int exit_code;
} status_table[MQ_STATUS_COUNT] = {
	[MQ_OK] = { "ok", 0 },
	[MQ_EINVAL] = { "invalid", 2 },
	[MQ_ENOENT] = { "no-such-job", 3 },
	[MQ_ECONFLICT] = { "conflict", 5 },
	[MQ_EPERM] = { "not-owner", 8 },
	[MQ_ESTATE] = { "state", 1 },
	[MQ_EUNREACH] = { "unreachable", 4 },
	[MQ_ETIMEOUT] = { "timeout", 6 },
	[MQ_ESTOPPED] = { "stopped", 7 },
	[MQ_EBUSY] = { "busy", 1 },
	[MQ_EIO] = { "io", 1 },
	[MQ_ESYNC] = { "sync", 1 },
	[MQ_ENOSPC] = { "no-space", 1 },
	[MQ_ENOMEM_HOST] = { "host-memory", 1 },
	[MQ_ENOMEM_DEVICE] = { "device-memory", 1 },
	[MQ_EDEVICE] = { "device", 1 },
	[MQ_ECORRUPT] = { "corrupt", 1 },
	[MQ_ECANCELLED] = { "cancelled", 1 },
	[MQ_ESTALE] = { "stale", 1 },
	[MQ_EPROTO] = { "protocol", 4 },
	[MQ_EVERSION] = { "version", 4 },
	[MQ_EINTERNAL] = { "internal", 1 },
};

/* The length of text without the half of a UTF-8 character that a cut may have left at its end. */
static size_t whole_characters(const char *text, size_t len)
{
	size_t lead = len;

	while (lead > 0 && len - lead < 3 && ((unsigned char)text[lead - 1] & 0xc0) == 0x80)
		lead--;
	if (lead == 0)
		return len;
	unsigned char c = (unsigned char)text[--lead];
	size_t needed = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
	return len - lead < needed ? lead : len;
}

/* Makes one line of what vsnprintf left in text; len is the length that it would have had. */
static void tidy(char *text, size_t size, size_t len)
{
	if (len >= size) {
		len = whole_characters(text, size - 1);
		text[len] = '\0';
	}
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = '?';
}

static size_t format(struct mq_error *err, const char *fmt, va_list ap)
{
	/* A scratch text, because an argument may be err->text itself. */
	char text[sizeof(err->text)];
	int n = vsnprintf(text, sizeof(text), fmt, ap);

	if (n < 0) {
		text[0] = '\0';
		n = 0;
	}
	tidy(text, sizeof(text), (size_t)n);
	memcpy(err->text, text, strlen(text) + 1);
	return strlen(text);
}

enum mq_status mq_fail(struct mq_error *err, enum mq_status status, const char *fmt, ...)
{
	if (err) {
		va_list ap;

		va_start(ap, fmt);
		format(err, fmt, ap);
		va_end(ap);
	}
	return status;
}

enum mq_status mq_fail_errno(struct mq_error *err, int errnum, const char *fmt, ...)
{
	if (err) {
		char reason[128];
		va_list ap;

		va_start(ap, fmt);
		size_t len = format(err, fmt, ap);
		va_end(ap);
		size_t room = sizeof(err->text) - len;
		int n = snprintf(err->text + len, room, ": %s",
		                 strerror_r(errnum, reason, sizeof(reason)));
		if (n > 0)
			tidy(err->text + len, room, (size_t)n);
	}
	switch (errnum) {
	case ENOSPC:
	case EDQUOT:
		return MQ_ENOSPC;
	case ENOMEM:
		return MQ_ENOMEM_HOST;
	case ENOENT:
		return MQ_ENOENT;
	default:
		return MQ_EIO;
	}
}

const char *mq_status_name(enum mq_status status)
{
	if ((unsigned)status >= MQ_STATUS_COUNT)
		return status_table[MQ_EINTERNAL].name;
	return status_table[status].name;
}

enum mq_status mq_status_from_name(const char *name)
{
	for (unsigned i = 0; i < MQ_STATUS_COUNT; i++)
		if (!strcmp(name, status_table[i].name))
			return (enum mq_status)i;
	return MQ_EPROTO;
}

int mq_status_exit_code(enum mq_status status)
{
	if ((unsigned)status >= MQ_STATUS_COUNT)
		return status_table[MQ_EINTERNAL].exit_code;
	return status_table[status].exit_code;
}
