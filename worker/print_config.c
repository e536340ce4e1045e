/* print_config: see print_config.h. */
#include "config.h"

#include "worker/print_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "src/store/store.h"

static void line(FILE *out, const struct mq_option *o, const char *value, const char *origin)
{
	fprintf(out, "%s = %s ; %s\n", o->name, value, origin);
}

/* Where an option that was given came from. */
static const char *named(const char *origin)
{
	return origin ? origin : "command line";
}

/* The value that holds although no option says so, or NULL. */
static const char *standard_of(const struct mq_print_config *c, const struct mq_option *o, char text[32],
                               const char **origin)
{
	static const struct {
		enum mq_option_id id;
		const char *variable;
	} environment[] = {{MQ_OPT_STATE_DIR, "MANDELQ_STATE_DIR"}, {MQ_OPT_ENDPOINT, "MANDELQ_ENDPOINT"}};

	*origin = "default";
	for (size_t i = 0; i < sizeof environment / sizeof environment[0]; i++) {
		const char *value = getenv(environment[i].variable);

		if (environment[i].id == o->id && value && *value)
			*origin = environment[i].variable;
	}
	if (o->id == MQ_OPT_STATE_DIR)
		return c->state_dir;
	if (o->id == MQ_OPT_ENDPOINT)
		return c->endpoint;
	if (o->id != MQ_OPT_THREADS)
		return o->standard;
	snprintf(text, 32, "%u", c->threads);
	return text;
}

static void print_one(const struct mq_print_config *c, const struct mq_option *o, FILE *out)
{
	const struct mq_options *options = c->options;
	const char *value, *origin;
	char text[32];

	if (options->aside[o->id])
		fprintf(out, "; %s = %s ; %s, not for this worker\n", o->name, options->aside[o->id],
		        options->aside_origin[o->id]);
	if (options->count[o->id] && o->repeats) {
		for (unsigned i = 0; i < options->count[o->id]; i++)
			line(out, o, options->repeated[i], named(options->repeated_origin[i]));
	} else if (options->count[o->id]) {
		line(out, o, o->value ? options->value[o->id] : "yes", named(options->origin[o->id]));
	} else {
		value = standard_of(c, o, text, &origin);
		if (value)
			line(out, o, value, origin);
		else
			fprintf(out, "; %s is not set\n", o->name);
	}
}

enum mq_status mq_print_config(const struct mq_print_config *config, FILE *out, struct mq_error *err)
{
	for (int i = 0; i < MQ_OPT_COUNT; i++) {
		const struct mq_option *o = &mq_option_table[i];

		if ((o->scopes & MQ_SCOPE_DAEMON) && o->config)
			print_one(config, o, out);
	}
	if (fflush(out) || ferror(out))
		return mq_fail_errno(err, errno, "cannot write to standard output");
	return MQ_OK;
}

void mq_print_version(FILE *out)
{
	int major, minor, patch;

	zmq_version(&major, &minor, &patch);
	fprintf(out, "mandelqd %s\nbuilt with:", PACKAGE_VERSION);
#ifdef HAVE_CUDA
	fputs(" cuda", out);
#endif
#ifdef HAVE_SYSTEMD
	fputs(" systemd", out);
#endif
#ifdef MQ_FAILPOINTS
	fputs(" failpoints", out);
#endif
	fprintf(out, " libzmq-%d.%d.%d%s sqlite-%s\n", major, minor, patch,
	        zmq_has("curve") ? "+curve" : "", mq_store_engine());
}
