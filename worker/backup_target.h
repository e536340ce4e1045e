/* backup_target: the file of mandelqd --backup=FILE: what may be replaced, and a new file beside it that
 * gets its name when the copy is whole. Called by backup.c; one at a time. */
#ifndef MQ_BACKUP_TARGET_H
#define MQ_BACKUP_TARGET_H

#include "src/status.h"

struct mq_backup_target {
	const char *state_dir, *file; /* the caller's */
	char *folder, *temporary;     /* temporary: empty, mode 0600, until somebody writes it */
	int dir, fd;                  /* fd: of temporary */
};

/* MQ_EINVAL: something is at FILE, or FILE would lie in a place, where nothing may be put; it is left as
 * it is. The names must stay until the close. */
enum mq_status mq_backup_target_open(struct mq_backup_target *t, const char *state_dir, const char *file,
                                     struct mq_error *err);
/* Syncs what has been written to temporary, and gives it FILE's name if that is still allowed. */
enum mq_status mq_backup_target_commit(struct mq_backup_target *t, struct mq_error *err);
/* Without a commit nothing is left. Also after an open that failed. */
void mq_backup_target_close(struct mq_backup_target *t);

#endif
