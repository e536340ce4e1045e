/* state: names, and legal changes as a table of bits. Called by the store, the worker and the client. */
#include "src/state.h"

#include <string.h>

#define TO(s) (1u << (s))

static const char *const job_names[MQ_JOB_STATE_COUNT] = {
	[MQ_JOB_QUEUED] = "queued",         [MQ_JOB_WAITING] = "waiting",
	[MQ_JOB_RUNNING] = "running",       [MQ_JOB_PAUSED] = "paused",
	[MQ_JOB_ASSEMBLING] = "assembling", [MQ_JOB_DONE] = "done",
	[MQ_JOB_FAILED] = "failed",         [MQ_JOB_CANCELLED] = "cancelled",
};

static const char *const tile_names[MQ_TILE_STATE_COUNT] = {
	[MQ_TILE_PENDING] = "pending", [MQ_TILE_RUNNING] = "running", [MQ_TILE_DONE] = "done",
	[MQ_TILE_SPLIT] = "split",     [MQ_TILE_FAILED] = "failed",
};

/* Assembling goes back to running when a tile's file turns out damaged; a pause goes back to where
 * it came from, and ends when an assembly that was in flight ends well. Nothing goes back to queued once it
 * has run, save through a pause. */
static const unsigned job_changes[MQ_JOB_STATE_COUNT] = {
	[MQ_JOB_QUEUED] = TO(MQ_JOB_WAITING) | TO(MQ_JOB_RUNNING) | TO(MQ_JOB_PAUSED) |
	                  TO(MQ_JOB_FAILED) | TO(MQ_JOB_CANCELLED),
	[MQ_JOB_WAITING] = TO(MQ_JOB_QUEUED) | TO(MQ_JOB_PAUSED) | TO(MQ_JOB_FAILED) |
	                   TO(MQ_JOB_CANCELLED),
	[MQ_JOB_RUNNING] = TO(MQ_JOB_PAUSED) | TO(MQ_JOB_ASSEMBLING) | TO(MQ_JOB_FAILED) |
	                   TO(MQ_JOB_CANCELLED),
	[MQ_JOB_PAUSED] = TO(MQ_JOB_QUEUED) | TO(MQ_JOB_WAITING) | TO(MQ_JOB_RUNNING) |
	                  TO(MQ_JOB_ASSEMBLING) | TO(MQ_JOB_DONE) | TO(MQ_JOB_FAILED) |
	                  TO(MQ_JOB_CANCELLED),
	[MQ_JOB_ASSEMBLING] = TO(MQ_JOB_RUNNING) | TO(MQ_JOB_PAUSED) | TO(MQ_JOB_DONE) |
	                      TO(MQ_JOB_FAILED) | TO(MQ_JOB_CANCELLED),
};

const char *mq_job_state_name(enum mq_job_state state)
{
	return (unsigned)state < MQ_JOB_STATE_COUNT ? job_names[state] : "unknown";
}

const char *mq_tile_state_name(enum mq_tile_state state)
{
	return (unsigned)state < MQ_TILE_STATE_COUNT ? tile_names[state] : "unknown";
}

bool mq_job_state_parse(const char *name, enum mq_job_state *out)
{
	for (unsigned i = 0; i < MQ_JOB_STATE_COUNT; i++) {
		if (!strcmp(name, job_names[i])) {
			*out = (enum mq_job_state)i;
			return true;
		}
	}
	return false;
}

bool mq_job_may(enum mq_job_state from, enum mq_job_state to)
{
	if ((unsigned)from >= MQ_JOB_STATE_COUNT || (unsigned)to >= MQ_JOB_STATE_COUNT)
		return false;
	return job_changes[from] & TO(to);
}
