/* main: the table of commands, help, and the exit code. */
#include "config.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "client/command.h"
#include "client/interrupt.h"
#include "client/say.h"
#include "src/completion.h"
#include "src/nearest.h"
#include "src/process.h"

const struct mq_command mq_commands[] = {
	{ "submit", MQ_SCOPE_SUBMIT, " [PICTURE.png | JOB.json... | -]",
	  "give the worker a job, or many, and print their ids",
	  "mandelq submit --size=20000 --center=-0.7436,0.1318 --zoom=2000 --palette=ocean",
	  mq_cmd_submit },
	{ "status", MQ_SCOPE_STATUS, " [ID...]", "show jobs and how far they are",
	  "mandelq status --json", mq_cmd_status },
	{ "wait", MQ_SCOPE_WAIT, " [ID...]",
	  "wait until jobs have ended (without ids: all unfinished ones)",
	  "mandelq wait 3 --timeout=60", mq_cmd_wait },
	{ "fetch", MQ_SCOPE_FETCH, " ID -o FILE", "get the picture of a job, or its counts",
	  "mandelq fetch 3 -o poster.png", mq_cmd_fetch },
	{ "info", MQ_SCOPE_INFO, " ID", "show all that is known of a job", "mandelq info 3 --log",
	  mq_cmd_info },
	{ "watch", MQ_SCOPE_WATCH, " [ID...]", "show jobs as they move", "mandelq watch --mine",
	  mq_cmd_watch },
	{ "cancel", MQ_SCOPE_CANCEL, " ID...", "give jobs up", "mandelq cancel 3", mq_cmd_cancel },
	{ "pause", MQ_SCOPE_PAUSE, " ID... | --all", "begin nothing new of jobs, or of the whole queue",
	  "mandelq pause 3", mq_cmd_pause },
	{ "resume", MQ_SCOPE_PAUSE, " ID... | --all", "let jobs, or the whole queue, go on",
	  "mandelq resume --all", mq_cmd_resume },
	{ "retry", MQ_SCOPE_RETRY, " ID...", "render what is missing of failed jobs", "mandelq retry 3",
	  mq_cmd_retry },
	{ "priority", MQ_SCOPE_PRIORITY, " ID N", "change when a job's turn is", "mandelq priority 3 10",
	  mq_cmd_priority },
	{ "remove", MQ_SCOPE_REMOVE, " ID...", "forget jobs that have ended, with their pictures",
	  "mandelq remove 3 4", mq_cmd_remove },
	{ "clean", MQ_SCOPE_CLEAN, " --older-than=AGE", "remove what ended long ago",
	  "mandelq clean --older-than=7d", mq_cmd_clean },
	{ "devices", MQ_SCOPE_DEVICES, "", "show what the worker renders on", "mandelq devices --json",
	  mq_cmd_devices },
	{ "metrics", MQ_SCOPE_METRICS, "", "print the worker's counters for Prometheus",
	  "mandelq metrics", mq_cmd_metrics },
	{ "keygen", MQ_SCOPE_KEYGEN, "", "make your keys for workers on other machines",
	  "mandelq keygen", mq_cmd_keygen },
	{ "render", MQ_SCOPE_RENDER, " -o FILE [PICTURE.png]",
	  "make a picture in one go; run again to continue an interrupted one",
	  "mandelq render --print=90x60cm@300 --supersample=2 -o poster.png", mq_cmd_render },
	{ 0 },
};

static void print_overview(FILE *out)
{
	fputs("Usage: mandelq COMMAND [OPTION...]\n", out);
	fputs("Pictures of the Mandelbrot set of any size, made by a worker (mandelqd).\n\n", out);
	fputs("Commands:\n", out);
	for (const struct mq_command *c = mq_commands; c->name; c++)
		fprintf(out, "  %-8s  %s\n", c->name, c->summary);
	fputs("\nmandelq COMMAND --help lists a command's options.\n\n", out);
	fputs("Exit codes: 0 done; 1 failed, cancelled, not ready, or a local file cannot be\n"
	      "written; 2 bad usage or invalid job; 3 no such job; 4 worker not reachable or lost;\n"
	      "5 the request id belongs to a different job; 6 --timeout ran out; 7 stopped, can be\n"
	      "resumed; 8 the job belongs to somebody else, or the worker refuses the keys.\n",
	      out);
}

/* keygen alone asks no worker. */
static unsigned scopes_of(const struct mq_command *command)
{
	return MQ_SCOPE_CLIENT | command->scope |
	       (command->scope == MQ_SCOPE_KEYGEN ? 0 : MQ_SCOPE_ASKING);
}

static void print_help(const struct mq_command *command)
{
	printf("Usage: mandelq %s [OPTION...]%s\n%c%s.\n\nOptions:\n", command->name,
	       command->operands, command->summary[0] - 'a' + 'A', command->summary + 1);
	mq_options_help(stdout, scopes_of(command));
	printf("\nExample:\n  %s\n", command->example);
}

static const struct mq_command *find_command(const char *name)
{
	for (const struct mq_command *c = mq_commands; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

/* A failure becomes a line and an exit code; an empty text has been told already. */
static int finish(enum mq_status status, const struct mq_error *err)
{
	if (status != MQ_OK && err->text[0])
		mq_say("%s", err->text);
	return mq_status_exit_code(status);
}

static int print_version(struct mq_error *err)
{
	int major, minor, patch;

	zmq_version(&major, &minor, &patch);
	printf("mandelq " PACKAGE_VERSION "\nbuilt with:%s libzmq-%d.%d.%d%s jansson-%s\n",
#ifdef MQ_FAILPOINTS
	       " failpoints",
#else
	       "",
#endif
	       major, minor, patch, zmq_has("curve") ? "+curve" : "", JANSSON_VERSION);
	return finish(mq_say_flush_stdout(err), err);
}

static int run_command(const struct mq_command *command, int argc, char **argv,
		       struct mq_error *err)
{
	struct mq_options options;
	enum mq_status status = mq_options_parse(&options, scopes_of(command), argc, argv, err);
	int code;

	if (options.count[MQ_OPT_HELP]) {
		print_help(command);
		code = finish(mq_say_flush_stdout(err), err);
	} else if (status == MQ_OK && options.count[MQ_OPT_VERSION]) {
		code = print_version(err);
	} else {
		mq_say_quiet(options.count[MQ_OPT_QUIET]);
		if (status == MQ_OK)
			status = mq_interrupt_begin(err);
		if (status == MQ_OK)
			status = command->run(&options, err);
		code = finish(status, err);
	}
	mq_options_clear(&options);
	return code;
}

static enum mq_status print_completion(const char *shell, struct mq_error *err)
{
	struct mq_completion_command command[sizeof(mq_commands) / sizeof(mq_commands[0]) - 1];
	struct mq_completion of = { .program = "mandelq", .command = command };
	enum mq_status status;

	for (const struct mq_command *c = mq_commands; c->name; c++)
		command[of.commands++] = (struct mq_completion_command){
			c->name, scopes_of(c), c->summary
		};
	status = mq_completion_print(&of, shell, stdout, err);
	return status ? status : mq_say_flush_stdout(err);
}

static enum mq_status fail_unknown(const char *word, struct mq_error *err)
{
	struct mq_nearest n;

	if (word[0] == '-')
		return mq_fail(err, MQ_EINVAL, "the command comes before \"%.60s\"; see mandelq --help", word);
	mq_nearest_begin(&n, word);
	for (const struct mq_command *c = mq_commands; c->name; c++)
		mq_nearest_try(&n, c->name);
	if (n.found)
		return mq_fail(err, MQ_EINVAL, "there is no command \"%.60s\"; did you mean %s?", word, n.found);
	return mq_fail(err, MQ_EINVAL, "there is no command \"%.60s\"; see mandelq --help", word);
}

int main(int argc, char **argv)
{
	struct mq_error err = { "" };
	const struct mq_command *command;

	mq_process_begin();
	/* Only what a character's width is: numbers are never read or written by locale. */
	setlocale(LC_CTYPE, "");
	if (argc < 2) {
		print_overview(stderr);
		return mq_status_exit_code(MQ_EINVAL);
	}
	command = find_command(argv[1]);
	if (command)
		return run_command(command, argc - 2, argv + 2, &err);
	if (strcmp(argv[1], "help") == 0 && argc > 2) {
		command = find_command(argv[2]);
		if (!command)
			return finish(fail_unknown(argv[2], &err), &err);
		print_help(command);
		return finish(mq_say_flush_stdout(&err), &err);
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
	    strcmp(argv[1], "help") == 0) {
		print_overview(stdout);
		return finish(mq_say_flush_stdout(&err), &err);
	}
	if (strcmp(argv[1], "--version") == 0)
		return print_version(&err);
	if (strncmp(argv[1], "--completion=", 13) == 0)
		return finish(print_completion(argv[1] + 13, &err), &err);
	return finish(fail_unknown(argv[1], &err), &err);
}
