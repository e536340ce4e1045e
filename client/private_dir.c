/* private_dir: making, locking and removing. Called by private.c. The lock file is also the mark by
 * which a directory is known to be ours: without it nothing is taken over, and nothing removed. */
#include "config.h"

#include "client/private_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK_NAME "render.lock"
#define DEPTH_MAX 8
#define SUFFIX ".mandelq"
#define KEPT_BYTES 16 /* of a long name: a socket's path in the directory must stay short */

uint64_t mq_private_dir_hash(const char *text)
{
	uint64_t hash = 14695981039346656037u; /* FNV-1a */

	for (const char *p = text; *p; p++)
		hash = (hash ^ (unsigned char)*p) * 1099511628211u;
	return hash;
}

/* How many bytes the name of an entry of dir may have. */
static size_t name_max(const char *dir)
{
	long max = pathconf(dir, _PC_NAME_MAX);

	return max > 0 ? (size_t)max : 255;
}

/* Caller frees; NULL: memory is out. */
static char *path_of(const char *picture)
{
	const char *base = strrchr(picture, '/') + 1;
	char *path, *dir = strndup(picture, (size_t)(base - picture));
	int kept = KEPT_BYTES, n;

	if (!dir)
		return NULL;
	if (1 + strlen(base) + strlen(SUFFIX) <= name_max(dir)) {
		n = asprintf(&path, "%s.%s" SUFFIX, dir, base);
	} else {
		while (kept > 0 && ((unsigned char)base[kept] & 0xc0) == 0x80)
			kept--; /* not within a character */
		n = asprintf(&path, "%s.%.*s~%016llx" SUFFIX, dir, kept, base,
			     (unsigned long long)mq_private_dir_hash(base));
	}
	free(dir);
	return n < 0 ? NULL : path;
}

bool mq_private_dir_exists(const char *picture)
{
	char *path = path_of(picture);
	struct stat st;
	bool found = path && lstat(path, &st) == 0 && S_ISDIR(st.st_mode);

	free(path);
	return found;
}

static enum mq_status fail(struct mq_error *err, const char *what, const char *path)
{
	int errnum = errno;
	enum mq_status status = mq_fail_errno(err, errnum, "%s %s", what, path);

	return status == MQ_ENOENT ? MQ_EIO : status;
}

static bool is_empty(int fd)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);
	struct dirent *entry;
	bool empty = dir != NULL;

	if (!dir && copy >= 0)
		close(copy);
	while (empty && (entry = readdir(dir)))
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	if (dir)
		closedir(dir);
	return empty;
}

/* A directory that only its owner, us, can use, with our mark or nothing in it. */
static bool is_ours(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 077) == 0 &&
	       (faccessat(fd, LOCK_NAME, F_OK, AT_SYMLINK_NOFOLLOW) == 0 || is_empty(fd));
}

/* One try. *again: it was removed by its last user while we came. */
static enum mq_status try_open(const char *path, struct mq_private_dir *d, bool *again,
			       struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	struct stat st;

	*again = false;
	d->existed = mkdir(path, 0700) != 0;
	if (d->existed && errno != EEXIST)
		return fail(err, "cannot make the directory", path);
	d->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (d->fd < 0) {
		*again = errno == ENOENT;
		status = fail(err, "cannot use the directory", path);
		if (!d->existed)
			(void)rmdir(path);
		return status;
	}
	if (!is_ours(d->fd)) {
		status = mq_fail(err, MQ_EIO,
				 "%s is in the way: it is no private directory of a render", path);
		goto out;
	}
	d->lock = openat(d->fd, LOCK_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (d->lock < 0) {
		*again = errno == ENOENT;
		status = fail(err, "cannot make a file in", path);
		goto out;
	}
	if (flock(d->lock, LOCK_EX | LOCK_NB) != 0) {
		status = errno == EWOULDBLOCK
				 ? mq_fail(err, MQ_EBUSY,
					   "another mandelq render is at work on this picture (%s)",
					   path)
				 : fail(err, "cannot lock", path);
	} else if (fstat(d->lock, &st) != 0 || st.st_nlink == 0) {
		*again = true;
		status = mq_fail(err, MQ_EBUSY, "another mandelq render has just ended (%s)", path);
	}
	if (status != MQ_OK)
		close(d->lock);
out:
	if (status != MQ_OK)
		close(d->fd);
	if (status != MQ_OK && !d->existed)
		(void)rmdir(path); /* unless somebody is in it already */
	return status;
}

enum mq_status mq_private_dir_open(const char *picture, struct mq_private_dir *out,
				   struct mq_error *err)
{
	struct mq_private_dir d = { .path = path_of(picture) };
	enum mq_status status = MQ_EBUSY;
	bool again = true;

	if (!d.path)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	for (int i = 0; i < 3 && again && status != MQ_OK; i++)
		status = try_open(d.path, &d, &again, err);
	if (status == MQ_OK)
		*out = d;
	else
		free(d.path);
	return status;
}

/* Empties the directory fd, which is consumed. What cannot be removed stays. */
static void empty(int fd, dev_t device, unsigned depth)
{
	DIR *dir = fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		close(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		struct stat st;
		int child;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (depth == 0 && strcmp(entry->d_name, LOCK_NAME) == 0)
			continue; /* last, so that the directory stays ours until it is empty */
		if (fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    st.st_dev != device)
			continue;
		if (!S_ISDIR(st.st_mode)) {
			unlinkat(fd, entry->d_name, 0);
			continue;
		}
		child = openat(fd, entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (child >= 0 && depth < DEPTH_MAX)
			empty(child, device, depth + 1);
		else if (child >= 0)
			close(child);
		unlinkat(fd, entry->d_name, AT_REMOVEDIR);
	}
	closedir(dir);
}

void mq_private_dir_remove(struct mq_private_dir *dir)
{
	struct stat st;
	int fd;

	if (!dir->path || fstat(dir->fd, &st) != 0)
		return;
	fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		empty(fd, st.st_dev, 0);
	unlinkat(dir->fd, LOCK_NAME, 0);
	rmdir(dir->path);
}

void mq_private_dir_close(struct mq_private_dir *dir)
{
	if (!dir->path)
		return;
	close(dir->lock);
	close(dir->fd);
	free(dir->path);
	dir->path = NULL;
}
