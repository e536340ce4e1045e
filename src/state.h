/* state: the states of jobs and tiles, their names, and which changes of a job are legal. Pure. */
#ifndef MQ_STATE_H
#define MQ_STATE_H

#include <stdbool.h>

enum mq_job_state {
	MQ_JOB_QUEUED,     /* nothing of it has been started */
	MQ_JOB_WAITING,    /* for another job (--after) */
	MQ_JOB_RUNNING,
	MQ_JOB_PAUSED,     /* by a person, or by the disk; the reason says which */
	MQ_JOB_ASSEMBLING, /* all tiles are done */
	MQ_JOB_DONE,
	MQ_JOB_FAILED,
	MQ_JOB_CANCELLED,
	MQ_JOB_STATE_COUNT
};

enum mq_tile_state {
	MQ_TILE_PENDING,
	MQ_TILE_RUNNING, /* the attempt in the row is in flight */
	MQ_TILE_DONE,    /* its file is durable */
	MQ_TILE_SPLIT,   /* its two halves follow as rows of their own */
	MQ_TILE_FAILED,
	MQ_TILE_STATE_COUNT
};

const char *mq_job_state_name(enum mq_job_state state);
const char *mq_tile_state_name(enum mq_tile_state state);
/* False if name is no state. */
bool mq_job_state_parse(const char *name, enum mq_job_state *out);

/* May a job go from one state to the other? done, failed and cancelled are terminal. */
bool mq_job_may(enum mq_job_state from, enum mq_job_state to);

static inline bool mq_job_is_terminal(enum mq_job_state s)
{
	return s == MQ_JOB_DONE || s == MQ_JOB_FAILED || s == MQ_JOB_CANCELLED;
}

#endif
