/* settings: the daemon's options as numbers, checked. Read once, before anything else comes up. */
#ifndef MQ_SETTINGS_H
#define MQ_SETTINGS_H

#include <stdint.h>

#include "src/option.h"
#include "src/status.h"

/* Each user's; 0: no limit. */
struct mq_user_limits {
	uint64_t jobs;  /* that have not ended */
	uint64_t bytes; /* of pictures, previews and counts */
};

struct mq_settings {
	char *state_dir, *endpoint; /* owned */
	char *remote;               /* tcp://..., served besides the endpoint, or NULL; owned */
	const char *state_dir_origin, *endpoint_origin, *remote_origin; /* for mq_option_blame; the options' own */
	unsigned threads;
	uint64_t device_memory, client_memory; /* bytes */
	uint64_t idle_release_ms, stuck_ms;
	uint64_t keep_for_ms, keep_bytes; /* 0: for ever */
	struct mq_user_limits limits;
};

/* MQ_EINVAL names the option and its limit. out needs mq_settings_clear always. */
enum mq_status mq_settings_read(const struct mq_options *options, struct mq_settings *out,
                                struct mq_error *err);

/* The state directory alone. Caller frees *out. */
enum mq_status mq_settings_state_dir(const struct mq_options *options, char **out, struct mq_error *err);

void mq_settings_clear(struct mq_settings *settings);

#endif
