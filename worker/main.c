/* main: mandelqd, the worker daemon. Reads the options, and does what they ask for: serve (daemon.c), or
 * one thing that needs no worker of its own. */
#include "config.h"

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/completion.h"
#include "src/log.h"
#include "src/option.h"
#include "src/place.h"
#include "src/process.h"
#include "worker/backup.h"
#include "worker/check.h"
#include "worker/daemon.h"
#include "worker/journal.h"
#include "worker/limits.h"
#include "worker/print_config.h"
#include "worker/remote.h"
#include "worker/settings.h"

#define SYSTEM_CONFIG "/etc/mandelq/mandelqd.conf"

/* What was printed need not have come to anybody. */
static enum mq_status flush_stdout(struct mq_error *err)
{
	return fflush(stdout) || ferror(stdout)
	               ? mq_fail_errno(err, errno, "cannot write to standard output")
	               : MQ_OK;
}

/* --check: 0 when all is well, 1 with findings, 2 when it cannot be looked at. */
static int check(const struct mq_options *o)
{
	struct mq_error err = {""};
	uint64_t findings = 0;
	char *dir = NULL;
	enum mq_status s = mq_settings_state_dir(o, &dir, &err);

	mq_log_set_level(MQ_LOG_NONE); /* what the copy of the store says is no news */
	if (!s)
		s = mq_option_blame(o->origin[MQ_OPT_STATE_DIR], mq_check_state_dir(dir, stdout, &findings, &err),
		                    &err);
	if (!s)
		s = flush_stdout(&err);
	free(dir);
	if (s) {
		fprintf(stderr, "mandelqd: %s\n", err.text);
		return 2;
	}
	return findings ? 1 : 0;
}

static void help(void)
{
	printf("Usage: mandelqd [OPTION...]\n"
	       "       mandelqd keygen [--state-dir=DIR] [--force]\n"
	       "Renders the jobs that mandelq submits: keeps them in a state directory, survives anything.\n\n");
	mq_options_help(stdout, MQ_SCOPE_DAEMON);
	printf("\nExample: mandelqd --state-dir=/data/mandelq --device=cuda --device-memory=4G\n");
}

/* --help and --version. */
static int tell(const struct mq_options *o)
{
	struct mq_error err = {""};
	enum mq_status s;

	if (o->count[MQ_OPT_HELP])
		help();
	else
		mq_print_version(stdout);
	s = flush_stdout(&err);
	if (s)
		fprintf(stderr, "mandelqd: %s\n", err.text);
	return s ? 1 : 0;
}

/* Says which one it was: the own worker's and the service's are easily taken for each other. */
static enum mq_status backup(const struct mq_settings *set, const char *file, struct mq_error *err)
{
	enum mq_status s = mq_backup(set, file, err);

	if (s)
		return s;
	printf("%s/mandelq.db is copied to %s\n", set->state_dir, file);
	return flush_stdout(err);
}

/* What needs the settings and no worker of our own. */
static int run_once(const struct mq_options *o)
{
	struct mq_error err = {""};
	struct mq_settings set;
	enum mq_status s = mq_settings_read(o, &set, &err);
	const struct mq_print_config p = {o, set.state_dir, set.remote ? set.remote : set.endpoint,
	                                  set.threads};

	if (!s && o->count[MQ_OPT_BACKUP])
		s = backup(&set, o->value[MQ_OPT_BACKUP], &err);
	else if (!s)
		s = mq_print_config(&p, stdout, &err);
	mq_settings_clear(&set);
	if (s)
		fprintf(stderr, "mandelqd: %s\n", err.text);
	return s == MQ_OK ? 0 : s == MQ_EINVAL || s == MQ_EVERSION ? 2 : 1;
}

static int keygen(const struct mq_options *o)
{
	struct mq_error err = {""};
	char *dir = NULL;
	enum mq_status s = mq_settings_state_dir(o, &dir, &err);

	if (!s)
		s = mq_remote_keygen(dir, o->count[MQ_OPT_FORCE], &err);
	free(dir);
	if (s)
		fprintf(stderr, "mandelqd: %s\n", err.text);
	return s == MQ_OK ? 0 : s == MQ_EINVAL ? 2 : 1;
}

static int print_completion(const char *shell)
{
	static const struct mq_completion_command command = {
		"keygen", MQ_SCOPE_DAEMON, "make the keys for clients on other machines"};
	static const struct mq_completion of = {"mandelqd", MQ_SCOPE_DAEMON, &command, 1};
	struct mq_error err = {""};
	enum mq_status s = mq_completion_print(&of, shell, stdout, &err);

	if (!s)
		s = flush_stdout(&err);
	if (s)
		fprintf(stderr, "mandelqd: %s\n", err.text);
	return s == MQ_OK ? 0 : s == MQ_EINVAL ? 2 : 1;
}

/* What stands beside the options: "keygen" or nothing. One thing is done in place of serving. */
static enum mq_status check_operands(const struct mq_options *o, struct mq_error *err)
{
	bool keys = o->operands && !strcmp(o->operand[0], "keygen");
	const struct {
		bool asked;
		const char *name;
	} instead[] = {{keys, "keygen"},
	               {o->count[MQ_OPT_CHECK], "--check"},
	               {o->count[MQ_OPT_BACKUP], "--backup"},
	               {o->count[MQ_OPT_PRINT_CONFIG], "--print-config"}};
	const char *first = NULL;

	for (size_t i = 0; i < sizeof instead / sizeof instead[0]; i++) {
		if (instead[i].asked && first)
			return mq_fail(err, MQ_EINVAL, "%s and %s do not go together: one at a time", first,
			               instead[i].name);
		if (instead[i].asked)
			first = instead[i].name;
	}

	if (o->operands > keys)
		return mq_fail(err, MQ_EINVAL, "'%s' is no option: see mandelqd --help", o->operand[keys]);
	if (o->count[MQ_OPT_BACKUP] && !*o->value[MQ_OPT_BACKUP])
		return mq_fail(err, MQ_EINVAL, "--backup needs the name of a file");
	if (o->count[MQ_OPT_FORCE] && !keys)
		return mq_fail(err, MQ_EINVAL, "--force is for mandelqd keygen");
	return MQ_OK;
}

/* --config=FILE must be there, and holds whole. The system's own file may be there; every worker of this
 * machine reads it, but the places that it names are those of the system's worker. */
static enum mq_status read_config(struct mq_options *o, struct mq_error *err)
{
	bool system = mq_place_for_system(o->count[MQ_OPT_STATE_DIR] ? o->value[MQ_OPT_STATE_DIR] : NULL);
	enum mq_status s;

	if (o->count[MQ_OPT_CONFIG])
		return mq_options_read_config(o, MQ_SCOPE_DAEMON, o->value[MQ_OPT_CONFIG], err);
	if (access(SYSTEM_CONFIG, F_OK))
		return MQ_OK;
	s = mq_options_read_config(o, MQ_SCOPE_DAEMON, SYSTEM_CONFIG, err);
	if (!s && !system) {
		mq_options_set_aside(o, MQ_OPT_STATE_DIR);
		mq_options_set_aside(o, MQ_OPT_ENDPOINT);
	}
	return s;
}

static enum mq_status set_log_level(const struct mq_options *o, struct mq_error *err)
{
	static const char *const names[] = {"error", "warn", "info", "debug"};

	if (!o->count[MQ_OPT_LOG_LEVEL])
		return MQ_OK;
	for (int i = 0; i < 4; i++)
		if (!strcmp(o->value[MQ_OPT_LOG_LEVEL], names[i])) {
			mq_log_set_level((enum mq_log_level)i);
			return MQ_OK;
		}
	return mq_option_blame(o->origin[MQ_OPT_LOG_LEVEL],
	                       mq_fail(err, MQ_EINVAL,
	                               "--log-level: '%s' is none of error, warn, info, debug",
	                               o->value[MQ_OPT_LOG_LEVEL]),
	                       err);
}

int main(int argc, char **argv)
{
	static struct mq_options options;
	struct mq_error err = {""};
	enum mq_status s;
	int rc;

	mq_process_begin();
	if (argc > 1 && !strncmp(argv[1], "--completion=", 13))
		return print_completion(argv[1] + 13);
	s = mq_options_parse(&options, MQ_SCOPE_DAEMON, argc - 1, argv + 1, &err);
	/* A tile's strips come and go: keep the heap from holding on to what it once needed. */
	mallopt(M_ARENA_MAX, 2);
	mallopt(M_MMAP_THRESHOLD, 128 * 1024);
	/* Small pieces that are kept apart keep large ones from joining: malloc_trim gives those back in a heap's
	 * middle, but not at the end of a thread's. */
	mallopt(M_MXFAST, 0);
	if (!s && (options.count[MQ_OPT_HELP] || options.count[MQ_OPT_VERSION]))
		return tell(&options);
	if (!s)
		s = check_operands(&options, &err);
	if (!s)
		s = read_config(&options, &err);
	if (!s)
		s = set_log_level(&options, &err);
	if (s) {
		fprintf(stderr, "mandelqd: %s\n", err.text);
		mq_options_clear(&options);
		return 2;
	}
	mq_journal_begin();
	mq_limits_raise_files();
	if (options.operands)
		rc = keygen(&options);
	else if (options.count[MQ_OPT_CHECK])
		rc = check(&options);
	else if (options.count[MQ_OPT_BACKUP] || options.count[MQ_OPT_PRINT_CONFIG])
		rc = run_once(&options);
	else
		rc = mq_daemon_run(&options);
	mq_options_clear(&options);
	return rc;
}
