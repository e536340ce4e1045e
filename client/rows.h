/* rows: jobs as the worker's "status" gives them, and reading fields of JSON that came from outside. */
#ifndef MQ_CLIENT_ROWS_H
#define MQ_CLIENT_ROWS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/connect.h"
#include "src/state.h"
#include "src/status.h"

#define MQ_ID_MAX ((1ll << 53) - 1)

/* Rows of the ids in their order (each of them once), or with count 0 of all jobs, oldest first.
 * *rows is an array of objects with an id and a known state, the caller's. *note is the worker's
 * line about its devices (a string or NULL), the caller's; note may be NULL. MQ_ENOENT: no such job. */
enum mq_status mq_rows_fetch(struct mq_client *client, const int64_t *ids, size_t count,
			     json_t **rows, json_t **note, struct mq_error *err);

/* Which jobs. */
struct mq_rows_filter {
	json_t *states; /* an array of names, or NULL */
	const char *name;
	bool mine;
	size_t limit; /* the newest; 0: all */
};
/* --state, --name, --mine and --limit. states is the caller's. MQ_EINVAL names the option. */
enum mq_status mq_rows_filter(const struct mq_options *options, struct mq_rows_filter *out,
			      struct mq_error *err);

struct mq_rows_list {
	json_t *rows; /* as mq_rows_fetch, oldest first */
	json_t *note; /* the worker's line about its devices, or NULL */
	bool paused;  /* the whole queue is */
};
/* The states of jobs that have not ended, a new reference; NULL when memory is out. */
json_t *mq_rows_open_states(void);
enum mq_status mq_rows_list(struct mq_client *client, const struct mq_rows_filter *filter,
			    struct mq_rows_list *out, struct mq_error *err);
void mq_rows_list_clear(struct mq_rows_list *list);

/* A decimal job id. MQ_EINVAL; its text begins with `what` ("", "--like: "). */
enum mq_status mq_rows_parse_id(const char *text, const char *what, int64_t *out,
				struct mq_error *err);

/* Fields; whatever has the wrong type counts as unknown. */
int64_t mq_row_id(const json_t *row);
enum mq_job_state mq_row_state(const json_t *row);
const char *mq_row_text(const json_t *row, const char *key, const char *unknown);
double mq_row_number(const json_t *row, const char *key, double unknown);
/* false: not an integer from min to MQ_ID_MAX */
bool mq_row_integer(const json_t *row, const char *key, int64_t min, int64_t *out);

#endif
