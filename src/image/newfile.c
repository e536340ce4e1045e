/* newfile: see newfile.h. A failed fsync is never tried again, and is MQ_ESYNC whatever its errno: what
 * the disk holds is not known any more, also when it only was full. */
#include "config.h"

#include "src/image/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "src/failpoint.h"

enum mq_status mq_newfile_create(struct mq_newfile *file, int dirfd, const char *name,
                                 const struct mq_newfile_kind *kind, struct mq_error *err)
{
	int error = mq_failpoint(kind->create);
	int n = snprintf(file->temporary, sizeof file->temporary, ".%s.tmp", name);

	if (n < 0 || (size_t)n >= sizeof file->temporary)
		return mq_fail(err, MQ_EINTERNAL, "%s has too long a name", kind->what);
	snprintf(file->name, sizeof file->name, "%s", name);
	file->dirfd = dirfd;
	file->kind = kind;
	if (!error && unlinkat(dirfd, file->temporary, 0) != 0 && errno != ENOENT)
		error = errno;
	if (!error) {
		file->fd = openat(dirfd, file->temporary,
		                  O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		error = file->fd < 0 ? errno : 0;
	}
	if (error)
		return mq_fail_errno(err, error, "cannot create %s %s", kind->what, name);
	return MQ_OK;
}

void mq_newfile_abort(struct mq_newfile *file)
{
	/* Nothing can be done about a failure here: a later create or recovery removes what is left. */
	(void)unlinkat(file->dirfd, file->temporary, 0);
	(void)close(file->fd);
}

/* fsync, unless the failpoint says that it failed. 0 or an errno. */
static int sync_step(const char *failpoint, int fd)
{
	int error = mq_failpoint(failpoint);

	(void)failpoint; /* unused when failpoints are not built */
	if (!error && fsync(fd) != 0)
		error = errno;
	return error;
}

enum mq_status mq_newfile_commit(struct mq_newfile *file, struct mq_error *err)
{
	const struct mq_newfile_kind *kind = file->kind;
	int error = sync_step(kind->fsync, file->fd);

	if (error) {
		mq_newfile_abort(file);
		(void)mq_fail_errno(err, error, "cannot sync %s %s", kind->what, file->name);
		return MQ_ESYNC;
	}
	error = mq_failpoint(kind->rename);
	if (!error && renameat(file->dirfd, file->temporary, file->dirfd, file->name) != 0)
		error = errno;
	if (error) {
		mq_newfile_abort(file);
		return mq_fail_errno(err, error, "cannot rename %s %s", kind->what, file->name);
	}
	error = sync_step(kind->dirsync, file->dirfd);
	if (close(file->fd) != 0 && !error)
		error = errno;
	if (error) {
		(void)unlinkat(file->dirfd, file->name, 0);
		(void)mq_fail_errno(err, error, "cannot sync the directory of %s %s", kind->what,
		                    file->name);
		return MQ_ESYNC;
	}
	return MQ_OK;
}
