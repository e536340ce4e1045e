/* store: the one SQLite connection, and every SQL statement of the project.
 *
 * One connection, used from one thread (the worker's main thread). Changes are grouped: the caller
 * opens a turn, makes any number of changes, and commits them with one sync; only then may it send
 * replies or start what was decided. Every changing function must be called inside a turn; each is
 * all or nothing (a savepoint), so that one that fails leaves the rest of the turn as it was.
 *
 * MQ_ENOSPC and MQ_EIO from any function: the database could not be written; roll the turn back. A
 * failed sync is never retried: mq_store_commit gives MQ_EIO, nothing can be written from then on,
 * and the process must end and recover. After MQ_ENOSPC the next turn may succeed.
 * MQ_EINTERNAL: SQLite reported what cannot happen (the text says what). */
#ifndef MQ_STORE_H
#define MQ_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/state.h"
#include "src/status.h"
#include "src/tile.h"

#define MQ_STORE_APPLICATION_ID 0x4d514c31 /* "MQL1" */
#define MQ_STORE_SCHEMA 3

struct mq_store;

/* Opens or creates the database (WAL, FULL, EXCLUSIVE; quick_check and every row that counts, but for a
 * database of more than 32 MiB that was closed properly, of which it looks at the jobs' rows alone). The
 * caller holds the state directory's lock. MQ_EVERSION: a newer schema; MQ_ECORRUPT: not ours, or
 * damaged; both untouched. One of an older schema N is copied to PATH.vN-backup before it is brought to
 * this one.
 * MQ_EBUSY: another program has it open. A job with values in its rows that cannot be is set aside:
 * it is failed, its error says why, and it is logged. Only one store of a path in one process. */
enum mq_status mq_store_open(const char *path, struct mq_store **out, struct mq_error *err);
void mq_store_close(struct mq_store *store);

/* Calls each for every job that mq_store_open would set aside, and mends nothing (inspect.c). Give it a
 * copy: files beside it may change. MQ_EVERSION and MQ_ECORRUPT as above. */
enum mq_status mq_store_damaged_jobs(const char *path, void (*each)(void *arg, int64_t job), void *arg,
                                     struct mq_error *err);

/* A turn: BEGIN IMMEDIATE at the first change, COMMIT or ROLLBACK. Committing a turn without a
 * change costs nothing. *changed (may be NULL) says whether anything was written. A commit that
 * fails has rolled the turn back. */
enum mq_status mq_store_commit(struct mq_store *store, bool *changed, struct mq_error *err);
void mq_store_rollback(struct mq_store *store);

/* Has watch called for every job that a turn changes or removes, while it does; it must not use the store.
 * What is undone later has been told all the same. NULL: no more. */
void mq_store_watch(struct mq_store *store, void (*watch)(void *arg, int64_t job, bool removed),
                    void *arg);

/* ---- jobs (store_job.c) ---- */

struct mq_new_job {
	const char *spec;       /* canonical JSON, all settings */
	const char *name;       /* may be "" */
	const char *request_id; /* or NULL */
	int64_t priority;
	int64_t owner;          /* uid, or -1 */
	int64_t now_ms;
	uint32_t width, height, iterations;
	struct mq_layout layout;
	int64_t after;          /* the job that it waits for, or 0 */
};

/* The job and its tiles in one step. A request id that this owner has used with the same spec, name,
 * priority and after gives that job's id and *existing = true; with another: MQ_ECONFLICT. A failed or
 * cancelled job has given its request id up. after: MQ_ENOENT: no such job; MQ_ESTATE: it has failed or
 * was cancelled; one that is done is not waited for. */
enum mq_status mq_store_job_add(struct mq_store *store, const struct mq_new_job *job, int64_t *id,
                                bool *existing, struct mq_error *err);

/* Whether a job of this owner has this request id. */
enum mq_status mq_store_request_known(struct mq_store *store, int64_t owner, const char *request_id,
                                      bool *known, struct mq_error *err);

/* One job as stored, with its tiles counted. Strings are owned; NULL where unknown. Times are ms since
 * 1970, 0 where unknown. */
struct mq_job_row {
	int64_t id;
	char *name, *spec, *request_id, *reason, *error;
	int64_t priority, owner;
	enum mq_job_state state;
	uint32_t width, height, iterations;
	uint64_t strips_total, strips_done;
	uint64_t tiles_total, tiles_done, tiles_split; /* tiles_total: those that are not split */
	double compute_seconds;
	int64_t created_ms, started_ms, finished_ms;
	int64_t output_bytes;       /* 0: no picture */
	char output_sha256[65];
	int64_t preview_bytes;      /* 0: none */
	int64_t counts_bytes;       /* 0: none */
	int64_t after;              /* the job that it waits or waited for, or 0 */
	int64_t fetched_ms;         /* when somebody first had the whole picture; 0: nobody yet */
	int64_t inside;             /* samples that reached the limit, of what is done; -1: not known */
	int flat;                   /* 1: the picture has one colour; 0: more; -1: not known */
};
void mq_job_row_clear(struct mq_job_row *row);

/* MQ_ENOENT: no such job ("no job 17"). */
enum mq_status mq_store_job_get(struct mq_store *store, int64_t id, struct mq_job_row *out,
                                struct mq_error *err);
/* Calls each(arg, row) for every job with id > after, oldest first, at most limit; each must not
 * keep the row, may use the store; a status other than MQ_OK from it ends the walk and is returned.
 * Rows that are damaged are left out; MQ_ECORRUPT at the end names the first. */
enum mq_status mq_store_job_each(struct mq_store *store, int64_t after, int64_t limit,
                                 enum mq_status (*each)(void *arg, const struct mq_job_row *row),
                                 void *arg, struct mq_error *err);

/* As mq_store_job_each with ids below `before`, newest first. */
enum mq_status mq_store_job_each_down(struct mq_store *store, int64_t before, int64_t limit,
                                      enum mq_status (*each)(void *arg, const struct mq_job_row *row),
                                      void *arg, struct mq_error *err);

/* Moves a job to a state that mq_job_may allows (else MQ_ESTATE, naming both states). reason is for
 * waiting and paused, error for failed; NULL clears. Sets started and finished when it gets there;
 * failed and cancelled also give the request id up and end every tile that is pending or running (open
 * attempts end as "dropped"), and fail the jobs that wait for it. Moving to the state it has already is
 * MQ_OK and no change. assembling needs all tiles done (else MQ_ESTATE); a paused or waiting job that
 * has them goes to assembling when it is sent to queued or running. done is mq_store_job_done's. */
enum mq_status mq_store_job_move(struct mq_store *store, int64_t id, enum mq_job_state to,
                                 const char *reason, const char *error, int64_t now_ms,
                                 struct mq_error *err);

struct mq_output {
	int64_t picture_bytes;
	char picture_sha256[65];
	int64_t preview_bytes;
	int64_t counts_bytes;
	bool flat; /* the picture has one colour */
};
/* assembling -> done, with what was made; jobs that wait for it are queued. So is one that was paused while its
 * assembly was in flight. MQ_ESTATE: in another state, or with tiles left. */
enum mq_status mq_store_job_done(struct mq_store *store, int64_t id, const struct mq_output *output,
                                 int64_t now_ms, struct mq_error *err);

/* Ids of jobs in a state, oldest first, at most max; *count says how many were written. */
enum mq_status mq_store_jobs_in(struct mq_store *store, enum mq_job_state state, int64_t *ids,
                                size_t max, size_t *count, struct mq_error *err);
/* As mq_store_jobs_in, of the paused jobs whose reason begins so. */
enum mq_status mq_store_jobs_paused(struct mq_store *store, const char *reason, int64_t *ids,
                                    size_t max, size_t *count, struct mq_error *err);

/* ---- what people do to jobs (store_queue.c) ---- */

/* Nothing new of the job is begun; what is in flight ends, and an assembly makes it done. MQ_ESTATE: it
 * has ended. A job that is paused gets the new reason. */
enum mq_status mq_store_job_pause(struct mq_store *store, int64_t id, const char *reason,
                                  int64_t now_ms, struct mq_error *err);
/* A paused job goes on where it was: waiting, queued, running or assembling. One that is not paused
 * stays as it is; MQ_ESTATE: it has ended. */
enum mq_status mq_store_job_resume(struct mq_store *store, int64_t id, int64_t now_ms,
                                   struct mq_error *err);
/* A failed job again: its failed tiles are pending, those that are done stay so, and it is queued,
 * waiting for its after, or assembling if only that is left. This is the one way out of a terminal state,
 * so mq_job_may does not know it. MQ_ESTATE: not failed, or the job that it comes after was not done, which
 * its error tells when that one is removed; MQ_ECORRUPT: its tiles do not make up the picture. */
enum mq_status mq_store_job_retry(struct mq_store *store, int64_t id, struct mq_error *err);
/* MQ_ESTATE: it has ended. */
enum mq_status mq_store_job_priority(struct mq_store *store, int64_t id, int64_t priority,
                                     struct mq_error *err);
/* Deletes the rows of a job that has ended (else MQ_ESTATE); its files are the caller's to remove, after
 * the commit. */
enum mq_status mq_store_job_remove(struct mq_store *store, int64_t id, struct mq_error *err);
/* The whole picture of a done job has been read by somebody. */
enum mq_status mq_store_job_fetched(struct mq_store *store, int64_t id, int64_t now_ms,
                                    struct mq_error *err);

/* Jobs that have ended before a time, the earliest first. */
struct mq_old {
	int64_t before_ms;
	int64_t after_ms, after_id; /* only later ones than this; 0, 0 to begin */
	bool unfetched;             /* also done ones whose picture nobody has had */
	bool everybody;             /* or only owner's */
	int64_t owner;
};
enum mq_status mq_store_jobs_old(struct mq_store *store, const struct mq_old *which, int64_t *ids,
                                 size_t max, size_t *count, struct mq_error *err);

/* ---- sums (store_list.c) ---- */

enum mq_status mq_store_jobs_count(struct mq_store *store, uint64_t count[MQ_JOB_STATE_COUNT],
                                   struct mq_error *err);
/* Bytes of pictures, previews and counts that the jobs of one owner (or of everybody) hold. */
enum mq_status mq_store_jobs_bytes(struct mq_store *store, bool everybody, int64_t owner,
                                   uint64_t *bytes, struct mq_error *err);
/* Jobs of an owner that have not ended. */
enum mq_status mq_store_jobs_open(struct mq_store *store, int64_t owner, uint64_t *count,
                                  struct mq_error *err);

/* A number that belongs to the whole queue and outlives the process; 0 if it was never set. */
enum mq_status mq_store_meta_get(struct mq_store *store, const char *name, int64_t *value,
                                 struct mq_error *err);
enum mq_status mq_store_meta_set(struct mq_store *store, const char *name, int64_t value,
                                 struct mq_error *err);

/* The highest id that a job has had, also one that is gone; 0: none. */
enum mq_status mq_store_ids_last(struct mq_store *store, int64_t *id, struct mq_error *err);
/* No job gets an id up to this one from now on. */
enum mq_status mq_store_ids_skip(struct mq_store *store, int64_t id, struct mq_error *err);

/* The version of SQLite that runs. */
const char *mq_store_engine(void);

/* ---- copies (backup.c) ---- */

/* A sound copy of the open database as a new file at path, made by steps between the turns: what they
 * commit meanwhile is in it. A file that is there is replaced; only we can read the new one. It is not
 * synced: whoever hands it on sees to that. MQ_ENOSPC, MQ_EIO, MQ_ENOMEM_HOST: nothing is left. */
struct mq_copy;
enum mq_status mq_copy_begin(struct mq_store *store, const char *path, struct mq_copy **out,
                             struct mq_error *err);
/* Between turns: copies so many pages of 4 KiB. *progress: 0 to 1. *done: the file is whole, and what the
 * store writes from now on is not in it. MQ_EBUSY: within a turn, try again; other failures are final. */
enum mq_status mq_copy_step(struct mq_copy *copy, int pages, double *progress, bool *done,
                            struct mq_error *err);
/* Before the store is closed. The file goes unless it is whole. Takes NULL. */
void mq_copy_end(struct mq_copy *copy);
/* All at once, of a database that nobody has open (the caller holds the state directory's lock), into an
 * empty file, which is removed on failure. */
enum mq_status mq_store_copy(const char *from, const char *into, struct mq_error *err);

/* ---- tiles and attempts (store_tile.c, store_attempt.c) ---- */

struct mq_tile_row {
	int64_t id, job;
	struct mq_span span;
	bool suspect;      /* was in flight at an unclean end: must run alone */
	uint32_t deaths;   /* unclean ends in a row with it alone in flight */
	uint32_t attempts; /* made so far */
};

/* Pending tiles of jobs that are queued or running, the next first: suspects before everything else
 * (most deaths first, then job, strip), then by priority (higher first), job, strip. With
 * suspects_only, suspects alone. At most max. */
enum mq_status mq_store_tiles_next(struct mq_store *store, bool suspects_only,
                                   struct mq_tile_row *out, size_t max, size_t *count,
                                   struct mq_error *err);

/* The pending tile of a job that is just this span and no suspect, if there is one. */
enum mq_status mq_store_tile_at(struct mq_store *store, int64_t job, struct mq_span span,
                                struct mq_tile_row *out, bool *found, struct mq_error *err);

/* Counts an attempt before it begins: the tile is running, *attempt is its fencing token. The first
 * attempt of a queued job makes the job running. alone: nothing else is in flight. MQ_ESTATE: the
 * tile is not pending, or its job neither queued nor running. */
enum mq_status mq_store_attempt_begin(struct mq_store *store, int64_t tile, const char *device,
                                      bool alone, int64_t now_ms, int64_t *attempt,
                                      struct mq_error *err);

struct mq_tile_file {
	uint64_t bytes;
	uint8_t sha256[32]; /* of the whole file */
	uint64_t inside;    /* samples of the tile that reached the limit */
};
/* The attempt's tile file is durable under its final name: the tile is done, no longer suspect, and
 * every tile's deaths are forgotten. *job_complete: it was the job's last, and the job is now assembling
 * (a paused job stays paused). MQ_ESTALE: the attempt has been superseded or its job ended; nothing
 * changed. */
enum mq_status mq_store_tile_done(struct mq_store *store, int64_t attempt,
                                  const struct mq_tile_file *file, double compute_seconds,
                                  int64_t now_ms, bool *job_complete, struct mq_error *err);

/* The attempt ended without a result, outcome says why ("oom", "cancelled", "stopped", "error", "io"): the tile
 * is pending again. MQ_ESTALE as above. */
enum mq_status mq_store_tile_retry(struct mq_store *store, int64_t attempt, const char *outcome,
                                   int64_t now_ms, struct mq_error *err);

/* A pending tile becomes split and its two halves pending, which inherit suspect and deaths.
 * reason: "oom", "size", "time", "suspect". The span must have at least two strips. */
enum mq_status mq_store_tile_split(struct mq_store *store, int64_t tile, const char *reason,
                                   struct mq_error *err);

/* A done tile whose file turned out damaged or missing is pending again, and its job running (a
 * paused one stays paused). MQ_ESTATE: the tile is not done, or its job has ended. */
enum mq_status mq_store_tile_redo(struct mq_store *store, int64_t tile, const char *reason,
                                  int64_t now_ms, struct mq_error *err);

/* A pending or running tile fails, and with it its job (as mq_store_job_move to failed). */
enum mq_status mq_store_tile_fail(struct mq_store *store, int64_t tile, const char *error,
                                  int64_t now_ms, struct mq_error *err);

/* Calls each for the done tiles of a job in strip order (assembly); each may use the store. */
struct mq_done_tile {
	int64_t tile, attempt;
	struct mq_span span;
	struct mq_tile_file file;
};
enum mq_status mq_store_tiles_done(struct mq_store *store, int64_t job,
                                   enum mq_status (*each)(void *arg, const struct mq_done_tile *t),
                                   void *arg, struct mq_error *err);

/* A job's tiles with an id above `after`, in the order of ids, at most limit; likewise its attempts.
 * (store_list.c) Texts belong to the walk; each must not use the store. */
struct mq_tile_info {
	struct mq_tile_row row;
	enum mq_tile_state state;
	const char *split_reason; /* "" unless split */
	uint64_t file_bytes, inside;
	double compute_seconds;
};
enum mq_status mq_store_tiles_each(struct mq_store *store, int64_t job, int64_t after, int64_t limit,
                                   enum mq_status (*each)(void *arg, const struct mq_tile_info *t),
                                   void *arg, struct mq_error *err);
struct mq_attempt_info {
	int64_t id, tile;
	struct mq_span span;
	const char *device;
	bool alone;
	int64_t started_ms, ended_ms; /* ended_ms 0: under way */
	const char *outcome;          /* "" while it is under way */
};
enum mq_status mq_store_attempts_each(struct mq_store *store, int64_t job, int64_t after, int64_t limit,
                                      enum mq_status (*each)(void *arg, const struct mq_attempt_info *a),
                                      void *arg, struct mq_error *err);

/* ---- assemblies (store_assembly.c) ---- */

/* Counts an assembly before it begins. alone: nothing else is in flight. */
enum mq_status mq_store_assembly_begin(struct mq_store *store, int64_t job, bool alone,
                                       struct mq_error *err);
/* It ended, well or badly, and the process lives: nothing is held against it. */
enum mq_status mq_store_assembly_end(struct mq_store *store, int64_t job, struct mq_error *err);
/* The worker stops as it was asked to: what is under way is no suspect at the next start. */
enum mq_status mq_store_assemblies_end(struct mq_store *store, struct mq_error *err);
/* A job that is assembling, whose assembly was under way at an unclean end and must run alone; the oldest
 * first. */
enum mq_status mq_store_assembly_suspect(struct mq_store *store, int64_t *job, bool *found,
                                         struct mq_error *err);

/* ---- recovery (store_recover.c) ---- */

#define MQ_DEATHS_MAX 5

struct mq_recovery {
	uint64_t suspects;   /* tiles that were in flight */
	uint64_t halved;     /* of them, died alone and were halved */
	uint64_t jobs_failed;
	uint64_t assembling; /* jobs whose assembly must run again */
};
/* After an unclean end: every running tile becomes a pending suspect, its attempt ends as "lost". One
 * that was alone in flight (it began alone, and nothing else was running) gets a death more; with
 * MQ_DEATHS_MAX deaths at one strip its job fails; with more strips it is halved. Likewise with
 * assemblies, which cannot be halved. Jobs that wait for one that damage has ended or taken away fail. A
 * change, which the caller commits. */
enum mq_status mq_store_recover(struct mq_store *store, int64_t now_ms, struct mq_recovery *out,
                                struct mq_error *err);

#endif
