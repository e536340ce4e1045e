/* writeall: see writeall.h. For descriptors that block. Any thread. */
#include "src/writeall.h"

#include <errno.h>
#include <unistd.h>

int mq_write_all(int fd, const void *bytes, size_t len)
{
	const char *left = bytes;

	while (len) {
		ssize_t n = write(fd, left, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? errno : EIO;
		left += n;
		len -= (size_t)n;
	}
	return 0;
}
