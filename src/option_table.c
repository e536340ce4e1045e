/* option_table: the rows behind src/option.h. Order is the enum's; tests check it, and that the help
 * of every command fits a line. */
#include "src/option.h"

#define ALL (MQ_SCOPE_DAEMON | MQ_SCOPE_CLIENT)
#define REACHING (MQ_SCOPE_DAEMON | MQ_SCOPE_ASKING)
#define JOB (MQ_SCOPE_SUBMIT | MQ_SCOPE_RENDER)
#define WORKER (MQ_SCOPE_DAEMON | MQ_SCOPE_RENDER)
#define ON_JOBS (MQ_SCOPE_CANCEL | MQ_SCOPE_PAUSE | MQ_SCOPE_RETRY | MQ_SCOPE_PRIORITY | MQ_SCOPE_REMOVE)
#define TELLING (ON_JOBS | MQ_SCOPE_STATUS | MQ_SCOPE_SUBMIT | MQ_SCOPE_WAIT | MQ_SCOPE_INFO | \
		 MQ_SCOPE_CLEAN | MQ_SCOPE_DEVICES)
#define LISTING (MQ_SCOPE_STATUS | MQ_SCOPE_WATCH)
#define WRITING (MQ_SCOPE_FETCH | MQ_SCOPE_RENDER)

const struct mq_option mq_option_table[MQ_OPT_COUNT] = {
	{ .id = MQ_OPT_HELP, .name = "help", .letter = 'h', .scopes = ALL,
	  .help = "show this help" },
	{ .id = MQ_OPT_VERSION, .name = "version", .scopes = ALL,
	  .help = "show the version" },

	{ .id = MQ_OPT_STATE_DIR, .name = "state-dir", .value = "DIR", .scopes = REACHING, .config = true,
	  .standard = "~/.local/state/mandelq", .help = "the worker's directory; its socket is in it" },
	{ .id = MQ_OPT_ENDPOINT, .name = "endpoint", .value = "URI", .scopes = REACHING, .config = true,
	  .standard = "ipc://STATE_DIR/mandelqd.sock", .help = "where the worker listens; tcp:// too" },
	{ .id = MQ_OPT_DEVICE, .name = "device", .value = "NAME", .scopes = WORKER, .repeats = true,
	  .config = true, .standard = "auto", .help = "auto, cpu, cuda, cuda:N or GPU-UUID" },
	{ .id = MQ_OPT_THREADS, .name = "threads", .value = "N", .scopes = WORKER, .config = true,
	  .standard = "what the affinity mask and the cgroup allow", .help = "CPU threads" },
	{ .id = MQ_OPT_DEVICE_MEMORY, .name = "device-memory", .value = "SIZE", .scopes = WORKER,
	  .config = true, .standard = "256M", .help = "device memory to use at most" },
	{ .id = MQ_OPT_CLIENT_MEMORY, .name = "client-memory", .value = "SIZE",
	  .scopes = MQ_SCOPE_DAEMON, .config = true, .standard = "512M",
	  .help = "close all connections when they hold more" },
	{ .id = MQ_OPT_IDLE_RELEASE, .name = "idle-release", .value = "SECONDS",
	  .scopes = MQ_SCOPE_DAEMON, .config = true, .standard = "60",
	  .help = "give device memory back when idle for so long" },
	{ .id = MQ_OPT_MAX_JOBS, .name = "max-jobs", .value = "N", .scopes = MQ_SCOPE_DAEMON,
	  .config = true, .help = "unfinished jobs a user may have" },
	{ .id = MQ_OPT_MAX_BYTES, .name = "max-bytes", .value = "SIZE", .scopes = MQ_SCOPE_DAEMON,
	  .config = true, .help = "no new jobs of a user whose pictures hold as much" },
	{ .id = MQ_OPT_KEEP_FOR, .name = "keep-for", .value = "AGE", .scopes = MQ_SCOPE_DAEMON,
	  .config = true, .help = "remove ended jobs after so long, unless not fetched" },
	{ .id = MQ_OPT_KEEP_SIZE, .name = "keep-size", .value = "SIZE", .scopes = MQ_SCOPE_DAEMON,
	  .config = true, .help = "remove the oldest fetched pictures past this size in all" },
	{ .id = MQ_OPT_STUCK_TIMEOUT, .name = "stuck-timeout", .value = "SECONDS",
	  .scopes = MQ_SCOPE_DAEMON, .config = true, .standard = "300",
	  .help = "end, to recover, when work stands still for so long" },
	{ .id = MQ_OPT_CONFIG, .name = "config", .value = "FILE", .scopes = MQ_SCOPE_DAEMON,
	  .help = "read options from FILE; the command line wins" },
	{ .id = MQ_OPT_LOG_LEVEL, .name = "log-level", .value = "LEVEL", .scopes = MQ_SCOPE_DAEMON,
	  .config = true, .standard = "info", .help = "error, warn, info or debug" },
	{ .id = MQ_OPT_NO_SHORTCUTS, .name = "no-shortcuts", .scopes = MQ_SCOPE_DAEMON,
	  .help = "iterate every pixel to its end (for measuring; same pixels)" },
	{ .id = MQ_OPT_CHECK, .name = "check", .scopes = MQ_SCOPE_DAEMON,
	  .help = "report on the state directory without changing it, and end" },
	{ .id = MQ_OPT_PRINT_CONFIG, .name = "print-config", .scopes = MQ_SCOPE_DAEMON,
	  .help = "show what holds and where it came from, and end" },
	{ .id = MQ_OPT_BACKUP, .name = "backup", .value = "FILE", .scopes = MQ_SCOPE_DAEMON,
	  .help = "copy the database to FILE, also of a running worker, and end" },

	{ .id = MQ_OPT_SIZE, .name = "size", .value = "N|WxH", .scopes = JOB,
	  .standard = "1920x1080", .help = "pixels" },
	{ .id = MQ_OPT_VIEW, .name = "view", .value = "XMIN,XMAX,YMIN,YMAX", .scopes = JOB,
	  .standard = "the whole set", .help = "the part of the plane, by its bounds" },
	{ .id = MQ_OPT_CENTER, .name = "center", .value = "RE,IM", .scopes = JOB,
	  .help = "the part of the plane, by its centre" },
	{ .id = MQ_OPT_ZOOM, .name = "zoom", .value = "Z", .scopes = JOB,
	  .standard = "1", .help = "1 is a view 4 high; without --center around -0.75,0" },
	{ .id = MQ_OPT_ITERATIONS, .name = "iterations", .value = "N|auto", .scopes = JOB,
	  .standard = "auto", .help = "iteration limit" },
	{ .id = MQ_OPT_PALETTE, .name = "palette", .value = "NAME", .scopes = JOB,
	  .standard = "ember",
	  .help = "gray ember ocean aurora sunset forest porcelain spectrum" },
	{ .id = MQ_OPT_PALETTE_PERIOD, .name = "palette-period", .value = "X", .scopes = JOB,
	  .standard = "64", .help = "smooth counts for one turn of the palette" },
	{ .id = MQ_OPT_PALETTE_OFFSET, .name = "palette-offset", .value = "X", .scopes = JOB,
	  .standard = "0", .help = "where in the palette to begin, in turns" },
	{ .id = MQ_OPT_INSIDE, .name = "inside", .value = "RRGGBB", .scopes = JOB,
	  .standard = "000000", .help = "colour of the set itself" },
	{ .id = MQ_OPT_SUPERSAMPLE, .name = "supersample", .value = "N", .scopes = JOB,
	  .standard = "1", .help = "average N x N samples a pixel, at most 16" },
	{ .id = MQ_OPT_PRINT, .name = "print", .value = "WxHcm[@DPI]", .scopes = JOB,
	  .help = "size on paper, in cm, mm or in (sets --size)" },
	{ .id = MQ_OPT_COMPRESSION, .name = "compression", .value = "fast|small", .scopes = JOB,
	  .standard = "fast", .help = "how the picture is packed (same pixels)" },
	{ .id = MQ_OPT_KEEP_COUNTS, .name = "keep-counts", .scopes = JOB,
	  .help = "keep the counts, for fetch --counts and --smooth" },
	{ .id = MQ_OPT_LIKE, .name = "like", .value = "ID|PICTURE.png", .scopes = JOB,
	  .help = "take what is not given from that job or picture" },

	{ .id = MQ_OPT_NAME, .name = "name", .value = "TEXT", .scopes = JOB | LISTING,
	  .help = "the job's name" },
	{ .id = MQ_OPT_PRIORITY, .name = "priority", .value = "N", .scopes = JOB,
	  .standard = "0", .help = "higher is sooner" },
	{ .id = MQ_OPT_REQUEST_ID, .name = "request-id", .value = "TEXT", .scopes = MQ_SCOPE_SUBMIT,
	  .help = "the same id and job again gives the same job" },
	{ .id = MQ_OPT_AFTER, .name = "after", .value = "ID", .scopes = MQ_SCOPE_SUBMIT,
	  .help = "wait for that job; fail if it fails" },
	{ .id = MQ_OPT_WAIT, .name = "wait", .scopes = MQ_SCOPE_SUBMIT,
	  .help = "wait until the job has ended" },

	{ .id = MQ_OPT_STATE, .name = "state", .value = "STATE[,STATE]", .scopes = LISTING,
	  .help = "only jobs in these states" },
	{ .id = MQ_OPT_MINE, .name = "mine", .scopes = LISTING, .help = "only your own jobs" },
	{ .id = MQ_OPT_LIMIT, .name = "limit", .value = "N", .scopes = LISTING,
	  .help = "only the newest N" },
	{ .id = MQ_OPT_LOG, .name = "log", .scopes = MQ_SCOPE_INFO,
	  .help = "every attempt at every tile, a line an event" },
	{ .id = MQ_OPT_ALL, .name = "all", .scopes = MQ_SCOPE_PAUSE, .help = "the whole queue" },
	{ .id = MQ_OPT_OLDER_THAN, .name = "older-than", .value = "AGE", .scopes = MQ_SCOPE_CLEAN,
	  .help = "only what ended so long ago: 7d, 12h, 30m" },
	{ .id = MQ_OPT_JSON, .name = "json", .scopes = TELLING,
	  .help = "JSON, for programs" },
	{ .id = MQ_OPT_TIMEOUT, .name = "timeout", .value = "SECONDS",
	  .scopes = MQ_SCOPE_WAIT | MQ_SCOPE_SUBMIT, .help = "wait at most so long (exit 6)" },
	{ .id = MQ_OPT_OUTPUT, .name = "output", .letter = 'o', .value = "FILE", .scopes = WRITING,
	  .help = "the file to write" },
	{ .id = MQ_OPT_FORCE, .name = "force",
	  .scopes = WRITING | MQ_SCOPE_REMOVE | MQ_SCOPE_CLEAN | MQ_SCOPE_KEYGEN | MQ_SCOPE_DAEMON,
	  .help = "replace FILE if it is there" },
	{ .id = MQ_OPT_PREVIEW, .name = "preview", .scopes = MQ_SCOPE_FETCH,
	  .help = "the small picture, at most 2048 pixels a side" },
	{ .id = MQ_OPT_COUNTS, .name = "counts", .scopes = MQ_SCOPE_FETCH,
	  .help = "the counts, as .npy (uint32)" },
	{ .id = MQ_OPT_SMOOTH, .name = "smooth", .scopes = MQ_SCOPE_FETCH,
	  .help = "the smooth counts, as .npy (float32)" },
	{ .id = MQ_OPT_REGION, .name = "region", .value = "X,Y,W,H", .scopes = MQ_SCOPE_FETCH,
	  .help = "only these pixels" },
	{ .id = MQ_OPT_STOP_AFTER, .name = "stop-after", .value = "SECONDS",
	  .scopes = MQ_SCOPE_RENDER, .help = "stop then (exit 7); run again to continue" },
	{ .id = MQ_OPT_QUIET, .name = "quiet", .scopes = MQ_SCOPE_CLIENT,
	  .help = "no progress, no news: errors only" },

	{ .id = MQ_OPT_KEY, .name = "key", .value = "FILE", .scopes = MQ_SCOPE_CLIENT,
	  .standard = "~/.config/mandelq/client.key", .help = "your keys, for tcp endpoints" },
	{ .id = MQ_OPT_SERVER_KEY, .name = "server-key", .value = "KEY|FILE", .scopes = MQ_SCOPE_ASKING,
	  .standard = "as in known_servers", .help = "the worker's public key, for tcp endpoints" },
};

const char *mq_option_help(const struct mq_option *option, unsigned scopes)
{
	static const struct {
		enum mq_option_id id;
		unsigned scopes;
		const char *help;
	} own[] = {
		{ MQ_OPT_NAME, LISTING, "only jobs with this in their name" },
		{ MQ_OPT_FORCE, MQ_SCOPE_REMOVE | MQ_SCOPE_CLEAN, "also pictures that nobody fetched" },
		{ MQ_OPT_FORCE, MQ_SCOPE_KEYGEN, "replace the keys that are there" },
		{ MQ_OPT_FORCE, MQ_SCOPE_DAEMON, "keygen: replace the keys that are there" },
	};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (own[i].id == option->id && (own[i].scopes & scopes))
			return own[i].help;
	return option->help;
}

const char *mq_scope_name(unsigned scope)
{
	static const char *const names[] = {
		"mandelqd", "(any command)", "submit",   "render", "status", "wait",    "fetch",
		"cancel",   "info",          "watch",    "pause",  "retry",  "priority", "remove",
		"clean",    "devices",       "metrics",  "keygen", "(any command but keygen)",
	};
	unsigned bit = 0;

	_Static_assert(1u << (sizeof(names) / sizeof(names[0])) == MQ_SCOPE_END, "a name for each scope");
	while (scope >>= 1)
		bit++;
	return names[bit];
}
