/* option: the one table of every option of both programs. Command lines, the configuration file,
 * help texts, man-page checks and completions are driven by it.
 *
 * Long options only, as --name=VALUE or --name VALUE (a VALUE may be a negative number: what follows
 * an option that takes a value is its value), plus -h and -o. "--" ends the options. Values are kept
 * as text here; whoever uses one checks it and names the option in its error. */
#ifndef MQ_OPTION_H
#define MQ_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "src/status.h"

/* Which programs and commands take an option. */
enum mq_scope {
	MQ_SCOPE_DAEMON = 1 << 0,
	MQ_SCOPE_CLIENT = 1 << 1, /* every client command */
	MQ_SCOPE_SUBMIT = 1 << 2,
	MQ_SCOPE_RENDER = 1 << 3,
	MQ_SCOPE_STATUS = 1 << 4,
	MQ_SCOPE_WAIT = 1 << 5,
	MQ_SCOPE_FETCH = 1 << 6,
	MQ_SCOPE_CANCEL = 1 << 7,
	MQ_SCOPE_INFO = 1 << 8,
	MQ_SCOPE_WATCH = 1 << 9,
	MQ_SCOPE_PAUSE = 1 << 10, /* and resume */
	MQ_SCOPE_RETRY = 1 << 11,
	MQ_SCOPE_PRIORITY = 1 << 12,
	MQ_SCOPE_REMOVE = 1 << 13,
	MQ_SCOPE_CLEAN = 1 << 14,
	MQ_SCOPE_DEVICES = 1 << 15,
	MQ_SCOPE_METRICS = 1 << 16,
	MQ_SCOPE_KEYGEN = 1 << 17,
	MQ_SCOPE_ASKING = 1 << 18, /* every client command that talks to a worker */
	MQ_SCOPE_END = 1 << 19, /* the first that is none */
};

/* The options' ids: an index into a struct mq_options. */
enum mq_option_id {
	MQ_OPT_HELP, MQ_OPT_VERSION,
	/* worker */
	MQ_OPT_STATE_DIR, MQ_OPT_ENDPOINT, MQ_OPT_DEVICE, MQ_OPT_THREADS, MQ_OPT_DEVICE_MEMORY,
	MQ_OPT_CLIENT_MEMORY, MQ_OPT_IDLE_RELEASE, MQ_OPT_MAX_JOBS, MQ_OPT_MAX_BYTES, MQ_OPT_KEEP_FOR,
	MQ_OPT_KEEP_SIZE, MQ_OPT_STUCK_TIMEOUT, MQ_OPT_CONFIG, MQ_OPT_LOG_LEVEL, MQ_OPT_NO_SHORTCUTS,
	MQ_OPT_CHECK, MQ_OPT_PRINT_CONFIG, MQ_OPT_BACKUP,
	/* job */
	MQ_OPT_SIZE, MQ_OPT_VIEW, MQ_OPT_CENTER, MQ_OPT_ZOOM, MQ_OPT_ITERATIONS, MQ_OPT_PALETTE,
	MQ_OPT_PALETTE_PERIOD, MQ_OPT_PALETTE_OFFSET, MQ_OPT_INSIDE, MQ_OPT_SUPERSAMPLE, MQ_OPT_PRINT,
	MQ_OPT_COMPRESSION, MQ_OPT_KEEP_COUNTS, MQ_OPT_LIKE,
	/* submit */
	MQ_OPT_NAME, MQ_OPT_PRIORITY, MQ_OPT_REQUEST_ID, MQ_OPT_AFTER, MQ_OPT_WAIT,
	/* status, wait, fetch, render, and what steers the queue */
	MQ_OPT_STATE, MQ_OPT_MINE, MQ_OPT_LIMIT, MQ_OPT_LOG, MQ_OPT_ALL, MQ_OPT_OLDER_THAN, MQ_OPT_JSON,
	MQ_OPT_TIMEOUT, MQ_OPT_OUTPUT, MQ_OPT_FORCE, MQ_OPT_PREVIEW, MQ_OPT_COUNTS, MQ_OPT_SMOOTH,
	MQ_OPT_REGION, MQ_OPT_STOP_AFTER, MQ_OPT_QUIET,
	/* remote */
	MQ_OPT_KEY, MQ_OPT_SERVER_KEY,
	MQ_OPT_COUNT
};

struct mq_option {
	enum mq_option_id id;
	const char *name;     /* "state-dir" */
	char letter;          /* 'o', or 0 */
	const char *value;    /* placeholder ("DIR"), or NULL for a switch */
	unsigned scopes;      /* enum mq_scope, or-ed */
	bool repeats;         /* may be given more than once (--device) */
	bool config;          /* may stand in the configuration file */
	const char *standard; /* default as text for the help, or NULL */
	const char *help;     /* one line; see mq_option_help */
};

/* The table, MQ_OPT_COUNT rows, in the order of the enum. */
extern const struct mq_option mq_option_table[MQ_OPT_COUNT];

/* The line of help for the commands of these scopes: an option may do different things in them. */
const char *mq_option_help(const struct mq_option *option, unsigned scopes);

/* Who has one scope: "mandelqd", or the command. */
const char *mq_scope_name(unsigned scope);

#define MQ_OPTION_REPEAT_MAX 16

/* Parsed values. Strings are borrowed from argv, or owned by this struct when they come from a
 * configuration file (see mq_options_clear). */
struct mq_options {
	unsigned count[MQ_OPT_COUNT];                       /* 0: not given */
	const char *value[MQ_OPT_COUNT];                    /* last value; "" for a switch */
	const char *repeated[MQ_OPTION_REPEAT_MAX];         /* values of the option that repeats (--device) */
	const char *repeated_origin[MQ_OPTION_REPEAT_MAX];  /* as origin */
	const char **operand;                               /* what is no option, in order */
	size_t operands;
	const char *origin[MQ_OPT_COUNT];                   /* "FILE:LINE"; NULL: the command line */
	const char *aside[MQ_OPT_COUNT];                    /* a file's value that does not hold; or NULL */
	const char *aside_origin[MQ_OPT_COUNT];             /* as origin */
	void *owned;                                        /* private */
};

/* Parses argv[0..argc-1] (without the program's and the command's name). MQ_EINVAL names the option
 * and what to do ("unknown option --siz; did you mean --size?"). out needs mq_options_clear always. */
enum mq_status mq_options_parse(struct mq_options *out, unsigned scope, int argc, char *const *argv,
                                struct mq_error *err);
void mq_options_clear(struct mq_options *options);

/* Reads an INI file (inih): keys are names of the options of `scope` that may stand in it, without a
 * section; twice only for one that repeats. Options already given are left alone. MQ_EINVAL with
 * "FILE:LINE: ..."; MQ_ENOENT. */
enum mq_status mq_options_read_config(struct mq_options *options, unsigned scope, const char *path,
                                      struct mq_error *err);

/* What a file says of this option, which does not repeat, does not hold: as if it were not given. What the
 * command line says stays. */
void mq_options_set_aside(struct mq_options *options, enum mq_option_id id);

/* Puts "FILE:LINE: " before the text of a failure when the value that caused it has such an origin; gives
 * status again. For whoever checks a value. */
enum mq_status mq_option_blame(const char *origin, enum mq_status status, struct mq_error *err);

/* Prints one line an option of the scope, aligned. */
void mq_options_help(FILE *out, unsigned scope);

/* Values that both programs use. Each names the option in its error (MQ_EINVAL). */
enum mq_status mq_option_u64(const char *text, enum mq_option_id id, unsigned long long min,
                             unsigned long long max, unsigned long long *out, struct mq_error *err);
/* "256M", "4G", "1073741824": binary multiples, B K M G T with an optional "iB"/"B". */
enum mq_status mq_option_bytes(const char *text, enum mq_option_id id, unsigned long long *out,
                               struct mq_error *err);
/* "90s", "45m", "12h", "7d", "2w", and "0" as the one without a unit: at most 1e9 seconds, to milliseconds. */
enum mq_status mq_option_age(const char *text, enum mq_option_id id, unsigned long long *ms,
                             struct mq_error *err);
/* Seconds as a decimal, >= 0 and at most 1e9, to milliseconds. */
enum mq_status mq_option_seconds(const char *text, enum mq_option_id id, unsigned long long *ms,
                                 struct mq_error *err);

#endif
