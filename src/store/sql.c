/* sql: every statement that the running store uses, by name. Prepared once by mq_store_open.
 *
 * Conditions repeat those of the partial indexes in schema.c word for word: that is how SQLite
 * recognises them. What comes next names its indexes: without statistics the planner would rather
 * sort every pending tile. */
#include "src/store/store_private.h"

#define JOB_COLUMNS                                                                                \
	"id, name, request_id, reason, error, priority, owner, state, width, height, iterations,"   \
	" strips_total, strips_done, tiles_total, tiles_done, tiles_split, compute_seconds,"        \
	" created_ms, started_ms, finished_ms, output_bytes, output_sha256, preview_bytes,"         \
	" counts_bytes, spec, coalesce(after, 0), fetched_ms, coalesce(inside, -1), coalesce(flat, -1)"

#define TILE_COLUMNS "t.id, t.job, t.strip_first, t.strip_count, t.suspect, t.deaths, t.attempts"

#define SQL(name, text) [MQ_SQL_##name] = {#name, text}

const struct mq_sql_text mq_sql_table[MQ_SQL_COUNT] = {
	SQL(BEGIN, "BEGIN IMMEDIATE"),
	SQL(COMMIT, "COMMIT"),
	SQL(ROLLBACK, "ROLLBACK"),
	SQL(SAVE, "SAVEPOINT change"),
	SQL(SAVE_KEEP, "RELEASE change"),
	SQL(SAVE_UNDO, "ROLLBACK TO change"),

	SQL(JOB_ADD,
	    "INSERT INTO jobs (name, spec, request_id, priority, owner, created_ms, width, height,"
	    " iterations, strips_total, tiles_total, after, state, reason, asked_priority, inside)"
	    " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, nullif(?12, 0),"
	    " iif(?13, 'waiting', 'queued'), iif(?13, 'for job ' || ?12, NULL), ?4, 0)"),
	/* A job of unknown owner answers to everybody: it is from before owners were known. */
	SQL(JOB_BY_REQUEST,
	    "SELECT id, spec = ?3 AND name = ?4 AND asked_priority = ?5 AND after IS nullif(?6, 0)"
	    " FROM jobs WHERE request_id = ?1 AND owner IN (?2, -1) ORDER BY owner DESC LIMIT 1"),
	SQL(JOB_GET, "SELECT " JOB_COLUMNS " FROM jobs WHERE id = ?1"),
	SQL(JOB_AFTER, "SELECT id FROM jobs WHERE id > ?1 ORDER BY id LIMIT 1"),
	SQL(JOB_BEFORE, "SELECT id FROM jobs WHERE id < ?1 ORDER BY id DESC LIMIT 1"),
	SQL(JOB_STATE, "SELECT state, strips_total, strips_done FROM jobs WHERE id = ?1"),
	SQL(JOB_MOVE,
	    "UPDATE jobs SET state = ?2, reason = ?3, error = ?4,"
	    " started_ms = iif(?2 = 'running' AND started_ms = 0, ?5, started_ms),"
	    " finished_ms = iif(?2 IN ('failed', 'cancelled'), ?5, finished_ms),"
	    " request_id = iif(?2 IN ('failed', 'cancelled'), NULL, request_id)"
	    " WHERE id = ?1"),
	SQL(JOB_DONE,
	    "UPDATE jobs SET state = 'done', reason = NULL, error = NULL, finished_ms = ?2,"
	    " output_bytes = ?3, output_sha256 = ?4, preview_bytes = ?5, counts_bytes = ?6, flat = ?7"
	    " WHERE id = ?1"),
	SQL(JOB_TILE_DONE,
	    "UPDATE jobs SET strips_done = strips_done + ?2, tiles_done = tiles_done + 1,"
	    " compute_seconds = compute_seconds + ?3, inside = inside + ?4 WHERE id = ?1"),
	SQL(JOB_TILE_UNDONE,
	    "UPDATE jobs SET strips_done = strips_done - ?2, tiles_done = tiles_done - 1,"
	    " inside = max(inside - (SELECT inside FROM tiles WHERE id = ?3), 0) WHERE id = ?1"),
	SQL(JOB_TILE_SPLIT,
	    "UPDATE jobs SET tiles_total = tiles_total + 1, tiles_split = tiles_split + 1"
	    " WHERE id = ?1"),
	SQL(JOBS_IN, "SELECT id FROM jobs WHERE state = ?1 ORDER BY id LIMIT ?2"),
	SQL(JOBS_PAUSED,
	    "SELECT id FROM jobs WHERE state = 'paused' AND substr(reason, 1, length(?1)) = ?1"
	    " ORDER BY id LIMIT ?2"),
	SQL(JOBS_ASSEMBLING, "SELECT count(*) FROM jobs WHERE state = 'assembling'"),
	SQL(JOB_DROP_ATTEMPTS,
	    "UPDATE attempts SET ended_ms = ?2, outcome = 'dropped' WHERE id IN"
	    " (SELECT attempt FROM tiles WHERE job = ?1 AND state = 'running')"),
	SQL(JOB_END_RUNNING,
	    "UPDATE tiles SET state = 'failed', attempt = NULL WHERE job = ?1 AND state = 'running'"),
	SQL(JOB_END_READY,
	    "UPDATE tiles SET state = 'failed' WHERE job = ?1 AND state = 'pending' AND suspect = 0"),
	SQL(JOB_END_SUSPECT,
	    "UPDATE tiles SET state = 'failed' WHERE job = ?1 AND state = 'pending' AND suspect = 1"),

	SQL(JOB_PRIORITY, "UPDATE jobs SET priority = ?2 WHERE id = ?1"),
	SQL(JOB_REASON, "UPDATE jobs SET reason = ?2 WHERE id = ?1"),
	SQL(JOB_FETCHED, "UPDATE jobs SET fetched_ms = ?2 WHERE id = ?1 AND state = 'done'"),
	SQL(JOB_RETRY,
	    "UPDATE jobs SET state = ?2, reason = ?3, error = NULL, finished_ms = 0 WHERE id = ?1"),
	SQL(JOB_RETRY_TILES,
	    "UPDATE tiles SET state = 'pending', suspect = 0, deaths = 0"
	    " WHERE job = ?1 AND state = 'failed'"),
	SQL(JOB_COVERED,
	    "SELECT total(strip_count), total(iif(state = 'done', strip_count, 0))"
	    " FROM tiles WHERE job = ?1 AND state <> 'split'"),
	SQL(JOB_REMOVE_ATTEMPTS, "DELETE FROM attempts WHERE job = ?1"),
	SQL(JOB_REMOVE_TILES, "DELETE FROM tiles WHERE job = ?1"),
	SQL(JOB_REMOVE, "DELETE FROM jobs WHERE id = ?1"),
	SQL(JOBS_OLD,
	    "SELECT id FROM jobs WHERE finished_ms > 0 AND finished_ms < ?1 AND (finished_ms, id) > (?2, ?3)"
	    " AND state IN ('done', 'failed', 'cancelled')"
	    " AND (?4 OR state <> 'done' OR fetched_ms > 0) AND (?5 OR owner = ?6)"
	    " ORDER BY finished_ms, id LIMIT ?7"),
	SQL(JOBS_COUNT, "SELECT state, count(*) FROM jobs GROUP BY state"),
	SQL(JOBS_BYTES,
	    "SELECT coalesce(sum(output_bytes + preview_bytes + counts_bytes), 0) FROM jobs"
	    " WHERE ?1 OR owner = ?2"),
	SQL(JOBS_OPEN_OF,
	    "SELECT count(*) FROM jobs WHERE state IN"
	    " ('queued', 'waiting', 'running', 'paused', 'assembling') AND owner = ?1"),
	SQL(WAITING_GO,
	    "UPDATE jobs SET state = 'queued', reason = NULL WHERE after = ?1"
	    " AND state IN ('waiting', 'paused') AND state = 'waiting'"),
	/* All that wait for a job that has ended badly, and for those: tiles first, while they wait. */
	SQL(WAITING_END_TILES,
	    "WITH RECURSIVE lost (id) AS"
	    " (SELECT id FROM jobs WHERE after = ?1 AND state IN ('waiting', 'paused')"
	    " UNION SELECT j.id FROM lost l JOIN jobs j ON j.after = l.id"
	    " WHERE j.state IN ('waiting', 'paused'))"
	    " UPDATE tiles SET state = 'failed' WHERE job IN (SELECT id FROM lost) AND state = 'pending'"),
	SQL(WAITING_END,
	    "WITH RECURSIVE lost (id) AS"
	    " (SELECT id FROM jobs WHERE after = ?1 AND state IN ('waiting', 'paused')"
	    " UNION SELECT j.id FROM lost l JOIN jobs j ON j.after = l.id"
	    " WHERE j.state IN ('waiting', 'paused'))"
	    " UPDATE jobs SET state = 'failed', reason = NULL, request_id = NULL, finished_ms = ?2,"
	    " error = 'job ' || after || '" MQ_WAITED_FOR "' || iif(after = ?1, ?3, 'failed')"
	    " WHERE id IN (SELECT id FROM lost)"),
	/* Jobs that nobody has told that the job before them ended badly: its row was damaged, or is lost. A
	 * paused one whose job is gone has seen that one done. */
	SQL(WAITING_LOST,
	    "SELECT j.after, coalesce(a.state, '') FROM jobs j INDEXED BY jobs_after"
	    " LEFT JOIN jobs a ON a.id = j.after"
	    " WHERE j.state IN ('waiting', 'paused') AND j.after > 0 AND j.started_ms = 0"
	    " AND (a.state IN ('failed', 'cancelled') OR (a.id IS NULL AND j.state = 'waiting')) LIMIT 1"),
	/* The highest id that a job has ever had. */
	SQL(JOBS_LAST, "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'jobs'"),
	SQL(JOBS_SKIP, "UPDATE sqlite_sequence SET seq = ?1 WHERE name = 'jobs' AND seq < ?1"),
	SQL(JOBS_SKIP_FIRST,
	    "INSERT INTO sqlite_sequence (name, seq) SELECT 'jobs', ?1"
	    " WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'jobs')"),
	SQL(META_GET, "SELECT value FROM meta WHERE name = ?1"),
	SQL(META_SET,
	    "INSERT INTO meta (name, value) VALUES (?1, ?2)"
	    " ON CONFLICT (name) DO UPDATE SET value = ?2"),

	/* As mq_layout_tile, in one statement: a job can have 65536. */
	SQL(TILES_ADD,
	    "INSERT INTO tiles (job, strip_first, strip_count)"
	    " WITH RECURSIVE n (first) AS"
	    " (VALUES (0) UNION ALL SELECT first + ?3 FROM n WHERE first + ?3 < ?2)"
	    " SELECT ?1, first, min(?3, ?2 - first) FROM n"),
	SQL(TILE_ADD,
	    "INSERT INTO tiles (job, strip_first, strip_count, suspect, deaths)"
	    " VALUES (?1, ?2, ?3, ?4, ?5)"),
	SQL(TILE_GET,
	    "SELECT " TILE_COLUMNS ", t.state, coalesce(t.attempt, 0), coalesce(t.file_attempt, 0),"
	    " j.state FROM tiles t JOIN jobs j ON j.id = t.job WHERE t.id = ?1"),
	SQL(TILE_OF_ATTEMPT,
	    "SELECT " TILE_COLUMNS " FROM attempts a JOIN tiles t ON t.id = a.tile"
	    " JOIN jobs j ON j.id = t.job WHERE a.id = ?1 AND t.attempt = ?1"
	    " AND t.state = 'running' AND j.state NOT IN ('done', 'failed', 'cancelled')"),
	SQL(TILES_SUSPECT,
	    "SELECT " TILE_COLUMNS " FROM tiles t CROSS JOIN jobs j ON j.id = t.job"
	    " WHERE t.state = 'pending' AND t.suspect = 1 AND j.state IN ('queued', 'running')"
	    " ORDER BY t.deaths DESC, t.job, t.strip_first LIMIT ?1"),
	SQL(TILES_READY,
	    "SELECT " TILE_COLUMNS " FROM jobs j INDEXED BY jobs_open"
	    " CROSS JOIN tiles t INDEXED BY tiles_ready ON t.job = j.id"
	    " WHERE j.state IN ('queued', 'running') AND t.state = 'pending' AND t.suspect = 0"
	    " ORDER BY j.priority DESC, j.id, t.strip_first LIMIT ?1"),
	SQL(TILE_AT,
	    "SELECT " TILE_COLUMNS " FROM tiles t INDEXED BY tiles_ready"
	    " WHERE t.job = ?1 AND t.strip_first = ?2 AND t.strip_count = ?3"
	    " AND t.state = 'pending' AND t.suspect = 0"),
	SQL(TILE_RUN,
	    "UPDATE tiles SET state = 'running', attempt = ?2, attempts = attempts + 1"
	    " WHERE id = ?1"),
	SQL(TILE_PENDING, "UPDATE tiles SET state = 'pending', attempt = NULL WHERE id = ?1"),
	SQL(TILE_LOST,
	    "UPDATE tiles SET state = 'pending', attempt = NULL, suspect = 1, deaths = deaths + ?2"
	    " WHERE id = ?1"),
	SQL(TILE_DONE,
	    "UPDATE tiles SET state = 'done', attempt = NULL, suspect = 0, deaths = 0,"
	    " file_attempt = ?2, file_bytes = ?3, file_sha256 = ?4,"
	    " compute_seconds = compute_seconds + ?5, inside = ?6 WHERE id = ?1"),
	SQL(TILE_REDO,
	    "UPDATE tiles SET state = 'pending', file_attempt = NULL, file_bytes = NULL,"
	    " file_sha256 = NULL WHERE id = ?1"),
	SQL(TILE_SPLIT,
	    "UPDATE tiles SET state = 'split', suspect = 0, deaths = 0, split_reason = ?2"
	    " WHERE id = ?1"),
	SQL(TILE_FAIL, "UPDATE tiles SET state = 'failed', attempt = NULL WHERE id = ?1"),
	SQL(TILE_DONE_FROM,
	    "SELECT id, file_attempt, strip_first, strip_count, file_bytes, file_sha256 FROM tiles"
	    " WHERE job = ?1 AND state = 'done' AND strip_first >= ?2"
	    " ORDER BY strip_first LIMIT 1"),
	SQL(TILES_OF,
	    "SELECT " TILE_COLUMNS ", t.state, coalesce(t.split_reason, ''), coalesce(t.file_bytes, 0),"
	    " t.compute_seconds, t.inside FROM tiles t INDEXED BY tiles_job WHERE t.job = ?1 AND t.id > ?2"
	    " ORDER BY t.id LIMIT ?3"),
	SQL(TILES_RUNNING, "SELECT count(*) FROM tiles WHERE state = 'running'"),
	SQL(TILE_FIRST_RUNNING,
	    "SELECT " TILE_COLUMNS ", a.id, a.alone FROM tiles t LEFT JOIN attempts a"
	    " ON a.id = t.attempt WHERE t.state = 'running' LIMIT 1"),
	SQL(DEATHS_FORGET, "UPDATE tiles SET deaths = 0 WHERE deaths > 0"),

	SQL(ATTEMPT_ADD,
	    "INSERT INTO attempts (job, tile, device, alone, started_ms)"
	    " VALUES (?1, ?2, ?3, ?4, ?5)"),
	SQL(ATTEMPT_END,
	    "UPDATE attempts SET ended_ms = ?2, outcome = ?3 WHERE id = ?1 AND outcome IS NULL"),
	SQL(ATTEMPTS_OF,
	    "SELECT a.id, a.tile, coalesce(t.strip_first, 0), coalesce(t.strip_count, 0), a.device,"
	    " a.alone, a.started_ms, a.ended_ms, coalesce(a.outcome, '')"
	    " FROM attempts a INDEXED BY attempts_job LEFT JOIN tiles t ON t.id = a.tile WHERE a.job = ?1 AND a.id > ?2"
	    " ORDER BY a.id LIMIT ?3"),
	SQL(ATTEMPT_OUTCOME, "UPDATE attempts SET outcome = ?2 WHERE id = ?1"),

	SQL(ASSEMBLY_BEGIN,
	    "INSERT INTO assemblies (job, running, alone) VALUES (?1, 1, ?2)"
	    " ON CONFLICT (job) DO UPDATE SET running = 1, alone = ?2"),
	SQL(ASSEMBLY_END, "DELETE FROM assemblies WHERE job = ?1"),
	SQL(ASSEMBLIES_END, "DELETE FROM assemblies WHERE running = 1"),
	SQL(ASSEMBLY_SUSPECT,
	    "SELECT a.job FROM assemblies a JOIN jobs j ON j.id = a.job"
	    " WHERE a.running = 0 AND j.state = 'assembling' ORDER BY a.job LIMIT 1"),
	SQL(ASSEMBLIES_RUNNING, "SELECT count(*) FROM assemblies WHERE running = 1"),
	SQL(ASSEMBLIES_LOST,
	    "UPDATE assemblies SET running = 0, deaths = deaths + iif(?1, alone, 0) WHERE running = 1"),
	SQL(ASSEMBLIES_STALE,
	    "DELETE FROM assemblies WHERE job NOT IN"
	    " (SELECT id FROM jobs WHERE state IN ('assembling', 'paused'))"),
	SQL(ASSEMBLY_POISON, "SELECT job FROM assemblies WHERE deaths >= ?1 LIMIT 1"),
};
