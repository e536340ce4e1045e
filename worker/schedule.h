/* schedule: all policy. Which tile goes to which device and when, how large tiles and buffers are, what
 * becomes of a failure, when a picture is assembled. Runs on the main thread alone.
 *
 * The main loop calls mq_schedule_turn inside a store turn, commits, then calls mq_schedule_after: so
 * nothing is started that is not in the database first. MQ_EIO, MQ_ENOSPC, MQ_ESYNC, MQ_EDEVICE
 * and MQ_EINTERNAL from here mean that the process must end and recover. */
#ifndef MQ_SCHEDULE_H
#define MQ_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "src/store/store.h"
#include "worker/assemble.h"
#include "worker/devices.h"
#include "worker/event.h"
#include "worker/pool.h"
#include "worker/statedir.h"

/* The store's number that says whether the queue is held. */
#define MQ_META_HELD "queue-held"

struct mq_schedule_config {
	struct mq_store *store;
	struct mq_statedir *dir;
	struct mq_pool *pool;
	struct mq_events *events;
	struct mq_assembler *assembler;
	uint64_t device_memory;  /* bytes of buffers a device may hold */
	int64_t idle_release_ms; /* idle devices give their buffers back after so long */
	bool shortcuts;
};

struct mq_schedule;
/* Takes the backends over, also on failure. */
enum mq_status mq_schedule_open(const struct mq_schedule_config *config, struct mq_devices *devices,
                                struct mq_schedule **out, struct mq_error *err);
void mq_schedule_close(struct mq_schedule *schedule);

/* Recovery after the process before this one, however that ended; before the first turn. In a turn. */
enum mq_status mq_schedule_recover(struct mq_schedule *schedule, int64_t now_ms, struct mq_error *err);

/* There may be something to do (a job was added or goes on). */
void mq_schedule_look(struct mq_schedule *schedule);

/* Takes what threads have told, decides what is next. */
enum mq_status mq_schedule_turn(struct mq_schedule *schedule, int64_t now_ms, struct mq_error *err);
/* After the commit: starts what was decided, removes what ended jobs left. MQ_ESYNC, MQ_EDEVICE:
 * the process must end now; whose fault that is has been committed. */
enum mq_status mq_schedule_after(struct mq_schedule *schedule, struct mq_error *err);
/* When the next turn is due although nothing happens, in ms from now; -1: never. */
int64_t mq_schedule_due(const struct mq_schedule *schedule, int64_t now_ms);

/* The whole queue is held, or goes on: while it is, nothing new is started. */
void mq_schedule_hold(struct mq_schedule *schedule, bool held);
bool mq_schedule_paused(const struct mq_schedule *schedule);

/* The failed job is to be rendered again (in this turn). */
void mq_schedule_revive(struct mq_schedule *schedule, int64_t job);
/* The rows of an ended job have been removed (in this turn): its files go after the commit. */
void mq_schedule_forget(struct mq_schedule *schedule, int64_t job);

/* The job has been moved to cancelled (in this turn): lets go of it. */
void mq_schedule_drop(struct mq_schedule *schedule, int64_t job, int64_t now_ms);

/* Nothing new is started; what is in flight is handed back. */
void mq_schedule_stop(struct mq_schedule *schedule);
bool mq_schedule_idle(const struct mq_schedule *schedule);

/* Seconds a running job will take yet, or a negative number when that is not known. */
double mq_schedule_eta(const struct mq_schedule *schedule, const struct mq_job_row *row, int64_t now_ms);

struct mq_device_report {
	struct mq_device_info info;
	uint64_t tile_bytes; /* of a slot now; 0: no memory is held */
	unsigned slots;
	double pixel_rate;   /* a second, smoothed over the last tiles; 0: not known */
	bool busy;
	const char *failure; /* why it is set aside, or NULL; lives as long as the schedule */
};
/* Bytes of buffers that the devices hold, or have asked for. */
uint64_t mq_schedule_held(const struct mq_schedule *schedule);
unsigned mq_schedule_devices(const struct mq_schedule *schedule);
void mq_schedule_device(const struct mq_schedule *schedule, unsigned index, struct mq_device_report *out);

#endif
