/* test_store_disk: what the store does with a disk that is full or fails, at each of its writes and
 * syncs. A VFS above the system's own fails them. */
#include <errno.h>

#include "tests/unit/store_fixture.h"

enum fault_kind { FAULT_NONE, FAULT_FULL, FAULT_QUOTA, FAULT_WRITE, FAULT_SYNC, FAULT_MAIN };

static struct {
	sqlite3_vfs vfs;
	sqlite3_vfs *real;
	enum fault_kind kind;
	int at, passed; /* the at-th write or sync fails; 1 is the first */
	int syncs;
	int error; /* what the operating system said */
} disk;

struct disk_file {
	sqlite3_file base;
	sqlite3_file *real;
	bool main; /* the database itself */
};

static sqlite3_file *real_of(sqlite3_file *file)
{
	return ((struct disk_file *)file)->real;
}

static bool strikes(bool sync)
{
	if (disk.kind == FAULT_NONE || (disk.kind == FAULT_SYNC) != sync)
		return false;
	return ++disk.passed == disk.at;
}

static int disk_close(sqlite3_file *file)
{
	return real_of(file)->pMethods->xClose(real_of(file));
}

static int disk_read(sqlite3_file *file, void *data, int len, sqlite3_int64 at)
{
	return real_of(file)->pMethods->xRead(real_of(file), data, len, at);
}

static int disk_write(sqlite3_file *file, const void *data, int len, sqlite3_int64 at)
{
	bool full = disk.kind == FAULT_FULL || disk.kind == FAULT_MAIN;

	if ((disk.kind == FAULT_MAIN && !((struct disk_file *)file)->main) || !strikes(false))
		return real_of(file)->pMethods->xWrite(real_of(file), data, len, at);
	/* Half of it has reached the disk. */
	(void)real_of(file)->pMethods->xWrite(real_of(file), data, len / 2, at);
	disk.error = full ? ENOSPC : disk.kind == FAULT_QUOTA ? EDQUOT : EIO;
	return full ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static int disk_truncate(sqlite3_file *file, sqlite3_int64 size)
{
	return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int disk_sync(sqlite3_file *file, int flags)
{
	disk.syncs++;
	if (!strikes(true))
		return real_of(file)->pMethods->xSync(real_of(file), flags);
	disk.error = ENOSPC; /* whatever it says: the data may be gone */
	return SQLITE_IOERR_FSYNC;
}

static int disk_size(sqlite3_file *file, sqlite3_int64 *size)
{
	return real_of(file)->pMethods->xFileSize(real_of(file), size);
}

static int disk_lock(sqlite3_file *file, int level)
{
	return real_of(file)->pMethods->xLock(real_of(file), level);
}

static int disk_unlock(sqlite3_file *file, int level)
{
	return real_of(file)->pMethods->xUnlock(real_of(file), level);
}

static int disk_reserved(sqlite3_file *file, int *out)
{
	return real_of(file)->pMethods->xCheckReservedLock(real_of(file), out);
}

static int disk_control(sqlite3_file *file, int op, void *arg)
{
	if (op == SQLITE_FCNTL_LAST_ERRNO && disk.error != 0) {
		*(int *)arg = disk.error;
		return SQLITE_OK;
	}
	return real_of(file)->pMethods->xFileControl(real_of(file), op, arg);
}

static int disk_sector(sqlite3_file *file)
{
	return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int disk_device(sqlite3_file *file)
{
	return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

/* Version 1, without shared memory: enough for a log in exclusive mode. */
static const sqlite3_io_methods disk_methods = {
	.iVersion = 1,
	.xClose = disk_close,
	.xRead = disk_read,
	.xWrite = disk_write,
	.xTruncate = disk_truncate,
	.xSync = disk_sync,
	.xFileSize = disk_size,
	.xLock = disk_lock,
	.xUnlock = disk_unlock,
	.xCheckReservedLock = disk_reserved,
	.xFileControl = disk_control,
	.xSectorSize = disk_sector,
	.xDeviceCharacteristics = disk_device,
};

static int disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out)
{
	struct disk_file *f = (struct disk_file *)file;
	int rc;

	(void)vfs;
	f->real = (sqlite3_file *)(f + 1);
	f->main = (flags & SQLITE_OPEN_MAIN_DB) != 0;
	rc = disk.real->xOpen(disk.real, name, f->real, flags, out);
	f->base.pMethods = f->real->pMethods ? &disk_methods : NULL;
	return rc;
}

static int disk_install(void **state)
{
	(void)state;
	disk.real = sqlite3_vfs_find(NULL);
	disk.vfs = *disk.real;
	disk.vfs.zName = "failing-disk";
	disk.vfs.pNext = NULL;
	disk.vfs.szOsFile = (int)sizeof(struct disk_file) + disk.real->szOsFile;
	disk.vfs.xOpen = disk_open;
	return sqlite3_vfs_register(&disk.vfs, 1);
}

static int disk_remove(void **state)
{
	(void)state;
	return sqlite3_vfs_unregister(&disk.vfs);
}

static void disk_arm(enum fault_kind kind, int at)
{
	disk.kind = kind;
	disk.at = at;
	disk.passed = 0;
	disk.error = 0;
}

/* What must hold after a change and commit that met a failure, or none. */
static void check_outcome(struct fixture *f, enum fault_kind kind, enum mq_status status)
{
	struct mq_new_job job = job_of(1, 1);
	int64_t id = 0, jobs;
	bool existing;

	if (status == MQ_OK || kind == FAULT_FULL || kind == FAULT_QUOTA) {
		/* The next turn works, and nothing of the failed one is in it. */
		assert_ok(mq_store_job_add(f->store, &job, &id, &existing, err));
		commit(f);
		assert_int_equal(id, status == MQ_OK ? 3 : 2);
	} else {
		assert_int_equal(mq_store_job_add(f->store, &job, &id, &existing, NULL), MQ_EIO);
		assert_int_equal(mq_store_commit(f->store, NULL, NULL), MQ_EIO);
	}
	fixture_reopen(f);
	jobs = ask(f, "SELECT count(*) FROM jobs");
	if (status == MQ_OK)
		assert_int_equal(jobs, 3);
	else if (kind == FAULT_FULL || kind == FAULT_QUOTA)
		assert_int_equal(jobs, 2);
	else
		assert_in_range(jobs, 1, 2);
	/* Whole jobs only. */
	assert_int_equal(ask(f, "SELECT sum(tiles_total) FROM jobs"), ask(f, "SELECT count(*) FROM tiles"));
	assert_int_equal(ask(f, "SELECT count(*) FROM jobs WHERE id = 1"), 1);
}

/* The failure strikes at the first, second, ... write or sync of a turn, until it is past the end. */
static void fail_everywhere(struct fixture *f, enum fault_kind kind, enum mq_status want)
{
	enum mq_status status = want;
	int strikes_seen = 0;

	for (int at = 1; status != MQ_OK; at++) {
		struct mq_new_job job = job_of(300, 1);
		bool existing;
		int64_t id;

		disk_arm(FAULT_NONE, 0);
		mq_store_close(f->store);
		f->store = NULL;
		unlink(f->path);
		fixture_reopen(f);
		add_job(f, 300, 1);
		commit(f);
		disk_arm(kind, at);
		status = mq_store_job_add(f->store, &job, &id, &existing, NULL);
		if (status == MQ_OK)
			status = mq_store_commit(f->store, NULL, NULL);
		else
			mq_store_rollback(f->store);
		if (status != MQ_OK) {
			assert_int_equal(status, want);
			strikes_seen++;
		}
		disk_arm(FAULT_NONE, 0);
		check_outcome(f, kind, status);
		assert_true(at < 1000);
	}
	assert_true(strikes_seen > 0);
}

static void disk_full(void **state)
{
	fail_everywhere(*state, FAULT_FULL, MQ_ENOSPC);
}

static void quota_full(void **state)
{
	fail_everywhere(*state, FAULT_QUOTA, MQ_ENOSPC);
}

static void failed_write(void **state)
{
	fail_everywhere(*state, FAULT_WRITE, MQ_EIO);
}

static void failed_sync(void **state)
{
	fail_everywhere(*state, FAULT_SYNC, MQ_EIO);
}

static void sync_is_not_tried_again(void **state)
{
	struct fixture *f = *state;
	int syncs;

	fixture_reopen(f);
	add_job(f, 3, 1);
	disk_arm(FAULT_SYNC, 1);
	assert_int_equal(mq_store_commit(f->store, NULL, NULL), MQ_EIO);
	syncs = disk.syncs;
	assert_int_equal(mq_store_commit(f->store, NULL, NULL), MQ_EIO);
	mq_store_rollback(f->store);
	mq_store_close(f->store);
	f->store = NULL;
	assert_int_equal(disk.syncs, syncs);
	disk_arm(FAULT_NONE, 0);
}

/* The at-th write or sync of a commit that is followed by a checkpoint fails. */
static enum mq_status commit_with_checkpoint(struct fixture *f, enum fault_kind kind, int at)
{
	enum mq_status status;

	add_job(f, 300, 1);
	f->store->checkpoint_at = 1;
	disk_arm(kind, at);
	status = mq_store_commit(f->store, NULL, NULL);
	/* Else the failure was not where the test means it to be. */
	assert_true(disk.passed >= at);
	disk_arm(FAULT_NONE, 0);
	return status;
}

/* Copying the log into the database: a full disk is waited out, a failed sync is the end. */
static void checkpoint_failures(void **state)
{
	struct fixture *f = *state;

	fixture_reopen(f);
	assert_int_equal(commit_with_checkpoint(f, FAULT_MAIN, 1), MQ_OK);
	assert_true(f->store->checkpoint_at > 1000);
	assert_int_equal(commit_with_checkpoint(f, FAULT_SYNC, 2), MQ_EIO);
	assert_int_equal(mq_store_job_move(f->store, 1, MQ_JOB_PAUSED, NULL, NULL, 1, NULL), MQ_EIO);
	fixture_reopen(f);
	assert_int_equal(ask(f, "SELECT count(*) FROM jobs"), 2);
}

static void every_commit_is_synced(void **state)
{
	struct fixture *f = *state;

	fixture_reopen(f);
	for (int i = 0; i < 3; i++) {
		int before = disk.syncs;

		add_job(f, 1, 1);
		assert_int_equal(disk.syncs, before);
		commit(f);
		assert_true(disk.syncs > before);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_prepare, fixture_end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(disk_full),
		TEST(quota_full),
		TEST(failed_write),
		TEST(failed_sync),
		TEST(sync_is_not_tried_again),
		TEST(checkpoint_failures),
		TEST(every_commit_is_synced),
	};

	return cmocka_run_group_tests_name("store_disk", tests, disk_install, disk_remove);
}
