/* keyfile: see keyfile.h. Called by the keygen commands and by whoever opens a CURVE socket. */
#include "config.h" /* asprintf, explicit_bzero */

#include "src/keyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#define PUBLIC "public-key"
#define SECRET "secret-key"
#define FILE_MAX 1024

static const char z85[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";

bool mq_key_valid(const char *text)
{
	unsigned char bytes[32];

	/* libzmq's decoder looks at neither the length nor, in some versions, the characters. */
	return strlen(text) == MQ_KEY_SIZE - 1 && strspn(text, z85) == MQ_KEY_SIZE - 1 &&
	       zmq_z85_decode(bytes, text);
}

/* Takes the value of "NAME VALUE" if the line is one and the value a key. */
static void take_line(const char *line, const char *name, char out[MQ_KEY_SIZE])
{
	size_t len = strlen(name);

	if (strncmp(line, name, len) == 0 && line[len] == ' ' && mq_key_valid(line + len + 1))
		memcpy(out, line + len + 1, MQ_KEY_SIZE);
}

static enum mq_status parse(char *text, const char *path, struct mq_keypair *out, struct mq_error *err)
{
	struct mq_keypair pair = { "", "" };
	char expected[MQ_KEY_SIZE], *save = NULL;
	enum mq_status status = MQ_OK;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		take_line(line, PUBLIC, pair.public_key);
		take_line(line, SECRET, pair.secret_key);
	}
	if (!pair.public_key[0] || !pair.secret_key[0] ||
	    zmq_curve_public(expected, pair.secret_key) != 0 || strcmp(expected, pair.public_key) != 0)
		status = mq_fail(err, MQ_EINVAL, "%s has no key pair in it", path);
	else
		*out = pair;
	explicit_bzero(&pair, sizeof(pair));
	return status;
}

enum mq_status mq_keyfile_read(const char *path, struct mq_keypair *out, struct mq_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char text[FILE_MAX] = "";
	enum mq_status status;
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return mq_fail_errno(err, errno, "%s", path);
	if (fstat(fd, &st) != 0) {
		status = mq_fail_errno(err, errno, "%s", path);
	} else if (!S_ISREG(st.st_mode)) {
		status = mq_fail(err, MQ_EINVAL, "%s is no file", path);
	} else if (st.st_mode & 077) {
		status = mq_fail(err, MQ_EINVAL,
		                 "%s is a secret that others may read: chmod 600 it, or make another", path);
	} else {
		n = read(fd, text, sizeof(text) - 1);
		status = n < 0 ? mq_fail_errno(err, errno, "reading %s", path) : parse(text, path, out, err);
	}
	explicit_bzero(text, sizeof(text));
	close(fd);
	return status;
}

/* As mkdir -p, 0700. */
static enum mq_status make_directories(const char *path, struct mq_error *err)
{
	char *copy = strdup(path);
	enum mq_status status = MQ_OK;

	if (!copy)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	for (char *p = copy + 1; status == MQ_OK; p++) {
		char c = *p;

		if (c != '/' && c != '\0')
			continue;
		*p = '\0';
		if (mkdir(copy, 0700) != 0 && errno != EEXIST)
			status = mq_fail_errno(err, errno, "cannot make %s", copy);
		*p = c;
		if (c == '\0')
			break;
	}
	free(copy);
	return status;
}

/* The text, for good, in a file that is new and nobody else's. */
static enum mq_status write_new(int fd, int dir_fd, const char *text, const char *path,
                                struct mq_error *err)
{
	struct stat dir;

	if (fstat(dir_fd, &dir) != 0 || (geteuid() == 0 && fchown(fd, dir.st_uid, dir.st_gid) != 0) ||
	    write(fd, text, strlen(text)) != (ssize_t)strlen(text) || fsync(fd) != 0)
		return mq_fail_errno(err, errno, "writing %s", path);
	return MQ_OK;
}

/* Whether a file is one of keys, damaged or not, or has nothing in it to lose. False with errno 0: neither. */
static bool is_keyfile(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	char text[FILE_MAX];
	ssize_t n;
	bool found;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text));
	found = n == 0 || (n > 0 && (memmem(text, (size_t)n, PUBLIC " ", strlen(PUBLIC " ")) ||
	                             memmem(text, (size_t)n, SECRET " ", strlen(SECRET " "))));
	if (n >= 0)
		errno = 0;
	explicit_bzero(text, sizeof(text));
	close(fd);
	return found;
}

/* A rename replaces anything: a device, a link, a picture. */
static enum mq_status check_replaced(const char *path, struct mq_error *err)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return errno == ENOENT ? MQ_OK : mq_fail_errno(err, errno, "%s", path);
	errno = 0;
	if (S_ISREG(st.st_mode) && is_keyfile(path))
		return MQ_OK;
	if (errno != 0)
		return mq_fail_errno(err, errno, "%s", path);
	return mq_fail(err, MQ_EINVAL, "%s is no file of keys, which is all that --force replaces", path);
}

static enum mq_status put_in_place(int dir_fd, const char *from, const char *path, bool force,
                                   struct mq_error *err)
{
	enum mq_status status = force ? check_replaced(path, err) : MQ_OK;
	int rc;

	if (status != MQ_OK)
		return status;
	/* link(2) replaces nothing, whoever makes the file meanwhile. */
	rc = force ? rename(from, path) : link(from, path);
	if (rc != 0 && errno == EEXIST)
		return mq_fail(err, MQ_EBUSY,
		               "%s is there already, with its public key in it: --force replaces it, and who "
		               "has the old one needs the new one then",
		               path);
	if (rc != 0 || fsync(dir_fd) != 0)
		return mq_fail_errno(err, errno, "making %s", path);
	return MQ_OK;
}

static enum mq_status store(const char *path, const char *dir, const char *text, bool force,
                            struct mq_error *err)
{
	enum mq_status status = make_directories(dir, err);
	int dir_fd = -1, fd = -1;
	char *temporary = NULL;

	if (status != MQ_OK)
		return status;
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0)
		return mq_fail_errno(err, errno, "%s", dir);
	if (asprintf(&temporary, "%s.XXXXXX", path) < 0) {
		close(dir_fd);
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	}
	fd = mkostemp(temporary, O_CLOEXEC); /* 0600 */
	status = fd < 0 ? mq_fail_errno(err, errno, "cannot make a file in %s", dir)
	                : write_new(fd, dir_fd, text, path, err);
	if (status == MQ_OK)
		status = put_in_place(dir_fd, temporary, path, force, err);
	if (fd >= 0) {
		close(fd);
		(void)unlink(temporary); /* gone already after a rename */
	}
	free(temporary);
	close(dir_fd);
	return status;
}

enum mq_status mq_keyfile_make(const char *path, bool force, struct mq_keypair *out,
                               struct mq_error *err)
{
	struct mq_keypair pair;
	enum mq_status status;
	char text[FILE_MAX], *copy;

	if (zmq_curve_keypair(pair.public_key, pair.secret_key) != 0)
		return mq_fail(err, MQ_EINVAL, "this libzmq has no CURVE");
	copy = strdup(path);
	if (!copy)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	snprintf(text, sizeof(text), "# CURVE key pair of mandelq: whoever can read it can pose as you\n"
	         PUBLIC " %s\n" SECRET " %s\n", pair.public_key, pair.secret_key);
	status = store(path, dirname(copy), text, force, err);
	free(copy);
	if (status == MQ_OK)
		*out = pair;
	explicit_bzero(text, sizeof(text));
	explicit_bzero(&pair, sizeof(pair));
	return status;
}

enum mq_status mq_keyfile_ensure(const char *path, bool force, struct mq_keypair *out, bool *made,
                                 struct mq_error *err)
{
	enum mq_status status = force ? MQ_ENOENT : mq_keyfile_read(path, out, err);

	*made = status == MQ_ENOENT;
	return *made ? mq_keyfile_make(path, force, out, err) : status;
}
