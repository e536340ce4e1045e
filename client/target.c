/* target: a file without a name where there can be one, so that a kill leaves nothing behind; else a
 * temporary one beside it. Then fsync, its name, fsync of the directory. Called by download.c, cmd_fetch.c
 * and cmd_render.c. Errors are about local files, so none is MQ_ENOENT (that is a missing job). */
#include "config.h"

#include "client/target.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/interrupt.h"

#define TEMPORARY ".mandelq-"
#define LINKS_MAX 40 /* as the kernel follows */

struct mq_target {
	char *path, *name; /* name: the last part of path; NULL when written directly */
	char temporary[sizeof(TEMPORARY) + 16]; /* its name meanwhile; empty: it has none */
	int fd, dir;
	bool force, direct;
};

static enum mq_status fail(struct mq_error *err, const char *what, const char *path)
{
	int errnum = errno;
	enum mq_status status = mq_fail_errno(err, errnum, "%s %s", what, path);

	return status == MQ_ENOENT ? MQ_EIO : status;
}

static enum mq_status no_memory(struct mq_error *err)
{
	return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a file's name");
}

/* dir and base of path; both the caller's. False: memory is out. */
static bool split(const char *path, char **dir, char **base)
{
	char *a = strdup(path), *b = strdup(path);

	*dir = a ? strdup(dirname(a)) : NULL;
	*base = b ? strdup(basename(b)) : NULL;
	free(a);
	free(b);
	if (*dir && *base)
		return true;
	free(*dir);
	free(*base);
	*dir = *base = NULL;
	return false;
}

/* The absolute path of a file that need not exist; its directory must. */
static enum mq_status absolute(const char *file, char **path, struct mq_error *err)
{
	char *dir = NULL, *base = NULL, *full = NULL;
	enum mq_status status = MQ_OK;

	if (!split(file, &dir, &base))
		return no_memory(err);
	full = realpath(dir, NULL);
	if (!full)
		status = fail(err, "cannot write to the directory", dir);
	else if (access(full, W_OK | X_OK) != 0)
		status = fail(err, "cannot write to the directory", full);
	else if (asprintf(path, "%s/%s", strcmp(full, "/") ? full : "", base) < 0)
		status = no_memory(err);
	free(dir);
	free(base);
	free(full);
	return status;
}

/* The file that a symbolic link, of which nothing need be there, stands for in the end. */
static enum mq_status follow(const char *link, char **path, struct mq_error *err)
{
	char target[PATH_MAX], *at = strdup(link);
	enum mq_status status = MQ_OK;
	ssize_t len = 0;
	int links = 0;

	while (at && (len = readlink(at, target, sizeof(target))) >= 0 && links++ < LINKS_MAX) {
		char *dir = NULL, *base = NULL, *next = NULL;

		if ((size_t)len == sizeof(target) || len == 0)
			break;
		if (target[0] == '/')
			next = strndup(target, (size_t)len);
		else if (!split(at, &dir, &base) || asprintf(&next, "%s/%.*s", dir, (int)len, target) < 0)
			next = NULL;
		free(dir);
		free(base);
		free(at);
		at = next;
	}
	if (!at) {
		status = no_memory(err);
	} else if (len >= 0) {
		errno = ELOOP;
		status = fail(err, "cannot follow", link);
	} else if (at[strlen(at) - 1] == '/') {
		status = mq_fail(err, MQ_EIO, "cannot write %s: it leads to no file's name", link);
	} else {
		status = absolute(at, path, err);
	}
	free(at);
	return status;
}

enum mq_status mq_target_check(const char *file, bool force, char **path, struct mq_error *err)
{
	struct stat st;

	if (strcmp(file, "-") == 0) {
		if (isatty(STDOUT_FILENO))
			return mq_fail(
				err, MQ_EINVAL,
				"-o -: standard output is a terminal, and a picture is no text");
		*path = strdup("-");
		return *path ? MQ_OK : no_memory(err);
	}
	if (!file[0] || file[strlen(file) - 1] == '/')
		return mq_fail(err, MQ_EINVAL, "-o: \"%s\" is no file's name", file);
	if (lstat(file, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			return mq_fail(err, MQ_EIO, "cannot write %s: it is a directory", file);
		if (!force)
			return mq_fail(err, MQ_ESTATE, "%s exists; --force replaces it", file);
		if (S_ISLNK(st.st_mode) && stat(file, &st) == 0) {
			if (S_ISDIR(st.st_mode))
				return mq_fail(err, MQ_EIO, "cannot write %s: it is a directory",
					       file);
			*path = realpath(file, NULL);
			return *path ? MQ_OK : fail(err, "cannot write", file);
		}
		if (S_ISLNK(st.st_mode))
			return follow(file, path, err);
		if (!S_ISREG(st.st_mode)) {
			*path = realpath(file, NULL);
			return *path ? MQ_OK : fail(err, "cannot write", file);
		}
	} else if (errno != ENOENT) {
		return fail(err, "cannot write", file);
	}
	return absolute(file, path, err);
}

/* The permissions that open(2) would give. */
static mode_t usual_mode(void)
{
	mode_t mask = umask(0);

	umask(mask);
	return 0666 & ~mask;
}

/* Calls make with new names until one is free; it makes the file of that name. False: errno. */
static bool make_temporary(struct mq_target *t, int (*make)(struct mq_target *t, const char *name))
{
	char name[sizeof(t->temporary)];
	int rc = -1;

	for (int tries = 0; rc != 0 && tries < 100; tries++) {
		uint64_t number;

		if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
			return false;
		snprintf(name, sizeof(name), TEMPORARY "%016" PRIx64, number);
		rc = make(t, name);
		if (rc != 0 && errno != EEXIST)
			return false;
	}
	if (rc == 0)
		memcpy(t->temporary, name, sizeof(name));
	return rc == 0;
}

static int make_file(struct mq_target *t, const char *name)
{
	t->fd = openat(t->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return t->fd >= 0 ? 0 : -1;
}

/* A name for the file that has none: linkat() by descriptor alone would need a capability. */
static int link_file(struct mq_target *t, const char *name)
{
	char self[40];

	snprintf(self, sizeof(self), "/proc/self/fd/%d", t->fd);
	return linkat(AT_FDCWD, self, t->dir, name, AT_SYMLINK_FOLLOW);
}

/* False where the file system has no such files, or /proc is not there to name it by later. */
static bool open_unnamed(struct mq_target *t)
{
	struct stat st;
	char self[40];

	t->fd = openat(t->dir, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
	if (t->fd < 0)
		return false;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", t->fd);
	if (stat(self, &st) == 0)
		return true;
	close(t->fd);
	t->fd = -1;
	return false;
}

static enum mq_status open_temporary(struct mq_target *t, struct mq_error *err)
{
	char *dir = NULL;
	enum mq_status status = MQ_OK;

	if (!split(t->path, &dir, &t->name))
		return no_memory(err);
	t->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->dir < 0)
		status = fail(err, "cannot open the directory", dir);
	else if (!open_unnamed(t) && !make_temporary(t, make_file))
		status = fail(err, "cannot make a file in", dir);
	else if (fchmod(t->fd, usual_mode()) != 0)
		status = fail(err, "cannot set the mode of a file in", dir);
	free(dir);
	return status;
}

/* One that is not open for writing would never become ready to be written. */
static enum mq_status open_stdout(struct mq_target *t, struct mq_error *err)
{
	int flags = fcntl(STDOUT_FILENO, F_GETFL);

	if (flags >= 0 && ((flags & O_ACCMODE) == O_RDONLY || (flags & O_PATH)))
		errno = EBADF;
	else if (flags >= 0)
		t->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	return t->fd >= 0 ? MQ_OK : fail(err, "cannot use", "standard output");
}

enum mq_status mq_target_open(const char *path, bool force, struct mq_target **out,
			      struct mq_error *err)
{
	struct mq_target *t = calloc(1, sizeof(*t));
	enum mq_status status = MQ_OK;
	struct stat st;

	if (!t)
		return no_memory(err);
	t->fd = t->dir = -1;
	t->force = force;
	t->path = strdup(path);
	if (!t->path) {
		status = no_memory(err);
	} else if (strcmp(path, "-") == 0) {
		t->direct = true;
		status = open_stdout(t, err);
	} else if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
		t->direct = true;
		t->fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY |
					   O_CLOEXEC); /* a pipe may have no reader */
		if (t->fd < 0)
			status = fail(err, "cannot open", path);
	} else {
		status = open_temporary(t, err);
	}
	if (status == MQ_OK)
		*out = t;
	else
		mq_target_close(t);
	return status;
}

/* Waits until a pipe takes PIPE_BUF bytes, or a signal comes. *broken: there is nothing to wait for, and a
 * write that would wait is a failure. */
static enum mq_status wait_writable(struct mq_target *t, bool *broken, struct mq_error *err)
{
	struct pollfd items[2] = {
		{ .fd = t->fd, .events = POLLOUT },
		{ .fd = mq_interrupt_fd(), .events = POLLIN },
	};
	enum mq_status status = mq_interrupt_check(err);

	while (status == MQ_OK && !items[0].revents) {
		if (poll(items, 2, -1) < 0 && errno != EINTR)
			return fail(err, "cannot wait for", t->path);
		status = mq_interrupt_check(err);
	}
	*broken = items[0].revents & (POLLERR | POLLHUP | POLLNVAL);
	return status;
}

enum mq_status mq_target_write(struct mq_target *target, const void *bytes, size_t len,
			       struct mq_error *err)
{
	const char *p = bytes;
	enum mq_status status = MQ_OK;

	while (len > 0) {
		size_t part = target->direct && len > PIPE_BUF ? PIPE_BUF : len;
		bool broken = false;
		ssize_t n;

		if (target->direct)
			status = wait_writable(target, &broken, err);
		if (status != MQ_OK)
			return status;
		n = write(target->fd, p, part);
		if (n < 0 && errno != EINTR && (errno != EAGAIN || broken))
			return fail(err, "cannot write", target->path);
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return MQ_OK;
}

/* The file has path as its only name when this succeeds. */
static int rename_file(struct mq_target *t)
{
	int rc;

	if (t->force) {
		rc = renameat(t->dir, t->temporary, t->dir, t->name);
	} else {
		rc = renameat2(t->dir, t->temporary, t->dir, t->name, RENAME_NOREPLACE);
		if (rc != 0 && (errno == EINVAL || errno == ENOSYS)) { /* not on this file system */
			rc = linkat(t->dir, t->temporary, t->dir, t->name, 0);
			if (rc == 0)
				rc = unlinkat(t->dir, t->temporary, 0);
		}
	}
	if (rc == 0)
		t->temporary[0] = '\0';
	return rc;
}

/* Gives the file its name; without force only if there is no such file. */
static enum mq_status give_name(struct mq_target *t, struct mq_error *err)
{
	int rc = -1;

	if (t->temporary[0]) {
		rc = rename_file(t);
	} else {
		rc = link_file(t, t->name);
		/* A link cannot replace a file, so there is a second name for a moment. */
		if (rc != 0 && errno == EEXIST && t->force)
			rc = make_temporary(t, link_file) ? rename_file(t) : -1;
	}
	if (rc != 0 && errno == EEXIST && !t->force)
		return mq_fail(err, MQ_ESTATE, "%s has appeared meanwhile; --force replaces it", t->path);
	return rc == 0 ? MQ_OK : fail(err, "cannot give a file its name", t->path);
}

/* What is written directly may be a pipe, which has no sync. */
static enum mq_status commit_direct(struct mq_target *t, struct mq_error *err)
{
	int rc;

	if (fsync(t->fd) != 0 && errno != EINVAL && errno != EROFS)
		return fail(err, "cannot write", t->path);
	rc = close(t->fd);
	t->fd = -1;
	return rc == 0 ? MQ_OK : fail(err, "cannot write", t->path);
}

enum mq_status mq_target_commit(struct mq_target *target, struct mq_error *err)
{
	enum mq_status status;

	if (target->direct)
		return commit_direct(target, err);
	if (fsync(target->fd) != 0)
		return fail(err, "cannot write", target->path);
	status = give_name(target, err);
	/* Some file systems have no sync of directories; the file itself is safe. */
	if (status == MQ_OK && fsync(target->dir) != 0 && errno != EINVAL)
		status = fail(err, "cannot write the directory of", target->path);
	return status;
}

void mq_target_close(struct mq_target *target)
{
	if (!target)
		return;
	if (target->fd >= 0)
		close(target->fd);
	if (target->temporary[0])
		(void)unlinkat(target->dir, target->temporary, 0);
	if (target->dir >= 0)
		close(target->dir);
	free(target->name);
	free(target->path);
	free(target);
}
