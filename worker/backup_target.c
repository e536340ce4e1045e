/* backup_target: see backup_target.h. A rename replaces whatever has the name, a device or the live
 * database too: so it is looked at first, and again before the rename. */
#include "config.h"

#include "worker/backup_target.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MAX 4096 /* folders above one another */

static const int ending[] = {SIGINT, SIGTERM, SIGHUP};

/* What a signal takes away: a copy may be large. */
static char *volatile doomed;

static void end_by_signal(int number)
{
	if (doomed)
		(void)unlink(doomed);
	(void)raise(number); /* the action is the default one again (SA_RESETHAND) */
}

static void watch_signals(void)
{
	struct sigaction old, mine = {.sa_handler = end_by_signal, .sa_flags = (int)SA_RESETHAND};

	for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++)
		if (!sigaction(ending[i], NULL, &old) && old.sa_handler == SIG_DFL)
			(void)sigaction(ending[i], &mine, NULL);
}

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* There is something: may it be replaced? */
static enum mq_status check_found(const char *file, const struct stat *st, int state,
                                  const char *state_dir, struct mq_error *err)
{
	static const char *const names[] = {"mandelq.db", "mandelq.db-wal", "mandelq.db-journal",
	                                    "mandelq.db-shm", "lock"};
	struct stat own;

	if (S_ISLNK(st->st_mode))
		return mq_fail(err, MQ_EINVAL, "--backup: %s is a symbolic link: name the file itself", file);
	if (!S_ISREG(st->st_mode))
		return mq_fail(err, MQ_EINVAL, "--backup: %s exists and is no plain file: it is left alone",
		               file);
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (!fstatat(state, names[i], &own, AT_SYMLINK_NOFOLLOW) && same(st, &own))
			return mq_fail(err, MQ_EINVAL, "--backup: %s is the worker's own %s/%s: it is left alone",
			               file, state_dir, names[i]);
	return MQ_OK;
}

/* A worker's state directory is known by what it holds. */
static bool is_state_dir(int fd)
{
	static const char *const names[] = {"mandelq.db", "lock", "work", "pictures"};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (faccessat(fd, names[i], F_OK, AT_SYMLINK_NOFOLLOW))
			return false;
	return true;
}

/* Looks at the folder and at all above it, so that it does not matter by which path they are named. */
static enum mq_status check_place(const struct mq_backup_target *t, int state, struct mq_error *err)
{
	int fd = openat(t->dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC), up;
	struct stat here, above, own;
	enum mq_status s = MQ_OK;

	if (fd < 0 || fstat(fd, &here) || fstat(state, &own))
		s = mq_fail_errno(err, errno, "--backup: %s", t->folder);
	for (int i = 0; !s && i < DEPTH_MAX; i++) {
		if (same(&here, &own) || is_state_dir(fd)) {
			s = mq_fail(err, MQ_EINVAL,
			            "--backup: %s lies in a worker's state directory: choose another folder",
			            t->file);
			break;
		}
		up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (up < 0)
			break; /* it may not be looked at: then it is none of ours */
		close(fd);
		fd = up;
		if (fstat(fd, &above) || same(&above, &here))
			break; /* the root */
		here = above;
	}
	if (fd >= 0)
		close(fd);
	return s;
}

static enum mq_status check(const struct mq_backup_target *t, struct mq_error *err)
{
	const char *slash = strrchr(t->file, '/'), *base = slash ? slash + 1 : t->file;
	int state = open(t->state_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	enum mq_status s = MQ_OK;

	if (state < 0)
		return mq_fail_errno(err, errno, "--backup: %s", t->state_dir);
	if (!*base)
		s = mq_fail(err, MQ_EINVAL, "--backup: \"%s\" is no file's name", t->file);
	else if (!fstatat(t->dir, base, &st, AT_SYMLINK_NOFOLLOW))
		s = check_found(t->file, &st, state, t->state_dir, err);
	else if (errno != ENOENT)
		s = mq_fail_errno(err, errno, "--backup: %s", t->file);
	if (!s)
		s = check_place(t, state, err);
	close(state);
	return s;
}

enum mq_status mq_backup_target_open(struct mq_backup_target *t, const char *state_dir, const char *file,
                                     struct mq_error *err)
{
	char *copy = strdup(file);
	enum mq_status s;

	*t = (struct mq_backup_target){.state_dir = state_dir, .file = file, .dir = -1, .fd = -1};
	t->folder = copy ? strdup(dirname(copy)) : NULL;
	free(copy);
	if (!t->folder || asprintf(&t->temporary, "%s/.mandelqd-XXXXXX", t->folder) < 0) {
		t->temporary = NULL;
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	}
	t->dir = open(t->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->dir < 0)
		return mq_fail_errno(err, errno, "--backup: %s", t->folder);
	s = check(t, err);
	if (s)
		return s;
	t->fd = mkostemp(t->temporary, O_CLOEXEC);
	if (t->fd < 0)
		return mq_fail_errno(err, errno, "--backup: cannot make a file in %s", t->folder);
	doomed = t->temporary;
	watch_signals();
	return MQ_OK;
}

enum mq_status mq_backup_target_commit(struct mq_backup_target *t, struct mq_error *err)
{
	enum mq_status s = check(t, err);

	if (!s && fsync(t->fd))
		s = mq_fail_errno(err, errno, "syncing %s", t->temporary);
	if (!s && rename(t->temporary, t->file))
		s = mq_fail_errno(err, errno, "giving %s its name", t->file);
	if (s)
		return s;
	doomed = NULL;
	free(t->temporary);
	t->temporary = NULL;
	/* Some file systems have no sync of directories. */
	if (fsync(t->dir) && errno != EINVAL)
		s = mq_fail_errno(err, errno, "syncing the directory of %s", t->file);
	if (close(t->fd) && !s)
		s = mq_fail_errno(err, errno, "closing %s", t->file);
	t->fd = -1;
	return s;
}

void mq_backup_target_close(struct mq_backup_target *t)
{
	if (t->fd >= 0) {
		(void)close(t->fd);
		(void)unlink(t->temporary);
	}
	if (t->dir >= 0)
		(void)close(t->dir);
	doomed = NULL;
	free(t->folder);
	free(t->temporary);
}
