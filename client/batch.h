/* batch: many jobs at once, from JSON files or standard input. */
#ifndef MQ_CLIENT_BATCH_H
#define MQ_CLIENT_BATCH_H

#include <jansson.h>
#include <stdbool.h>

#include "src/option.h"
#include "src/status.h"

/* Do the operands name such files: JOB.json or "-"? */
bool mq_batch_given(const struct mq_options *options);

/* *requests: an array of the arguments of "submit", the caller's. Each has a request id. A file has objects,
 * in one array or one after another (JSON lines): the job of src/job.h, and with it "name", "priority",
 * "request_id" and "after"; options that are given replace what stands there. Every job is checked
 * before any is submitted, by the rules of the worker; what only the worker knows (room, limits, other jobs)
 * is not. MQ_EINVAL names the file and the job. */
enum mq_status mq_batch_read(const struct mq_options *options, json_t **requests, struct mq_error *err);

#endif
