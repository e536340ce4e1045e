/* copying: see copying.h. */
#include "config.h"

#include "worker/copying.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "src/log.h"

#define STEP_PAGES 64
#define TURN_NS 4000000 /* no step is begun later in a turn */

enum mq_status mq_copying_begin(struct mq_copying *c, struct mq_store *store,
                                const struct mq_statedir *dir, struct mq_exports *xs, int64_t owner,
                                int64_t now_ms, struct mq_export_state *out, struct mq_error *err)
{
	char *path;
	enum mq_status s;

	if (c->copy)
		return mq_fail(err, MQ_EBUSY, "another copy of the database is being made: try again later");
	if (asprintf(&path, "%s/work/" MQ_STATEDIR_BACKUP, dir->path) < 0)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	s = mq_copy_begin(store, path, &c->copy, err);
	free(path);
	if (s)
		return s;
	s = mq_export_promise(xs, owner, now_ms, out, err);
	if (s)
		mq_copying_end(c);
	else
		c->handle = out->handle;
	return s;
}

/* The file has no name from now on. */
static enum mq_status take(const struct mq_statedir *dir, int *fd, struct mq_error *err)
{
	*fd = openat(dir->work_fd, MQ_STATEDIR_BACKUP, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (*fd < 0)
		return mq_fail_errno(err, errno, "the copy of the database");
	(void)unlinkat(dir->work_fd, MQ_STATEDIR_BACKUP, 0); /* the next copy replaces one that stays */
	return MQ_OK;
}

static int64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void mq_copying_turn(struct mq_copying *c, const struct mq_statedir *dir, struct mq_exports *xs)
{
	int64_t begun = clock_ns();
	struct mq_error err = {""};
	enum mq_status s = MQ_OK;
	double progress = 0;
	bool done = false;
	int fd = -1;

	if (!c->copy)
		return;
	while (!s && !done && clock_ns() - begun < TURN_NS)
		s = mq_copy_step(c->copy, STEP_PAGES, &progress, &done, &err);
	if (s == MQ_EBUSY || (!s && !done)) {
		if (!mq_export_promised(xs, c->handle, progress))
			mq_copying_end(c);
		return;
	}
	if (!s)
		s = take(dir, &fd, &err);
	if (s)
		mq_log(MQ_LOG_WARN, "no copy of the database: %s", err.text);
	mq_export_settle(xs, c->handle, fd, s, &err);
	mq_copying_end(c);
}

int mq_copying_due(const struct mq_copying *c)
{
	return c->copy ? 0 : -1;
}

void mq_copying_end(struct mq_copying *c)
{
	mq_copy_end(c->copy);
	c->copy = NULL;
}
