/* jobargs: the job options of a command line as the JSON of src/job.h. */
#ifndef MQ_CLIENT_JOBARGS_H
#define MQ_CLIENT_JOBARGS_H

#include <jansson.h>
#include <stdbool.h>

#include "client/connect.h"
#include "src/option.h"
#include "src/status.h"

/* Is a worker needed to make the job (--like=ID)? */
bool mq_jobargs_need_worker(const struct mq_options *options);

/* *job is an object, the caller's. Checks what only the client can read (--size, --print, the shape of
 * lists, the picture); the values go to the worker as they were typed. client is used only for
 * --like=ID, and may be NULL otherwise. MQ_EINVAL names the option. */
enum mq_status mq_jobargs_build(const struct mq_options *options, struct mq_client *client,
				json_t **job, struct mq_error *err);

/* Puts the options that are given into a job in place of what it has. */
enum mq_status mq_jobargs_apply(json_t *job, const struct mq_options *options, struct mq_error *err);

/* Checks --name, --priority and request_id (not NULL). MQ_EINVAL names the option. */
enum mq_status mq_jobargs_check(const struct mq_options *options, const char *request_id,
				struct mq_error *err);
/* The arguments of "submit" around a job (borrowed); checks them too. */
enum mq_status mq_jobargs_submit(const struct mq_options *options, json_t *job,
				 const char *request_id, json_t **args, struct mq_error *err);

#endif
