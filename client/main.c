/* main: the table of commands, help, and the exit code. */
#include "config.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "client/command.h"
#include "client/interrupt.h"
#include "client/say.h"

static const struct mq_command commands[] = {
	{ "submit", MQ_SCOPE_SUBMIT, " [PICTURE.png]", "give the worker a job, and print its id",
	  "mandelq submit --size=20000 --center=-0.7436,0.1318 --zoom=2000 --palette=ocean",
	  mq_cmd_submit },
	{ "status", MQ_SCOPE_STATUS, " [ID...]", "show jobs and how far they are",
	  "mandelq status --json", mq_cmd_status },
	{ "wait", MQ_SCOPE_WAIT, " [ID...]",
	  "wait until jobs have ended (without ids: all unfinished ones)",
	  "mandelq wait 3 --timeout=60", mq_cmd_wait },
	{ "fetch", MQ_SCOPE_FETCH, " ID -o FILE", "get the picture of a job, or its counts",
	  "mandelq fetch 3 -o poster.png", mq_cmd_fetch },
	{ "cancel", MQ_SCOPE_CANCEL, " ID...", "give jobs up", "mandelq cancel 3", mq_cmd_cancel },
	{ "render", MQ_SCOPE_RENDER, " -o FILE [PICTURE.png]",
	  "make a picture in one go; run again to continue an interrupted one",
	  "mandelq render --print=90x60cm@300 --supersample=2 -o poster.png", mq_cmd_render },
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_overview(FILE *out)
{
	fputs("Usage: mandelq COMMAND [OPTION...]\n", out);
	fputs("Pictures of the Mandelbrot set of any size, made by a worker (mandelqd).\n\n", out);
	fputs("Commands:\n", out);
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-8s  %s\n", commands[i].name, commands[i].summary);
	fputs("\nmandelq COMMAND --help lists a command's options.\n\n", out);
	fputs("Exit codes: 0 done; 1 failed, cancelled, not ready, or a local file cannot be\n"
	      "written; 2 bad usage or invalid job; 3 no such job; 4 worker not reachable or lost;\n"
	      "5 the request id belongs to a different job; 6 --timeout ran out; 7 stopped, can be\n"
	      "resumed.\n",
	      out);
}

static void print_help(const struct mq_command *command)
{
	printf("Usage: mandelq %s [OPTION...]%s\n%c%s.\n\nOptions:\n", command->name,
	       command->operands, command->summary[0] - 'a' + 'A', command->summary + 1);
	mq_options_help(stdout, MQ_SCOPE_CLIENT | command->scope);
	printf("\nExample:\n  %s\n", command->example);
}

static const struct mq_command *find_command(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
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
	puts("mandelq " PACKAGE_VERSION);
	return finish(mq_say_flush_stdout(err), err);
}

static int run_command(const struct mq_command *command, int argc, char **argv,
		       struct mq_error *err)
{
	unsigned scope = MQ_SCOPE_CLIENT | command->scope;
	struct mq_options options;
	enum mq_status status = mq_options_parse(&options, scope, argc, argv, err);
	int code;

	if (options.count[MQ_OPT_HELP]) {
		print_help(command);
		code = finish(mq_say_flush_stdout(err), err);
	} else if (status == MQ_OK && options.count[MQ_OPT_VERSION]) {
		code = print_version(err);
	} else {
		if (status == MQ_OK)
			status = mq_interrupt_begin(err);
		if (status == MQ_OK)
			status = command->run(&options, err);
		code = finish(status, err);
	}
	mq_options_clear(&options);
	return code;
}

int main(int argc, char **argv)
{
	struct mq_error err = { "" };
	const struct mq_command *command;

	/* Only what a character's width is: numbers are never read or written by locale. */
	setlocale(LC_CTYPE, "");
	if (argc < 2) {
		print_overview(stderr);
		return mq_status_exit_code(MQ_EINVAL);
	}
	command = find_command(argv[1]);
	if (command)
		return run_command(command, argc - 2, argv + 2, &err);
	if (strcmp(argv[1], "help") == 0 && argc > 2 && (command = find_command(argv[2]))) {
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
	return finish(mq_fail(&err, MQ_EINVAL,
			      argv[1][0] == '-'
				      ? "the command comes before \"%.60s\"; see mandelq --help"
				      : "there is no command \"%.60s\"; see mandelq --help",
			      argv[1]),
		      &err);
}
