/* download: a job's output over the socket, checked, into a local file. */
#ifndef MQ_CLIENT_DOWNLOAD_H
#define MQ_CLIENT_DOWNLOAD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/connect.h"
#include "src/status.h"

struct mq_download {
	int64_t id;
	const char *what; /* "picture", "preview", "counts", "smooth" */
	json_t *region;   /* [x,y,w,h], borrowed, or NULL */
	const char *path; /* from mq_target_check */
	bool force, quiet;
};

/* The file has its name when this succeeds, and is not there otherwise. MQ_ECORRUPT: what came is not
 * what the worker has; the worker's refusals (MQ_ESTATE: not ready, counts not kept; MQ_ENOENT); the
 * failures of target.h and connect.h. */
enum mq_status mq_download(struct mq_client *client, const struct mq_download *download,
			   struct mq_error *err);

#endif
