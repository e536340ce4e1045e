/* authorized: see authorized.h. What cannot be read admits nobody. */
#include "config.h" /* asprintf */

#include "worker/authorized.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "src/keyfile.h"
#include "src/log.h"

#define ENTRIES_MAX 10000
#define BLANK " \t\r\n"
/* A file changed so lately may change again without its times telling. */
#define SETTLED_SECONDS 2

struct entry {
	char key[MQ_KEY_SIZE];
	int64_t uid;
};

struct mq_authorized {
	char *path;
	struct stat seen; /* all 0: no file */
	bool read, settled;
	struct entry *entry;
	size_t count;
};

static bool same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mode == b->st_mode && a->st_uid == b->st_uid &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

static bool add(struct mq_authorized *a, const char *key, int64_t uid)
{
	struct entry *longer = a->count < ENTRIES_MAX
	                               ? realloc(a->entry, (a->count + 1) * sizeof *longer) : NULL;

	if (!longer)
		return false;
	a->entry = longer;
	memcpy(a->entry[a->count].key, key, MQ_KEY_SIZE);
	a->entry[a->count++].uid = uid;
	return true;
}

/* NULL, or what is wrong with the line. Owners are users of this machine, so the name must be one's. */
static const char *take_line(struct mq_authorized *a, char *line)
{
	char *save = NULL, *key, *name, *rest;
	const struct passwd *user;

	key = strtok_r(line, BLANK, &save);
	/* A key may begin with '#' too. */
	if (!key || (key[0] == '#' && !mq_key_valid(key)))
		return NULL;
	name = strtok_r(NULL, BLANK, &save);
	rest = strtok_r(NULL, BLANK, &save);
	if (!mq_key_valid(key))
		return "no key of 40 characters at its beginning";
	if (!name || name[0] == '#' || (rest && rest[0] != '#'))
		return "one user name must stand behind the key";
	user = getpwnam(name);
	if (!user)
		return "there is no such user here";
	return add(a, key, user->pw_uid) ? NULL : "there is no room for it";
}

static void read_lines(struct mq_authorized *a, FILE *f, bool told)
{
	char *line = NULL;
	size_t size = 0;
	unsigned number = 0;

	while (getline(&line, &size, f) >= 0) {
		const char *wrong = take_line(a, line);

		number++;
		if (wrong && !told)
			mq_log(MQ_LOG_WARN, "%s:%u is ignored: %s", a->path, number, wrong);
	}
	free(line);
	if (ferror(f)) {
		a->count = 0;
		mq_log(MQ_LOG_ERROR, "%s cannot be read: nobody may connect", a->path);
	}
}

/* told: what is to say about the file as it is has been said. */
static void read_file(struct mq_authorized *a, const struct stat *st, bool told)
{
	FILE *f = NULL;

	a->count = 0;
	if (!S_ISREG(st->st_mode) || st->st_mode & 022 || (st->st_uid != geteuid() && st->st_uid != 0)) {
		if (!told)
			mq_log(MQ_LOG_ERROR,
			       "%s is not used: it must be a file that root or the worker's own user alone can "
			       "change", a->path);
		return;
	}
	f = fopen(a->path, "re");
	if (!f) {
		if (!told)
			mq_log(MQ_LOG_ERROR, "%s: %s: nobody may connect", a->path, strerror(errno));
		return;
	}
	read_lines(a, f, told);
	fclose(f);
	if (!told)
		mq_log(MQ_LOG_INFO, "%s: %zu key%s may connect", a->path, a->count,
		       a->count == 1 ? "" : "s");
}

static void look(struct mq_authorized *a)
{
	struct stat st;
	bool unchanged;
	struct timespec now;

	if (stat(a->path, &st))
		memset(&st, 0, sizeof st);
	unchanged = a->read && same(&st, &a->seen);
	if (unchanged && a->settled)
		return;
	if (st.st_ino) {
		read_file(a, &st, unchanged);
	} else {
		a->count = 0;
		if (!unchanged)
			mq_log(MQ_LOG_WARN, "there is no %s: nobody may connect from another machine", a->path);
	}
	clock_gettime(CLOCK_REALTIME, &now);
	a->settled = !st.st_ino || st.st_ctim.tv_sec + SETTLED_SECONDS < now.tv_sec;
	a->seen = st;
	a->read = true;
}

enum mq_status mq_authorized_open(const char *dir, struct mq_authorized **out, struct mq_error *err)
{
	struct mq_authorized *a = calloc(1, sizeof *a);

	if (!a || asprintf(&a->path, "%s/" MQ_AUTHORIZED_FILE, dir) < 0) {
		free(a);
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	}
	look(a);
	*out = a;
	return MQ_OK;
}

void mq_authorized_close(struct mq_authorized *a)
{
	if (!a)
		return;
	free(a->entry);
	free(a->path);
	free(a);
}

bool mq_authorized_find(struct mq_authorized *a, const char *key, int64_t *uid)
{
	look(a);
	for (size_t i = 0; i < a->count; i++)
		if (!strcmp(a->entry[i].key, key)) {
			*uid = a->entry[i].uid;
			return true;
		}
	return false;
}
