/* store_private: what the files of src/store share, and nobody else includes.
 *
 * A change is `mq_change_begin`, statements, `mq_change_end`: the first opens the turn if there is
 * none and sets a savepoint, the second keeps or undoes. Changes do not nest. Functions whose head
 * says "inside a change" are the parts they are made of. */
#ifndef MQ_STORE_PRIVATE_H
#define MQ_STORE_PRIVATE_H

#include <sqlite3.h>

#include "src/store/store.h"

/* The prepared statements; their text stands in sql.c. */
enum mq_sql {
	MQ_SQL_BEGIN,
	MQ_SQL_COMMIT,
	MQ_SQL_ROLLBACK,
	MQ_SQL_SAVE,
	MQ_SQL_SAVE_KEEP,
	MQ_SQL_SAVE_UNDO,
	MQ_SQL_JOB_ADD,
	MQ_SQL_JOB_BY_REQUEST,
	MQ_SQL_JOB_GET,
	MQ_SQL_JOB_AFTER,
	MQ_SQL_JOB_BEFORE,
	MQ_SQL_JOB_STATE,
	MQ_SQL_JOB_MOVE,
	MQ_SQL_JOB_DONE,
	MQ_SQL_JOB_TILE_DONE,
	MQ_SQL_JOB_TILE_UNDONE,
	MQ_SQL_JOB_TILE_SPLIT,
	MQ_SQL_JOBS_IN,
	MQ_SQL_JOBS_PAUSED,
	MQ_SQL_JOBS_ASSEMBLING,
	MQ_SQL_JOB_DROP_ATTEMPTS,
	MQ_SQL_JOB_END_RUNNING,
	MQ_SQL_JOB_END_READY,
	MQ_SQL_JOB_END_SUSPECT,
	MQ_SQL_JOB_PRIORITY,
	MQ_SQL_JOB_REASON,
	MQ_SQL_JOB_FETCHED,
	MQ_SQL_JOB_RETRY,
	MQ_SQL_JOB_RETRY_TILES,
	MQ_SQL_JOB_COVERED,
	MQ_SQL_JOB_REMOVE_ATTEMPTS,
	MQ_SQL_JOB_REMOVE_TILES,
	MQ_SQL_JOB_REMOVE,
	MQ_SQL_JOBS_OLD,
	MQ_SQL_JOBS_COUNT,
	MQ_SQL_JOBS_BYTES,
	MQ_SQL_JOBS_OPEN_OF,
	MQ_SQL_WAITING_GO,
	MQ_SQL_WAITING_END_TILES,
	MQ_SQL_WAITING_END,
	MQ_SQL_WAITING_LOST,
	MQ_SQL_JOBS_LAST,
	MQ_SQL_JOBS_SKIP,
	MQ_SQL_JOBS_SKIP_FIRST,
	MQ_SQL_META_GET,
	MQ_SQL_META_SET,
	MQ_SQL_TILES_ADD,
	MQ_SQL_TILE_ADD,
	MQ_SQL_TILE_GET,
	MQ_SQL_TILE_OF_ATTEMPT,
	MQ_SQL_TILES_SUSPECT,
	MQ_SQL_TILES_READY,
	MQ_SQL_TILE_AT,
	MQ_SQL_TILE_RUN,
	MQ_SQL_TILE_PENDING,
	MQ_SQL_TILE_LOST,
	MQ_SQL_TILE_DONE,
	MQ_SQL_TILE_REDO,
	MQ_SQL_TILE_SPLIT,
	MQ_SQL_TILE_FAIL,
	MQ_SQL_TILE_DONE_FROM,
	MQ_SQL_TILES_OF,
	MQ_SQL_TILES_RUNNING,
	MQ_SQL_TILE_FIRST_RUNNING,
	MQ_SQL_DEATHS_FORGET,
	MQ_SQL_ATTEMPT_ADD,
	MQ_SQL_ATTEMPT_END,
	MQ_SQL_ATTEMPTS_OF,
	MQ_SQL_ATTEMPT_OUTCOME,
	MQ_SQL_ASSEMBLY_BEGIN,
	MQ_SQL_ASSEMBLY_END,
	MQ_SQL_ASSEMBLIES_END,
	MQ_SQL_ASSEMBLY_SUSPECT,
	MQ_SQL_ASSEMBLIES_RUNNING,
	MQ_SQL_ASSEMBLIES_LOST,
	MQ_SQL_ASSEMBLIES_STALE,
	MQ_SQL_ASSEMBLY_POISON,
	MQ_SQL_COUNT
};

struct mq_sql_text {
	const char *name, *text;
};
extern const struct mq_sql_text mq_sql_table[MQ_SQL_COUNT];

struct mq_store {
	sqlite3 *db;
	sqlite3_stmt *stmt[MQ_SQL_COUNT];
	bool in_turn;          /* BEGIN IMMEDIATE has succeeded */
	bool changed;          /* a change of this turn has written a row */
	enum mq_status broken; /* not MQ_OK: SQLite has undone this turn; only a rollback helps */
	bool dead;             /* a sync failed: nothing is written any more */
	int64_t mark;          /* total changes when the present change began */
	int wal_frames;        /* in the log after the last commit */
	int checkpoint_at;     /* frames at which the next checkpoint is tried */
	void (*watch)(void *arg, int64_t job, bool removed); /* or NULL */
	void *watch_arg;
};

/* ---- store.c ---- */

enum mq_status mq_change_begin(struct mq_store *store, struct mq_error *err);
/* Keeps the change if status is MQ_OK, else undoes it; returns what the change came to. */
enum mq_status mq_change_end(struct mq_store *store, enum mq_status status, struct mq_error *err);

/* ---- query.c ---- */

/* The status of an SQLite result code, with the text "what: message". */
enum mq_status mq_fail_sqlite(sqlite3 *db, int rc, struct mq_error *err, const char *what);

/* One use of a prepared statement: start, put the parameters in order, step or run. */
struct mq_query {
	struct mq_store *store;
	enum mq_sql sql;
	sqlite3_stmt *stmt;
	int parameter; /* the last one put */
	int rc;        /* the first failure of a put */
	bool bad;      /* a column had a type or value that cannot be */
};

struct mq_query mq_query_start(struct mq_store *store, enum mq_sql sql);
void mq_put_int(struct mq_query *q, int64_t value);
void mq_put_real(struct mq_query *q, double value);
/* NULL puts NULL; the text must live until the statement is reset. */
void mq_put_text(struct mq_query *q, const char *text);
void mq_put_blob(struct mq_query *q, const void *data, size_t len);

/* *row: there is a row to read. When there is none, or on failure, the statement has been reset;
 * else the caller ends with mq_query_end. */
enum mq_status mq_query_step(struct mq_query *q, bool *row, struct mq_error *err);
/* For a statement that gives no rows. */
enum mq_status mq_query_run(struct mq_query *q, struct mq_error *err);
void mq_query_end(struct mq_query *q);

/* A column that must be an integer from min to max; sets q->bad and gives min if it is not. */
int64_t mq_col_int(struct mq_query *q, int col, int64_t min, int64_t max);
double mq_col_real(struct mq_query *q, int col);
/* An owned copy, NULL for NULL (bad unless may_null) and when memory is out (q->rc). */
char *mq_col_text(struct mq_query *q, int col, bool may_null);
enum mq_job_state mq_col_job_state(struct mq_query *q, int col);

/* ---- check.c: before and after SQLite may write ---- */

/* Looks at the file without SQLite; MQ_EVERSION or MQ_ECORRUPT before anything could be touched.
 * Must not be called while this process has the database open (closing a descriptor drops SQLite's
 * locks on the file). */
enum mq_status mq_check_file(const char *path, struct mq_error *err);
/* SQLite makes an empty log as soon as it reads a database that has none: a refusal takes it away. */
bool mq_check_has_log(const char *path);
/* So small that looking through all of it takes no time that anybody minds. */
bool mq_check_is_small(const char *path);
void mq_check_drop_empty_log(const char *path);
/* The same judgement through SQLite, which sees the log too. *version is 0 for a new database. */
enum mq_status mq_check_identity(sqlite3 *db, const char *path, int *version, struct mq_error *err);
/* MQ_ECORRUPT if the file's structure is damaged. Bad values in sound rows are left to
 * mq_check_rows. */
enum mq_status mq_check_structure(sqlite3 *db, struct mq_error *err);
/* Sets jobs aside whose rows hold what cannot be: they fail, with readable values, and are logged.
 * thorough: looks at the rows of their tiles too. */
enum mq_status mq_check_rows(sqlite3 *db, bool thorough, struct mq_error *err);
/* Gives the ids of the jobs that a thorough mq_check_rows would set aside. */
extern const char mq_check_damaged[];

/* ---- schema.c ---- */

/* A copy of the open database at path, by way of path.tmp, durable. (backup.c) */
enum mq_status mq_backup_write(sqlite3 *db, const char *path, struct mq_error *err);
enum mq_status mq_schema_migrate(sqlite3 *db, int from, struct mq_error *err);

/* What holds for every sound row of the present schema: the tables' CHECK, and mq_check_rows. */
#define MQ_JOB_SOUND                                                                               \
	"state IN ('queued','waiting','running','paused','assembling','done','failed','cancelled')" \
	" AND width BETWEEN 1 AND 16777216 AND height BETWEEN 1 AND 16777216"                       \
	" AND iterations BETWEEN 1 AND 4294967294 AND length(spec) > 0"                             \
	" AND strips_total BETWEEN 1 AND 16777216 AND strips_done BETWEEN 0 AND strips_total"       \
	" AND tiles_total BETWEEN 1 AND strips_total AND tiles_done BETWEEN 0 AND tiles_total"      \
	" AND tiles_split >= 0 AND compute_seconds >= 0"                                            \
	" AND created_ms >= 0 AND started_ms >= 0 AND finished_ms >= 0"                             \
	" AND output_bytes >= 0 AND length(output_sha256) IN (0, 64)"                               \
	" AND preview_bytes >= 0 AND counts_bytes >= 0"                                             \
	" AND (state <> 'done' OR (output_bytes > 0 AND strips_done = strips_total))"
#define MQ_TILE_SOUND                                                                              \
	"strip_first BETWEEN 0 AND 16777215 AND strip_count BETWEEN 1 AND 16777216"                 \
	" AND attempts >= 0 AND deaths >= 0 AND suspect IN (0, 1) AND compute_seconds >= 0"         \
	" AND (attempt IS NULL OR state = 'running')"                                               \
	" AND (split_reason IS NULL OR state = 'split')"                                            \
	" AND (file_attempt IS NULL OR state = 'done')"                                             \
	" AND CASE state WHEN 'pending' THEN 1 WHEN 'failed' THEN 1"                                \
	" WHEN 'running' THEN attempt IS NOT NULL WHEN 'split' THEN split_reason IS NOT NULL"       \
	" WHEN 'done' THEN file_attempt IS NOT NULL AND coalesce(file_bytes, -1) >= 0"              \
	" AND coalesce(length(file_sha256), 0) = 32 ELSE 0 END"

/* ---- store_assembly.c, inside a change ---- */

enum mq_status mq_assembly_end(struct mq_store *store, int64_t job, struct mq_error *err);

/* ---- store_job.c, inside a change ---- */

/* What decides about a job's next move. */
struct mq_job_brief {
	enum mq_job_state state;
	uint64_t strips_total, strips_done;
};
enum mq_status mq_job_brief(struct mq_store *store, int64_t id, struct mq_job_brief *out,
                            struct mq_error *err);
/* Writes the new state, legal or not; ends the tiles of a job that fails or is cancelled. */
enum mq_status mq_job_set_state(struct mq_store *store, int64_t id, enum mq_job_state to,
                                const char *reason, const char *error, int64_t now_ms,
                                struct mq_error *err);

/* How the error of a job goes on that failed with the one before it: "job 3, which it waited for, failed".
 * When that one is removed, this is what remains of how it ended. */
#define MQ_WAITED_FOR ", which it waited for, "

/* The jobs that wait for this one, also paused: go on, or fail because it has. (store_queue.c) */
enum mq_status mq_waiting_go(struct mq_store *store, int64_t id, struct mq_error *err);
enum mq_status mq_waiting_end(struct mq_store *store, int64_t id, enum mq_job_state ended,
                              int64_t now_ms, struct mq_error *err);
/* Those that wait for one that will never be done, as damage leaves them: they fail. */
enum mq_status mq_waiting_settle(struct mq_store *store, int64_t now_ms, struct mq_error *err);

/* ---- store_tile.c ---- */

struct mq_tile {
	struct mq_tile_row row;
	enum mq_tile_state state;
	int64_t attempt, file_attempt; /* 0: none */
	enum mq_job_state job_state;
};
/* MQ_ENOENT, MQ_ECORRUPT. */
enum mq_status mq_tile_get(struct mq_store *store, int64_t id, struct mq_tile *out,
                           struct mq_error *err);
/* The first columns of a row, TILE_COLUMNS in sql.c. */
void mq_tile_read(struct mq_query *q, struct mq_tile_row *tile);
/* MQ_ECORRUPT and MQ_ESTATE, with their texts. */
enum mq_status mq_tile_damaged(int64_t tile, struct mq_error *err);
enum mq_status mq_tile_wrong_state(const struct mq_tile *tile, const char *must,
                                   struct mq_error *err);

/* Inside a change: tile, which is pending, becomes split; the halves inherit suspect and deaths. */
enum mq_status mq_tile_halve(struct mq_store *store, const struct mq_tile_row *tile,
                             const char *reason, struct mq_error *err);

/* ---- store_attempt.c, inside a change ---- */

/* The attempt ends, if it is open. */
enum mq_status mq_attempt_end(struct mq_store *store, int64_t attempt, const char *outcome,
                              int64_t now_ms, struct mq_error *err);

#endif
