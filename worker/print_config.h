/* print_config: what mandelqd says of itself without working: its settings, with their origins, and what
 * it was built with. */
#ifndef MQ_PRINT_CONFIG_H
#define MQ_PRINT_CONFIG_H

#include <stdio.h>

#include "src/option.h"

struct mq_print_config {
	const struct mq_options *options;
	/* what the options and the environment came to */
	const char *state_dir, *endpoint;
	unsigned threads;
};

/* A configuration file that gives these settings, each with a comment that says where it came from. */
enum mq_status mq_print_config(const struct mq_print_config *config, FILE *out, struct mq_error *err);
void mq_print_version(FILE *out);

#endif
