/* interrupt: one signalfd for the life of the program. Called by main() and by everything that waits. */
#include "config.h"

#include "client/interrupt.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

static const int watched[] = { SIGINT, SIGTERM, SIGHUP };
static sigset_t blocked, before;
static int fd = -1;
static int first;
static unsigned seen;

enum mq_status mq_interrupt_begin(struct mq_error *err)
{
	struct sigaction action;

	sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++)
		if (sigaction(watched[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&blocked, watched[i]);
	if (sigprocmask(SIG_BLOCK, &blocked, &before) != 0)
		return mq_fail(err, MQ_EIO, "cannot block signals: %s", strerror(errno));
	fd = signalfd(-1, &blocked, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return mq_fail(err, MQ_EIO, "cannot watch signals: %s", strerror(errno));
	return MQ_OK;
}

void mq_interrupt_end(void)
{
	sigprocmask(SIG_SETMASK, &before, NULL);
}

int mq_interrupt_fd(void)
{
	return fd;
}

int mq_interrupted(void)
{
	struct signalfd_siginfo info;

	while (fd >= 0 && read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
		if (!first)
			first = (int)info.ssi_signo;
		seen++;
	}
	return first;
}

unsigned mq_interrupt_count(void)
{
	mq_interrupted();
	return seen;
}

enum mq_status mq_interrupt_check(struct mq_error *err)
{
	int signo = mq_interrupted();

	if (!signo)
		return MQ_OK;
	return mq_fail(err, MQ_ESTOPPED, "stopped by SIG%s", sigabbrev_np(signo));
}

void mq_interrupt_sleep(unsigned ms)
{
	struct pollfd item = { .fd = fd, .events = POLLIN };

	/* A failure can only cut the sleep short, and every caller looks at the clock again. */
	(void)poll(&item, 1, (int)ms);
}
