/* progress: how far a set of jobs is, for people. On a terminal a bar with the pixel rate and the time
 * left; elsewhere a plain line now and then, so that a log shows that something goes on. */
#ifndef MQ_CLIENT_PROGRESS_H
#define MQ_CLIENT_PROGRESS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define MQ_PROGRESS_SAMPLES 24

struct mq_progress {
	bool quiet, terminal;
	int64_t shown_ms;
	struct {
		int64_t ms;
		double pixels;
	} sample[MQ_PROGRESS_SAMPLES]; /* a ring, for the rate */
	unsigned samples, next;
};

void mq_progress_begin(struct mq_progress *progress, bool quiet);
/* rows: rows.h; shows at most ten lines a second. */
void mq_progress_show(struct mq_progress *progress, const json_t *rows);
/* A step without rows. unit is that of done and total ("B"), NULL when a rate says nothing. */
void mq_progress_step(struct mq_progress *progress, const char *what, double done, double total,
		      const char *unit);
/* Takes the bar away. */
void mq_progress_end(struct mq_progress *progress);

#endif
