/* shim: a disk that forgets. Loaded into mandelqd by LD_PRELOAD (powerloss.py builds it); keeps under
 * $MQ_SHIM_SHADOW what has been synced of each file and directory, and kills the process at its n-th
 * sync, before that has any effect. What then counts as being on the disk is
 *   inodes/KEY   the contents of a file as of its last fsync or fdatasync
 *   dirs/KEY     the entries of a directory as of its last fsync: a line "TYPE KEY NAME" each
 * where KEY is inode and birth time, because an inode's number is used again. $MQ_SHIM_STOP is n; 0
 * kills never, and count then holds the number of syncs. Any thread may sync: one at a time. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long syncs;

static void die(const char *what)
{
	dprintf(STDERR_FILENO, "shim: %s: %s\n", what, strerror(errno));
	_exit(99);
}

static char key_of(int dirfd, const char *name, char key[80])
{
	struct statx st;
	int flags = *name ? AT_SYMLINK_NOFOLLOW : AT_EMPTY_PATH;

	if (statx(dirfd, name, flags, STATX_INO | STATX_BTIME | STATX_TYPE, &st))
		return 0; /* gone meanwhile */
	snprintf(key, 80, "%llu-%lld-%u", (unsigned long long)st.stx_ino,
		 (long long)st.stx_btime.tv_sec, st.stx_btime.tv_nsec);
	return S_ISDIR(st.stx_mode) ? 'd' : S_ISREG(st.stx_mode) ? 'f' : 'o';
}

/* A file of the shadow, under a temporary name until it is whole. */
static int shadow_open(const char *kind, const char *key, char path[600], char temporary[640])
{
	snprintf(path, 600, "%s/%s/%s", getenv("MQ_SHIM_SHADOW"), kind, key);
	snprintf(temporary, 640, "%s.new", path);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		die(temporary);
	return fd;
}

static void keep_file(int fd, const char *key)
{
	char path[600], temporary[640], self[64];
	static char buffer[1 << 16];
	int out = shadow_open("inodes", key, path, temporary);
	ssize_t n;

	/* A description of our own: the program's may be write-only. */
	snprintf(self, sizeof self, "/proc/self/fd/%d", fd);
	int in = open(self, O_RDONLY | O_CLOEXEC);
	if (in < 0)
		die(self);
	while ((n = read(in, buffer, sizeof buffer)) > 0)
		if (write(out, buffer, (size_t)n) != n)
			die(path);
	close(in);
	close(out);
	if (rename(temporary, path))
		die(path);
}

static void keep_entries(int fd, const char *key)
{
	char path[600], temporary[640], type, child[80];
	int out = shadow_open("dirs", key, path, temporary);
	int in = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = in < 0 ? NULL : fdopendir(in);
	struct dirent *entry;

	if (!d)
		die("listing");
	while ((entry = readdir(d))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		type = key_of(in, entry->d_name, child);
		if (type)
			dprintf(out, "%c %s %s\n", type, child, entry->d_name);
	}
	closedir(d);
	close(out);
	if (rename(temporary, path))
		die(path);
}

static int synced(int fd, const char *name)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);
	const char *stop = getenv("MQ_SHIM_STOP");
	char key[80], type;
	int rc;

	pthread_mutex_lock(&lock);
	syncs++;
	if (stop && atol(stop) == syncs) {
		kill(getpid(), SIGKILL);
		pause();
	}
	rc = real(fd);
	if (!rc) {
		type = key_of(fd, "", key);
		if (type == 'd')
			keep_entries(fd, key);
		else if (type == 'f')
			keep_file(fd, key);
		char path[600], temporary[640];
		int out = shadow_open(".", "count", path, temporary);
		dprintf(out, "%ld\n", syncs);
		close(out);
		if (rename(temporary, path))
			die(path);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

int fsync(int fd)
{
	return synced(fd, "fsync");
}

int fdatasync(int fd)
{
	return synced(fd, "fdatasync");
}
