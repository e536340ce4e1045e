/* process: see process.h. Called by main of both programs. */
#include "src/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* The lowest free descriptor is the one that is wanted, because those below are taken. */
static void take(int fd, int mode)
{
	if (fcntl(fd, F_GETFD) != -1 || errno != EBADF)
		return;
	/* Where there is no /dev: of a directory nothing can be read or written. */
	if (open("/dev/null", mode) != fd && open("/", O_RDONLY | O_DIRECTORY) != fd)
		_exit(EXIT_FAILURE); /* and nobody to tell it */
}

void mq_process_begin(void)
{
	take(STDIN_FILENO, O_WRONLY);
	take(STDOUT_FILENO, O_RDONLY);
	take(STDERR_FILENO, O_WRONLY);
	(void)umask(umask(077) & 077);
	(void)signal(SIGXFSZ, SIG_IGN);
}
