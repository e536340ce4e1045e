/* store_fixture: a store in a directory of its own for each test, and the few lines that every test of
 * the store begins with. */
#ifndef MQ_STORE_FIXTURE_H
#define MQ_STORE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/store/store_private.h"

struct fixture {
	char dir[256];
	char path[300];
	struct mq_store *store;
};

/* The text of a failure is what one wants to see. */
#define assert_ok(call)                                                                            \
	do {                                                                                       \
		struct mq_error err_;                                                              \
		struct mq_error *err = &err_;                                                      \
		enum mq_status got_ = (call);                                                      \
		if (got_ != MQ_OK)                                                                 \
			fail_msg("%s: status %d: %s", #call, (int)got_, err_.text);                \
	} while (0)

static inline void fixture_reopen(struct fixture *f)
{
	mq_store_close(f->store);
	f->store = NULL;
	assert_ok(mq_store_open(f->path, &f->store, err));
}

static inline int fixture_prepare(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);
	const char *base = getenv("TMPDIR");

	assert_non_null(f);
	snprintf(f->dir, sizeof f->dir, "%s/test_store.XXXXXX", base ? base : "/tmp");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof f->path, "%s/mandelq.db", f->dir);
	*state = f;
	return 0;
}

static inline int fixture_open(void **state)
{
	fixture_prepare(state);
	fixture_reopen(*state);
	return 0;
}

/* rmdir fails if the store left any other file. */
static inline int fixture_end(void **state)
{
	static const char *const suffixes[] = {"", "-wal", "-journal", ".v1-backup", ".copy"};
	struct fixture *f = *state;
	char name[320];
	int rc;

	mq_store_close(f->store);
	for (size_t i = 0; i < sizeof suffixes / sizeof suffixes[0]; i++) {
		snprintf(name, sizeof name, "%s%s", f->path, suffixes[i]);
		(void)unlink(name);
	}
	rc = rmdir(f->dir);
	free(f);
	return rc;
}

static inline struct mq_new_job job_of(uint32_t strips, uint32_t tile_strips)
{
	struct mq_new_job job = {
		.spec = "{\"width\":100}",
		.name = "a job",
		.owner = 1000,
		.now_ms = 1700000000000,
		.width = 100,
		.height = strips,
		.iterations = 500,
		.layout = {.width = 100,
	                   .height = strips,
	                   .channels = 3,
	                   .pixel_bytes = 3,
	                   .strip_rows = 1,
	                   .strips = strips,
	                   .tile_strips = tile_strips,
	                   .tiles = (strips + tile_strips - 1) / tile_strips},
	};

	return job;
}

static inline int64_t add(struct fixture *f, const struct mq_new_job *job)
{
	bool existing = true;
	int64_t id = 0;

	assert_ok(mq_store_job_add(f->store, job, &id, &existing, err));
	assert_false(existing);
	return id;
}

static inline int64_t add_job(struct fixture *f, uint32_t strips, uint32_t tile_strips)
{
	struct mq_new_job job = job_of(strips, tile_strips);

	return add(f, &job);
}

static inline void commit(struct fixture *f)
{
	assert_ok(mq_store_commit(f->store, NULL, err));
}

/* Every number of a job is asked for through the public door. */
static inline struct mq_job_row get(struct fixture *f, int64_t id)
{
	struct mq_job_row row;

	assert_ok(mq_store_job_get(f->store, id, &row, err));
	free(row.name);
	free(row.spec);
	free(row.request_id);
	free(row.reason);
	free(row.error);
	row.name = row.spec = row.request_id = row.reason = row.error = NULL;
	return row;
}

static inline size_t next(struct fixture *f, bool suspects, struct mq_tile_row *out, size_t max)
{
	size_t count = 0;

	assert_ok(mq_store_tiles_next(f->store, suspects, out, max, &count, err));
	return count;
}

static inline int64_t begin(struct fixture *f, int64_t tile, bool alone)
{
	int64_t attempt = 0;

	assert_ok(mq_store_attempt_begin(f->store, tile, "cpu", alone, 1700000001000, &attempt, err));
	return attempt;
}

static inline bool done(struct fixture *f, int64_t attempt)
{
	struct mq_tile_file file = {.bytes = 77, .sha256 = {1, 2, 3}};
	bool complete = false;

	assert_ok(mq_store_tile_done(f->store, attempt, &file, 0.25, 1700000002000, &complete, err));
	return complete;
}

/* Renders all that is pending of all jobs. */
static inline void render_all(struct fixture *f)
{
	struct mq_tile_row tile;

	while (next(f, false, &tile, 1) == 1)
		done(f, begin(f, tile.id, false));
}

/* One integer out of the store's own connection. */
static inline int64_t ask(struct fixture *f, const char *sql)
{
	sqlite3_stmt *stmt = NULL;
	int64_t value;

	assert_int_equal(sqlite3_prepare_v2(f->store->db, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	value = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return value;
}

#endif
