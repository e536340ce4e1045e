/* verbs_private: what the files of verbs share. Nobody else includes this. */
#ifndef MQ_VERBS_PRIVATE_H
#define MQ_VERBS_PRIVATE_H

#include "worker/verbs.h"

/* One request under way. */
struct mq_call {
	struct mq_verbs *v;
	const json_t *args;
	int64_t owner, now_ms;
	struct mq_answer *answer;
};

/* Arguments: a wrong type is the client's fault and says which argument. (verbs.c) */
enum mq_status mq_arg_int(const struct mq_call *c, const char *name, json_int_t min, json_int_t max,
                          json_int_t *out, struct mq_error *err);
enum mq_status mq_arg_int_or(const struct mq_call *c, const char *name, json_int_t min, json_int_t max,
                             json_int_t standard, json_int_t *out, struct mq_error *err);
/* False when it is absent. */
enum mq_status mq_arg_bool(const struct mq_call *c, const char *name, bool *out, struct mq_error *err);

/* The answer's result, which is taken over (NULL: memory was out). */
enum mq_status mq_verb_reply(struct mq_call *c, json_t *result, struct mq_error *err);
enum mq_status mq_verb_memory(struct mq_error *err);

/* Root and the worker's own user may do everything. */
bool mq_verb_is_operator(const struct mq_call *c);
/* The job of the argument "id", if the peer may change it: MQ_EPERM when it belongs to somebody else.
 * The caller clears the row. */
enum mq_status mq_verb_own_job(const struct mq_call *c, struct mq_job_row *row, struct mq_error *err);
/* May this user have one more job that has not ended? Asked by whatever makes one: MQ_EBUSY (--max-jobs),
 * MQ_ENOSPC (--max-bytes). */
enum mq_status mq_verb_limits(const struct mq_call *c, int64_t owner, struct mq_error *err);

typedef enum mq_status mq_verb(struct mq_call *c, struct mq_error *err);
/* verbs_list.c */
mq_verb mq_verb_status, mq_verb_tiles, mq_verb_attempts, mq_verb_metrics;
/* verbs_queue.c */
mq_verb mq_verb_cancel, mq_verb_pause, mq_verb_resume, mq_verb_retry, mq_verb_priority, mq_verb_remove,
	mq_verb_clean;
/* verbs_export.c */
mq_verb mq_verb_open, mq_verb_poll, mq_verb_read, mq_verb_close, mq_verb_backup;

#endif
