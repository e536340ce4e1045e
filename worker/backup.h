/* backup: mandelqd --backup. While a worker runs nobody else can open its database: it is asked for a
 * copy over its socket, and the file is written here, by whoever asks. */
#ifndef MQ_BACKUP_H
#define MQ_BACKUP_H

#include "src/status.h"
#include "worker/settings.h"

/* A plain file of that name is replaced once the copy is whole and durable. MQ_EINVAL: there is no
 * database, or file is something that must stay; MQ_EPERM: the worker belongs to somebody else. */
enum mq_status mq_backup(const struct mq_settings *settings, const char *file, struct mq_error *err);

#endif
