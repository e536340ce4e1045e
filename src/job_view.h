/* job_view: what a job's view comes to at its size, in exact arithmetic. Used by job.c alone; the
 * numbers of the job are canonical decimals by then. */
#ifndef MQ_JOB_VIEW_H
#define MQ_JOB_VIEW_H

#include "src/job.h"

/* Refuses (MQ_EINVAL) what is empty or inverted, past 1e150, or too deep for double at this size.
 * On success adds a warning if pixels are not square. */
enum mq_status mq_job_view_check(const struct mq_job *job, struct mq_job_warnings *warnings,
                                 struct mq_error *err);

/* --iterations=auto: 1000 + 32 L^2, at most 10 million, where L is the whole part of log2(zoom) and
 * at least 0; a view by its bounds has zoom 4 / height. */
enum mq_status mq_job_view_iterations(const struct mq_job *job, uint32_t *out,
                                      struct mq_error *err);

/* The zoom, as a decimal, that shows the whole set around MQ_VIEW_SET_RE, MQ_VIEW_SET_IM. */
#define MQ_VIEW_SET_RE "-0.75"
#define MQ_VIEW_SET_IM "0"
void mq_job_view_whole_set(uint32_t width, uint32_t height, char out[32]);

/* Appends to warnings, cut to fit; does nothing when they are full. */
void mq_job_warn(struct mq_job_warnings *warnings, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#endif
