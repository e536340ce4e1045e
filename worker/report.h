/* report: jobs and devices as the JSON objects of mandelq-protocol(7). */
#ifndef MQ_REPORT_H
#define MQ_REPORT_H

#include <jansson.h>

#include "src/store/store.h"
#include "worker/schedule.h"
#include "worker/statedir.h"

/* A new reference; NULL when memory is out. */
json_t *mq_report_job(const struct mq_job_row *row, const struct mq_schedule *schedule,
                      const struct mq_statedir *dir, int64_t now_ms);
json_t *mq_report_tile(const struct mq_tile_info *tile);
json_t *mq_report_attempt(const struct mq_attempt_info *attempt);
json_t *mq_report_device(const struct mq_device_report *device);

/* Progress of a job, 0 to 1: strips that are done, with the last hundredth for the assembly. */
double mq_report_progress(const struct mq_job_row *row);

#endif
