/* newfile: a file that appears under its name whole or not at all: ".NAME.tmp" in the same directory,
 * fsync, rename, fsync of the directory. Used by tilefile and countfile. */
#ifndef MQ_NEWFILE_H
#define MQ_NEWFILE_H

#include <limits.h>

#include "src/status.h"

/* Failpoints of the steps, and a word for error texts. */
struct mq_newfile_kind {
	const char *create, *write, *fsync, *rename, *dirsync;
	const char *what;
};

struct mq_newfile {
	int dirfd, fd; /* dirfd is the caller's */
	const struct mq_newfile_kind *kind;
	char name[NAME_MAX + 1], temporary[NAME_MAX + 1];
};

/* Opens the temporary file; one left by a process that died is replaced. */
enum mq_status mq_newfile_create(struct mq_newfile *file, int dirfd, const char *name,
                                 const struct mq_newfile_kind *kind, struct mq_error *err);
/* On failure no file of either name is left. Closes it either way. */
enum mq_status mq_newfile_commit(struct mq_newfile *file, struct mq_error *err);
/* Removes the temporary file and closes it. */
void mq_newfile_abort(struct mq_newfile *file);

#endif
