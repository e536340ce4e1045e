/* metrics: what the worker has done since it began, as numbers for a monitor (Prometheus' text format).
 * Main thread only. */
#ifndef MQ_METRICS_H
#define MQ_METRICS_H

#include <stdint.h>

#include "src/status.h"
#include "src/store/store.h"
#include "worker/schedule.h"
#include "worker/statedir.h"

/* The worker has begun. */
void mq_metrics_begin(void);
/* A client asks for something. */
void mq_metrics_request(void);
/* An attempt at a tile ended: "done", or the outcome of its row. */
void mq_metrics_attempt(const char *outcome);
void mq_metrics_split(const char *reason);
/* A tile is durable: so many pixels, bytes of its file, and seconds on its device. */
void mq_metrics_rendered(const char *device, uint64_t pixels, uint64_t bytes, double seconds);
/* A commit that wrote something took so long, its sync included. */
void mq_metrics_commit(double seconds);

struct mq_metrics_source {
	struct mq_store *store;
	const struct mq_schedule *schedule;
	const struct mq_statedir *dir;
	uint64_t watchdog_ends;
	int64_t now_ms;
};
/* *text is the caller's. */
enum mq_status mq_metrics_text(const struct mq_metrics_source *source, char **text, struct mq_error *err);

#endif
