/* palette: turns a job's palette settings into the tables that a backend colours with.
 * Built from +, -, *, / on doubles and integer arithmetic alone, so that every machine gets the same
 * bytes (IEC 61966-2-1 gives the sRGB curve; its power is a stored table). */
#ifndef MQ_PALETTE_H
#define MQ_PALETTE_H

#include "src/job.h"
#include "src/scene.h"

/* Fills all of *out. */
enum mq_status mq_palette_shade(const struct mq_job *job, struct mq_shade *out, struct mq_error *err);

#endif
