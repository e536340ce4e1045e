/* active: a job in work, as device, encoder and assembly threads see it: parsed once, read-only, and
 * counted: it lives until the last who holds it lets go. */
#ifndef MQ_ACTIVE_H
#define MQ_ACTIVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/job.h"
#include "src/scene.h"
#include "src/store/store.h"
#include "src/tile.h"
#include "worker/statedir.h"

struct mq_active {
	int64_t id;
	struct mq_job *job;
	struct mq_layout layout;
	struct mq_shade shade;
	struct mq_scene scene;
	char *text;           /* that the picture carries */
	bool mirrored;        /* strip s upside down is strip strips-1-s, bit for bit */
	int work_fd;          /* STATE_DIR/work/ID */
	atomic_bool dropped;  /* cancelled or failed: results are of no use any more */
	atomic_uint holders;

	/* The main thread's own: what the scheduler learns of the job while it runs. */
	double strip_seconds;    /* wall time a strip takes on a device, smoothed; 0: not known yet */
	int64_t first_ms;        /* when this process first got a result of it */
	uint64_t strips_since;   /* strips finished since then */
	unsigned in_flight;
	bool assembling;         /* with the assembler */
	unsigned assembly_tries;
	int64_t assembly_after_ms; /* not before: memory was out */
	bool disk_paused;        /* by the disk, and nothing has been written since */
	int64_t disk_told_ms;    /* the try that its last pause, which was logged, waits for */
	unsigned mends;          /* assemblies that found damaged tiles */
	unsigned failures;       /* of tiles, that nothing explains */
	struct mq_active *next;
};

/* Do a job's settings and the columns of its row speak of the same picture? MQ_ECORRUPT says where not:
 * its tiles would lie elsewhere than its rows say. *out is the layout. */
enum mq_status mq_active_agrees(const struct mq_job *job, const struct mq_job_row *row,
                                struct mq_layout *out, struct mq_error *err);

/* Parses the stored spec (MQ_ECORRUPT when that fails: the row is damaged), makes palette and scene;
 * with `work` it also makes and opens the job's folder of tiles. The caller holds one reference. */
enum mq_status mq_active_open(struct mq_statedir *dir, int64_t id, const char *spec, bool shortcuts,
                              bool work, struct mq_active **out, struct mq_error *err);
struct mq_active *mq_active_hold(struct mq_active *a);
void mq_active_release(struct mq_active *a);

/* The layout and scene-independent facts of a job; also used at submit. */
void mq_active_layout(const struct mq_job *job, struct mq_layout *out);

#endif
