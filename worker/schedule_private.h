/* schedule_private: what schedule.c (the turn), dispatch.c (which tile next), memory.c (how large),
 * outcome.c (what became of it), gather.c (jobs that are ready to be joined) and tidy.c (what ended jobs
 * leave) share. Nobody else includes this. */
#ifndef MQ_SCHEDULE_PRIVATE_H
#define MQ_SCHEDULE_PRIVATE_H

#include "worker/device.h"
#include "worker/schedule.h"
#include "worker/sweep.h"

/* A device as the scheduler sees it. */
struct mq_unit {
	struct mq_device *device;
	struct mq_device_info info;
	unsigned slots;        /* reserved */
	uint64_t bytes;        /* a slot; 0: nothing reserved */
	bool reserving;        /* an answer is awaited */
	uint64_t asked_bytes;  /* of the last reservation */
	unsigned in_flight;
	/* memory.c's own */
	uint64_t cap;          /* no tile larger than this, but for one strip */
	unsigned slots_cap;    /* no more slots than this */
	uint64_t floor_bytes;  /* one strip of the job last looked at */
	bool memory_short;     /* cap or slots_cap is below what the settings allow */
	unsigned good;         /* tiles finished since memory was last short */
	unsigned grow_after;   /* so many good ones, and both caps double */
	unsigned floor_tries;  /* refusals in a row at the smallest size */
	int64_t retry_ms;      /* back-off: nothing before this */
	struct mq_error memory_error;
	bool failed;           /* its context is unusable: it gets nothing any more */
	struct mq_error failure;
	int64_t idle_ms;       /* since when nothing is in flight */
	bool cancelling;       /* told to give up what it does */
	double pixel_rate;     /* pixels a second of its work, smoothed */
};

struct mq_schedule {
	struct mq_schedule_config c;
	unsigned count;
	struct mq_unit unit[MQ_DEVICES_MAX];
	struct mq_active *active;    /* jobs in work */
	struct mq_task *launch;      /* decided in this turn */
	struct mq_assembly *assemblies; /* likewise */
	unsigned assembling;         /* under way, with those */
	unsigned in_flight;          /* tasks, with those */
	bool suspects;               /* there may be some: nothing else is started */
	bool look;                   /* something changed: look for tiles */
	bool look_assembly;          /* ... for jobs to assemble */
	bool held;                   /* by a person: nothing new is started */
	bool stopping;
	int64_t disk_retry_ms;       /* jobs paused by the disk: when to try again; 0: none */
	int64_t disk_wait_ms;        /* from one look to the next; doubles until a paused job has written */
	int64_t disk_paused_ms;      /* when the disk last paused a job */
	int64_t assembly_retry_ms;   /* jobs whose assembly had no memory: when to look; 0: none */
	enum mq_status fatal;        /* why the process must end once this turn is committed; or MQ_OK */
	struct mq_error fatal_error;
	int64_t slow_cancel_ms;      /* a dropped job is in flight: when to give up its device's work */
	struct mq_sweeper *sweeper;
	int64_t *orphans;            /* ended jobs without an active: folders to remove */
	size_t orphan_count, orphan_room;
};

/* schedule.c */
struct mq_active *mq_schedule_find(const struct mq_schedule *s, int64_t job);
/* Finds or makes it. *out is NULL when the job has been failed (its stored settings are damaged) or paused
 * (the disk), or s->fatal is set. */
enum mq_status mq_schedule_active(struct mq_schedule *s, int64_t job, int64_t now_ms,
                                  struct mq_active **out, struct mq_error *err);
/* Jobs to assemble are looked at again then, if not before. */
void mq_schedule_assembly_at(struct mq_schedule *s, int64_t at_ms);

/* When the scheduler's own memory is out: how long it waits. */
#define MQ_MEMORY_RETRY_MS 1000

/* dispatch.c: gives every device tiles until it is full or there are none. */
enum mq_status mq_dispatch(struct mq_schedule *s, int64_t now_ms, struct mq_error *err);
/* gather.c: hands finished jobs to the assembler, as many as it takes at a time. */
enum mq_status mq_gather(struct mq_schedule *s, int64_t now_ms, struct mq_error *err);
/* One that ran at an unclean end, alone: nothing is in flight. *none: there is none. MQ_ENOMEM_HOST:
 * nothing has been changed. */
enum mq_status mq_gather_suspect(struct mq_schedule *s, int64_t now_ms, bool *none, struct mq_error *err);

/* memory.c */
enum mq_fit { MQ_FIT, MQ_FIT_SPLIT_SIZE, MQ_FIT_SPLIT_OOM, MQ_FIT_LATER, MQ_FIT_NEVER };
void mq_memory_init(struct mq_schedule *s, struct mq_unit *u);
/* Can this tile go to this device now? LATER: a reservation has been asked for, or must wait until the
 * device is empty. NEVER: memory is out at the smallest size, or settings forbid; u->memory_error. */
enum mq_fit mq_memory_fit(struct mq_schedule *s, struct mq_unit *u, const struct mq_layout *layout,
                          struct mq_span span, int64_t now_ms);
/* The answer to a reservation has come. */
void mq_memory_answer(struct mq_schedule *s, struct mq_unit *u, int64_t now_ms);
/* A tile of so many bytes could not be rendered or encoded because memory was out. */
void mq_memory_short(struct mq_unit *u, uint64_t bytes, int64_t now_ms, const struct mq_error *why);
/* A tile went well. */
void mq_memory_good(struct mq_schedule *s, struct mq_unit *u);
/* Idle devices give their memory back. */
void mq_memory_idle(struct mq_schedule *s, int64_t now_ms);

/* outcome.c */
enum mq_status mq_outcome_task(struct mq_schedule *s, struct mq_task *t, int64_t now_ms,
                               struct mq_error *err);
/* A device's context is unusable. The others go on; without any the process must end, for a new start is
 * the only way to a new context. */
void mq_outcome_broken(struct mq_schedule *s, struct mq_unit *u, const struct mq_error *why);
enum mq_status mq_outcome_assembly(struct mq_schedule *s, struct mq_assembly *a, int64_t now_ms,
                                   struct mq_error *err);
/* The job waits for the disk, which is full or fails to write (fault: MQ_ENOSPC, MQ_EIO; in this turn);
 * mq_outcome_disk_retry lets it go on. */
enum mq_status mq_outcome_pause(struct mq_schedule *s, int64_t job, enum mq_status fault, const char *why,
                                int64_t now_ms, struct mq_error *err);
enum mq_status mq_outcome_disk_retry(struct mq_schedule *s, int64_t now_ms, struct mq_error *err);

/* tidy.c */
/* A job has ended (in this turn): its results are of no use any more, its folders go. */
void mq_tidy_ended(struct mq_schedule *s, int64_t job);
/* After the commit. */
void mq_tidy_after(struct mq_schedule *s);
/* At start: folders of jobs that have ended or never were. */
enum mq_status mq_tidy_start(struct mq_schedule *s, struct mq_error *err);

#endif
