/* tidy: removes what jobs that have ended leave behind: the tiles of one that is done or was cancelled,
 * and the picture's folder unless it is done. The tiles of a failed job stay until it is removed: it may
 * be tried again. Only after the commit that ended the job: a folder must never go while the database
 * still counts on it. Files go on a thread of their own (sweep). */
#include "worker/schedule_private.h"

#include <stdlib.h>
#include <unistd.h>

#include "src/log.h"

/* May a folder of this job go? */
static bool may_go(struct mq_schedule *s, int64_t job, bool pictures)
{
	struct mq_job_row row;
	enum mq_status status = mq_store_job_get(s->c.store, job, &row, NULL);
	enum mq_job_state state;

	if (status)
		return status == MQ_ENOENT; /* a damaged row: its files are left for whoever mends it */
	state = row.state;
	mq_job_row_clear(&row);
	return state == MQ_JOB_CANCELLED || state == (pictures ? MQ_JOB_FAILED : MQ_JOB_DONE);
}

static void remove_folders(struct mq_schedule *s, int64_t job)
{
	struct mq_error err = {""};
	bool work = may_go(s, job, false);

	if (work)
		mq_sweeper_add(s->sweeper, s->c.dir->work_fd, job);
	if (!may_go(s, job, true))
		return;
	if (work)
		mq_sweeper_add(s->sweeper, s->c.dir->pictures_fd, job);
	/* A failed job may be tried again, and makes the folder anew: few files, so at once. */
	else if (mq_statedir_remove(s->c.dir->pictures_fd, job, NULL, &err))
		mq_log_job(MQ_LOG_WARN, job,
		           "job %lld: %s; tried again at the next start", (long long)job, err.text);
}

void mq_tidy_ended(struct mq_schedule *s, int64_t job)
{
	struct mq_active *a = mq_schedule_find(s, job);

	if (a) {
		atomic_store(&a->dropped, true);
		return;
	}
	if (s->orphan_count == s->orphan_room) {
		size_t room = s->orphan_room ? 2 * s->orphan_room : 16;
		int64_t *more = realloc(s->orphans, room * sizeof *more);

		if (!more)
			return; /* the next start finds the folder */
		s->orphans = more;
		s->orphan_room = room;
	}
	s->orphans[s->orphan_count++] = job;
}

void mq_tidy_after(struct mq_schedule *s)
{
	for (struct mq_active **p = &s->active; *p;) {
		struct mq_active *a = *p;

		if (!atomic_load(&a->dropped) || a->in_flight || a->assembling) {
			p = &a->next;
			continue;
		}
		*p = a->next;
		remove_folders(s, a->id);
		mq_active_release(a);
	}
	for (size_t i = 0; i < s->orphan_count; i++)
		remove_folders(s, s->orphans[i]);
	s->orphan_count = 0;
}

#define ID_MAX (1ll << 53) /* what is above is no job's */

struct start {
	struct mq_schedule *s;
	int64_t last, newest; /* the highest id that the database knows, and that a folder has */
	bool pictures;
	unsigned removed, kept;
};

static void start_each(void *arg, int64_t id)
{
	struct start *start = arg;

	int parent = start->pictures ? start->s->c.dir->pictures_fd : start->s->c.dir->work_fd;

	if (start->newest < id && id < ID_MAX)
		start->newest = id;
	/* A row is committed before anything is rendered: the database is older than this folder. */
	if (id > start->last && mq_statedir_holds(parent, id)) {
		start->kept++;
		return;
	}
	if (!may_go(start->s, id, start->pictures))
		return;
	remove_folders(start->s, id);
	start->removed++;
}

/* Somebody has gone back to a copy, or begun anew: the pictures made since are no leftovers. Nor may a new job
 * get the id of a folder that is about to go. */
static enum mq_status skip_unknown(const struct start *start, struct mq_error *err)
{
	if (start->kept)
		mq_log(MQ_LOG_WARN,
		       "there are folders under work/ or pictures/ (%u) of jobs that the database does not know "
		       "(up to %lld), as it is older than they are: they are left alone, and new jobs get "
		       "higher ids",
		       start->kept, (long long)start->newest);
	return start->newest > start->last ? mq_store_ids_skip(start->s->c.store, start->newest, err) : MQ_OK;
}

enum mq_status mq_tidy_start(struct mq_schedule *s, struct mq_error *err)
{
	struct start start = {.s = s};
	enum mq_status status = mq_store_ids_last(s->c.store, &start.last, err);

	if (!status)
		status = mq_statedir_each(s->c.dir->work_fd, start_each, &start, err);
	/* Of a copy that was broken off; mostly there is none. */
	(void)unlinkat(s->c.dir->work_fd, MQ_STATEDIR_BACKUP, 0);
	(void)unlinkat(s->c.dir->work_fd, MQ_STATEDIR_BACKUP "-wal", 0);
	start.pictures = true;
	if (!status)
		status = mq_statedir_each(s->c.dir->pictures_fd, start_each, &start, err);
	if (!status)
		status = skip_unknown(&start, err);
	if (!status && start.removed)
		mq_log(MQ_LOG_INFO, "removing the leftovers of %u job%s", start.removed,
		       start.removed == 1 ? "" : "s");
	return status;
}
