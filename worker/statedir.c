/* statedir: see statedir.h. */
#include "config.h"

#include "worker/statedir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "src/alive.h"
#include "src/failpoint.h"

#define LOCK "lock"
#define LOCK_TRIES 10

/* File systems whose locks another host may not see (statfs(2), linux/magic.h). */
static const struct {
	unsigned long magic;
	const char *name;
} network_fs[] = {
	{0x6969, "NFS"},         {0xff534d42, "CIFS"},   {0xfe534d42, "SMB2"}, {0x517b, "SMB"},
	{0x00c36400, "Ceph"},    {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"}, {0x5346414f, "AFS"},
	{0x01021997, "9p"},      {0x19830326, "BeeGFS"}, {0x73757245, "Coda"}, {0x7461636f, "OCFS2"},
	{0x01161970, "GFS2"},
};

/* What an errno says of the place that was named: started again, it would be the same. */
static enum mq_status fail_place(struct mq_error *err, int errnum, const char *dir, const char *name)
{
	enum mq_status s = mq_fail_errno(err, errnum, "--state-dir: cannot use %s%s%s", dir, name ? "/" : "",
	                                 name ? name : "");

	switch (errnum) {
	case EACCES:
	case EPERM:
	case EROFS:
	case ENOENT:
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
		return MQ_EINVAL;
	default:
		return s;
	}
}

static enum mq_status check_local(int fd, const char *path, struct mq_error *err)
{
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return mq_fail_errno(err, errno, "%s", path);
	for (size_t i = 0; i < sizeof network_fs / sizeof network_fs[0]; i++)
		if ((unsigned long)(fs.f_type & 0xffffffff) == network_fs[i].magic)
			return mq_fail(err, MQ_EINVAL,
			               "--state-dir: %s is on a network file system (%s), whose locks cannot be "
			               "trusted: choose a local directory",
			               path, network_fs[i].name);
	return MQ_OK;
}

/* A directory's entries, for good. A failure is MQ_ESYNC whatever its errno: what the disk holds is not
 * known any more. */
static enum mq_status sync_entries(int fd, const char *failpoint, const char *what,
                                   struct mq_error *err)
{
	int e = mq_failpoint(failpoint);

	(void)failpoint;
	if (!e && !fsync(fd))
		return MQ_OK;
	(void)mq_fail_errno(err, e ? e : errno, "syncing %s", what);
	return MQ_ESYNC;
}

/* Makes one directory, and its entry in its parent durable. */
static enum mq_status make_one(const char *copy, size_t *made_at, struct mq_error *err)
{
	const char *slash = strrchr(copy, '/');
	char *parent;
	enum mq_status s;
	int e = mq_failpoint("state-mkdir"), fd;

	if (!e && mkdir(copy, 0700))
		e = errno;
	if (e)
		return e == EEXIST ? MQ_OK : fail_place(err, e, copy, NULL);
	if (!*made_at)
		*made_at = strlen(copy);
	parent = slash ? strndup(copy, slash == copy ? 1 : (size_t)(slash - copy)) : strdup(".");
	if (!parent)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s = fd < 0 ? fail_place(err, errno, parent, NULL)
	           : sync_entries(fd, "state-parent-fsync", parent, err);
	if (fd >= 0)
		close(fd);
	free(parent);
	return s;
}

/* As mkdir -p, 0700. *made_at counts on failure too. */
static enum mq_status make_path(const char *path, size_t *made_at, struct mq_error *err)
{
	char *copy = strdup(path), *p;
	enum mq_status s = MQ_OK;

	if (!copy)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	for (p = copy + 1;; p++) {
		char c = *p;

		if (c != '/' && c != '\0')
			continue;
		*p = '\0';
		s = make_one(copy, made_at, err);
		*p = c;
		if (s || c == '\0')
			break;
	}
	free(copy);
	return s;
}

/* All that a start makes in the directory. SQLite takes no log for that of a database that is not there. */
static const char *const made_names[] = {"mandelq.db",      "mandelq.db-wal", "mandelq.db-journal",
                                         MQ_STATEDIR_STUCK, "work",           "pictures",
                                         LOCK};
#define MADE_NAMES (sizeof made_names / sizeof made_names[0])
#define DATABASE 7u /* the bits of the first three: its log is a part of a database */

/* What cannot be seen counts as there. */
static bool is_there(const struct mq_statedir *dir, const char *name)
{
	struct stat st;

	return !fstatat(dir->fd, name, &st, AT_SYMLINK_NOFOLLOW) || errno != ENOENT;
}

static void note_found(struct mq_statedir *dir)
{
	for (size_t i = 0; i < MADE_NAMES; i++)
		if (strcmp(made_names[i], LOCK) && is_there(dir, made_names[i]))
			dir->found |= 1u << i;
	if (dir->found & DATABASE)
		dir->found |= DATABASE;
}

/* A worker that was refused may have taken the file away between our opening and locking it. */
static bool lock_is_named(const struct mq_statedir *dir)
{
	struct stat ours, named;

	return !fstat(dir->lock_fd, &ours) && !fstatat(dir->fd, LOCK, &named, AT_SYMLINK_NOFOLLOW) &&
	       ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

static enum mq_status open_lock(struct mq_statedir *dir, struct mq_error *err)
{
	for (int i = 0; i < LOCK_TRIES; i++) {
		dir->found = is_there(dir, LOCK) ? 1u << (MADE_NAMES - 1) : 0;
		dir->lock_fd = openat(dir->fd, LOCK, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (dir->lock_fd < 0)
			return fail_place(err, errno, dir->path, LOCK);
		if (flock(dir->lock_fd, LOCK_EX | LOCK_NB)) {
			if (errno == EWOULDBLOCK)
				return MQ_EBUSY;
			return mq_fail_errno(err, errno, "locking %s/" LOCK, dir->path);
		}
		if (lock_is_named(dir)) {
			dir->locked = true;
			return MQ_OK;
		}
		close(dir->lock_fd);
		dir->lock_fd = -1;
	}
	return MQ_EBUSY;
}

static enum mq_status take_lock(struct mq_statedir *dir, struct mq_error *err)
{
	char pid[32] = "";
	ssize_t n;
	int e;
	enum mq_status s = open_lock(dir, err);

	if (dir->lock_fd >= 0 && (!s || s == MQ_EBUSY) &&
	    pread(dir->lock_fd, dir->holder, sizeof dir->holder - 1, 0) < 0)
		dir->holder[0] = '\0';
	if (s == MQ_EBUSY) {
		dir->holder[strcspn(dir->holder, "\n")] = '\0';
		return mq_fail(err, MQ_EBUSY,
		               "%s is in use by another mandelqd (process %s): stop it, or choose another "
		               "--state-dir",
		               dir->path, *dir->holder ? dir->holder : "unknown");
	}
	if (s)
		return s;
	note_found(dir);
	n = snprintf(pid, sizeof pid, "%ld\n", (long)getpid());
	e = mq_failpoint("state-lock");
	if (e)
		return mq_fail_errno(err, e, "writing %s/" LOCK, dir->path);
	if (ftruncate(dir->lock_fd, 0) || pwrite(dir->lock_fd, pid, (size_t)n, 0) != n)
		return mq_fail_errno(err, errno, "writing %s/" LOCK, dir->path);
	return MQ_OK;
}

static enum mq_status open_folder(struct mq_statedir *dir, const char *name, int *fd,
                                  struct mq_error *err)
{
	int e = mq_failpoint("state-folder");

	if (e || (mkdirat(dir->fd, name, 0700) && errno != EEXIST))
		return fail_place(err, e ? e : errno, dir->path, name);
	*fd = openat(dir->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (*fd < 0)
		return fail_place(err, errno, dir->path, name);
	return MQ_OK;
}

/* Before anything is changed: whoever uses them later could not tell a wrong place from a broken disk. */
static enum mq_status check_usable(const struct mq_statedir *dir, struct mq_error *err)
{
	enum mq_status s = MQ_OK;

	if (faccessat(dir->fd, ".", R_OK | W_OK | X_OK, AT_EACCESS))
		return fail_place(err, errno, dir->path, NULL);
	for (size_t i = 0; !s && i < MADE_NAMES; i++) {
		struct stat st;
		int mode = R_OK | W_OK;

		if (!fstatat(dir->fd, made_names[i], &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode))
			mode |= X_OK;
		if (faccessat(dir->fd, made_names[i], mode, AT_EACCESS) && errno != ENOENT)
			s = fail_place(err, errno, dir->path, made_names[i]);
	}
	return s;
}

enum mq_status mq_statedir_open(const char *path, struct mq_statedir *out, struct mq_error *err)
{
	struct mq_statedir dir = {.path = strdup(path), .fd = -1, .lock_fd = -1, .work_fd = -1,
	                          .pictures_fd = -1};
	enum mq_status s;

	if (!dir.path)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	s = make_path(path, &dir.made_at, err);
	if (!s) {
		dir.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		s = dir.fd < 0 ? fail_place(err, errno, path, NULL)
		               : check_local(dir.fd, path, err);
	}
	if (!s)
		s = take_lock(&dir, err);
	if (!s)
		s = check_usable(&dir, err);
	if (!s)
		s = open_folder(&dir, "work", &dir.work_fd, err);
	if (!s)
		s = open_folder(&dir, "pictures", &dir.pictures_fd, err);
	if (!s)
		s = sync_entries(dir.fd, "state-fsync", path, err);
	if (s) {
		mq_statedir_undo(&dir);
		mq_statedir_close(&dir);
	} else {
		*out = dir;
	}
	return s;
}

/* Files and folders that are not ours alone any more (not empty) stay, without a word: the start has
 * failed for a better reason. */
static void undo_names(const struct mq_statedir *dir)
{
	size_t len = strlen(dir->holder);

	if (dir->found & 1u << (MADE_NAMES - 1) && !ftruncate(dir->lock_fd, 0) && len)
		(void)!pwrite(dir->lock_fd, dir->holder, len, 0);
	for (size_t i = 0; i < MADE_NAMES; i++)
		if (!(dir->found & 1u << i) && unlinkat(dir->fd, made_names[i], 0))
			(void)unlinkat(dir->fd, made_names[i], AT_REMOVEDIR);
}

void mq_statedir_undo(struct mq_statedir *dir)
{
	size_t len = strlen(dir->path);

	if (dir->locked)
		undo_names(dir);
	while (dir->made_at && len >= dir->made_at && !rmdir(dir->path)) {
		while (len && dir->path[len] != '/')
			len--;
		dir->path[len] = '\0';
	}
}

void mq_statedir_close(struct mq_statedir *dir)
{
	int fds[] = {dir->work_fd, dir->pictures_fd, dir->lock_fd, dir->fd};

	for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	free(dir->path);
	dir->path = NULL;
}

static void job_name(char out[32], int64_t id)
{
	snprintf(out, 32, "%" PRId64, id);
}

enum mq_status mq_statedir_job(int parent, int64_t id, enum mq_make make, int *fd,
                               struct mq_error *err)
{
	char name[32];
	enum mq_status s;

	job_name(name, id);
	if (make != MQ_MAKE_NOT) {
		int e = mq_failpoint("job-mkdir");

		if (e || (mkdirat(parent, name, 0700) && errno != EEXIST))
			return mq_fail_errno(err, e ? e : errno, "cannot make the folder of job %s", name);
	}
	if (make == MQ_MAKE_DURABLE) {
		/* Also when it was there: a process that was killed may not have come to this. */
		s = sync_entries(parent, "job-dirsync", "the folder of a job", err);
		if (s)
			return s;
	}
	*fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (*fd < 0)
		return mq_fail_errno(err, errno, "the folder of job %s", name);
	return MQ_OK;
}

bool mq_statedir_holds(int parent, int64_t id)
{
	char name[32];
	struct dirent *entry;
	bool found = false;
	DIR *d;
	int fd;

	job_name(name, id);
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		if (fd >= 0)
			close(fd);
		return true; /* as far as anybody knows */
	}
	while (!found && (entry = readdir(d)))
		found = entry->d_name[0] != '.';
	closedir(d);
	return found;
}

enum mq_status mq_statedir_remove(int parent, int64_t id, const atomic_bool *stop, struct mq_error *err)
{
	char name[32];
	struct dirent *entry;
	enum mq_status s = MQ_OK;
	DIR *d;
	int fd, e;

	job_name(name, id);
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? MQ_OK : mq_fail_errno(err, errno, "the folder of job %s", name);
	d = fdopendir(fd);
	if (!d) {
		s = mq_fail_errno(err, errno, "the folder of job %s", name);
		close(fd);
		return s;
	}
	while ((entry = readdir(d))) {
		mq_alive();
		if (stop && atomic_load(stop)) {
			s = mq_fail(err, MQ_ECANCELLED, "removing job %s was given up", name);
			break;
		}
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		e = mq_failpoint("tidy-unlink");
		if (e || (unlinkat(fd, entry->d_name, 0) && errno != ENOENT))
			s = mq_fail_errno(err, e ? e : errno, "removing %s of job %s", entry->d_name, name);
	}
	closedir(d);
	e = s ? 0 : mq_failpoint("tidy-rmdir");
	if (!s && (e || (unlinkat(parent, name, AT_REMOVEDIR) && errno != ENOENT)))
		s = mq_fail_errno(err, e ? e : errno, "removing the folder of job %s", name);
	return s;
}

enum mq_status mq_statedir_each(int parent, void (*each)(void *arg, int64_t id), void *arg,
                                struct mq_error *err)
{
	int fd = openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!d) {
		enum mq_status s = mq_fail_errno(err, errno, "listing the state directory");

		if (fd >= 0)
			close(fd);
		return s;
	}
	while ((entry = readdir(d))) {
		char *end;
		long long id = strtoll(entry->d_name, &end, 10);

		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && *end == '\0')
			each(arg, id);
	}
	closedir(d);
	return MQ_OK;
}
