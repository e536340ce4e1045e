/* log: formats a line in a buffer on the stack and hands it to the kernel in one write(2), so that
 * lines of different threads never mix. Called from any thread; errno is left as it was. */
#include "src/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/clock.h"
#include "src/message.h"

#define LINE_MAX_BYTES 2048

static const struct {
	const char *name;
	int priority; /* syslog's */
} levels[] = {
	[MQ_LOG_ERROR] = { "error", 3 },
	[MQ_LOG_WARN] = { "warning", 4 },
	[MQ_LOG_INFO] = { "info", 6 },
	[MQ_LOG_DEBUG] = { "debug", 7 },
};

static enum mq_log_level threshold = MQ_LOG_INFO;
static mq_log_sink *sink;
static atomic_uint lost; /* lines, since one was written */
static bool to_journal;
static pthread_once_t journal_once = PTHREAD_ONCE_INIT;

/* JOURNAL_STREAM is DEVICE:INODE of the journal's stream; it is inherited by children whose
 * standard error is something else, so it must be compared (systemd.exec(5)). */
static void look_for_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char here[64];
	struct stat st;

	if (!stream || fstat(STDERR_FILENO, &st) != 0)
		return;
	snprintf(here, sizeof(here), "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
	to_journal = !strcmp(stream, here);
}

void mq_log_set_level(enum mq_log_level level)
{
	threshold = level;
}

void mq_log_set_sink(mq_log_sink *to)
{
	sink = to;
}

bool mq_log_to_journal(void)
{
	pthread_once(&journal_once, look_for_journal);
	return to_journal;
}

static size_t put_head(char *line, size_t size, enum mq_log_level level)
{
	char now[32];
	int n;

	if (mq_log_to_journal()) {
		n = snprintf(line, size, "<%d>", levels[level].priority);
	} else {
		mq_time_format(mq_clock_wall_ms(), now);
		n = snprintf(line, size, "%s %s: ", now, levels[level].name);
	}
	return n > 0 ? (size_t)n : 0;
}

static void write_line(const char *line, size_t len)
{
	/* Nobody is left to tell when standard error cannot be written. */
	while (write(STDERR_FILENO, line, len) < 0 && errno == EINTR)
		continue;
}

/* Who reads standard error may have stopped reading: that is no reason to stop as well. A pipe that can be
 * written takes a line without waiting. */
static void emit(const char *line, size_t len)
{
	struct pollfd item = { .fd = STDERR_FILENO, .events = POLLOUT };
	char note[96];
	unsigned count;
	int n;

	if (poll(&item, 1, 0) == 0) {
		atomic_fetch_add(&lost, 1);
		return;
	}
	count = atomic_exchange(&lost, 0);
	if (count) {
		n = snprintf(note, sizeof(note), "%u lines of this log are lost: nobody read them in time\n",
			     count);
		write_line(note, (size_t)n);
	}
	write_line(line, len);
}

static void put(enum mq_log_level level, const struct mq_log_about *about, const char *fmt, va_list ap)
{
	char line[LINE_MAX_BYTES];
	int saved = errno;

	if (level > threshold)
		return;
	size_t head = put_head(line, sizeof(line), level);
	size_t room = sizeof(line) - head -
	              1; /* for the text and its NUL; the newline has its own byte */

	errno = saved; /* for %m */
	int n = vsnprintf(line + head, room, fmt, ap);
	size_t len = n < 0 ? 0 : (size_t)n;
	if (len >= room) {
		len = room - 1;
		memcpy(line + head + len - 3, "...", 3);
	}
	for (size_t i = head; i < head + len; i++)
		if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
			line[i] = ' ';
	line[head + len] = '\0';
	if (!sink || !sink(levels[level].priority, about, line + head)) {
		line[head + len] = '\n';
		emit(line, head + len + 1);
	}
	errno = saved;
}

void mq_log(enum mq_log_level level, const char *fmt, ...)
{
	const struct mq_log_about nothing = { 0 };
	va_list ap;

	va_start(ap, fmt);
	put(level, &nothing, fmt, ap);
	va_end(ap);
}

void mq_log_about(enum mq_log_level level, struct mq_log_about about, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put(level, &about, fmt, ap);
	va_end(ap);
}
