/* store_watch: tells about the jobs that a turn changes. */
#include <string.h>

#include "src/store/store_private.h"

static void updated(void *arg, int kind, const char *database, const char *table, sqlite3_int64 row)
{
	struct mq_store *store = arg;

	(void)database;
	if (!strcmp(table, "jobs"))
		store->watch(store->watch_arg, row, kind == SQLITE_DELETE);
}

void mq_store_watch(struct mq_store *store, void (*watch)(void *arg, int64_t job, bool removed),
                    void *arg)
{
	store->watch = watch;
	store->watch_arg = arg;
	(void)sqlite3_update_hook(store->db, watch ? updated : NULL, store);
}
