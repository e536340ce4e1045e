/* say: messages and the one transient line. Called by every command; one thread only. */
#include "config.h"

#include "client/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static bool transient_shown, keep_quiet;

void mq_say_clean(char *text)
{
	unsigned char *p = (unsigned char *)text;

	for (; *p; p++) {
		if (*p < 0x20 || *p == 0x7f)
			*p = '?';
		else if (p[0] == 0xc2 && p[1] >= 0x80 &&
			 p[1] < 0xa0) /* C1: some terminals obey them */
			p[0] = p[1] = '?';
	}
}

static void say_line(const char *fmt, va_list ap)
{
	char text[2048];

	vsnprintf(text, sizeof(text), fmt, ap);
	mq_say_clean(text);
	mq_say_transient(NULL);
	fprintf(stderr, "mandelq: %s\n", text);
}

void mq_say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say_line(fmt, ap);
	va_end(ap);
}

void mq_tell(const char *fmt, ...)
{
	va_list ap;

	if (keep_quiet)
		return;
	va_start(ap, fmt);
	say_line(fmt, ap);
	va_end(ap);
}

void mq_say_quiet(bool quiet)
{
	keep_quiet = quiet;
}

bool mq_say_colours(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	return isatty(STDOUT_FILENO) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

bool mq_say_terminal(int *columns)
{
	const char *term = getenv("TERM");
	struct winsize size;

	if (columns) {
		*columns = 80;
		if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
			*columns = size.ws_col;
	}
	return isatty(STDERR_FILENO) && (!term || strcmp(term, "dumb") != 0);
}

void mq_say_transient(const char *line)
{
	if (line)
		fprintf(stderr, "\r%s\033[K", line);
	else if (transient_shown)
		fputs("\r\033[K", stderr);
	fflush(stderr);
	transient_shown = line != NULL;
}

char *mq_say_seconds(double seconds, char out[32])
{
	unsigned long long s;

	if (!(seconds >= 0 && seconds < 1e12)) /* not a number too */
		seconds = 0;
	s = (unsigned long long)(seconds + 0.5);
	if (seconds < 9.95)
		snprintf(out, 32, "%.1f s", seconds);
	else if (s < 3600)
		snprintf(out, 32, "%llu:%02llu", s / 60, s % 60);
	else
		snprintf(out, 32, "%llu:%02llu:%02llu", s / 3600, s / 60 % 60, s % 60);
	return out;
}

enum mq_status mq_say_flush_stdout(struct mq_error *err)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		return mq_fail(err, errno == ENOSPC ? MQ_ENOSPC : MQ_EIO,
			       "cannot write to standard output: %s", strerror(errno));
	return MQ_OK;
}
