/* completion: see completion.h. Called by main for --completion=SHELL, which make install uses. The
 * texts of both tables have no quotes and no brackets that a shell would see. */
#include "client/completion.h"

#include <stdio.h>
#include <string.h>

#include "client/command.h"
#include "client/say.h"
#include "src/job.h"
#include "src/option.h"

/* The options of a command, one after another. */
static const struct mq_option *next_option(const struct mq_command *c, int *i)
{
	while (*i < MQ_OPT_COUNT) {
		const struct mq_option *o = &mq_option_table[(*i)++];

		if (o->scopes & (MQ_SCOPE_CLIENT | c->scope))
			return o;
	}
	return NULL;
}

/* The words that an option takes, or NULL: "@files" for a file's name. */
static const char *values_of(const struct mq_option *o, char *text, size_t size)
{
	switch (o->id) {
	case MQ_OPT_OUTPUT:
	case MQ_OPT_STATE_DIR:
	case MQ_OPT_LIKE:
	case MQ_OPT_KEY:
	case MQ_OPT_SERVER_KEY:
		return "@files";
	case MQ_OPT_STATE:
		return "queued waiting running paused assembling done failed cancelled";
	case MQ_OPT_DEVICE:
		return "auto cpu cuda cuda:0";
	case MQ_OPT_ITERATIONS:
		return "auto";
	case MQ_OPT_COMPRESSION:
		return "fast small";
	case MQ_OPT_PALETTE:
		text[0] = '\0';
		for (int p = 0; p < MQ_PALETTE_COUNT; p++) {
			size_t n = strlen(text);

			snprintf(text + n, size - n, "%s%s", n ? " " : "",
				 mq_palette_name((enum mq_palette)p));
		}
		return text;
	default:
		return NULL;
	}
}

static void bash_values(void)
{
	char text[256];

	puts("	case $word in");
	for (int i = 0; i < MQ_OPT_COUNT; i++) {
		const struct mq_option *o = &mq_option_table[i];
		const char *values = o->value ? values_of(o, text, sizeof(text)) : NULL;

		if (!values)
			continue;
		if (strcmp(values, "@files") == 0)
			printf("	--%s=*) COMPREPLY=($(compgen -f -- \"${word#*=}\")); return;;\n",
			       o->name);
		else
			printf("	--%s=*) COMPREPLY=($(compgen -W '%s' -- \"${word#*=}\")); return;;\n",
			       o->name, values);
	}
	puts("	esac");
}

static void bash(void)
{
	puts("# bash completion for mandelq");
	puts("_mandelq()\n{\n	local word=${COMP_WORDS[COMP_CWORD]} options=\n	COMPREPLY=()");
	/* readline splits words at '=': put the option and its value together again */
	puts("	if [[ $word == = ]]; then word=${COMP_WORDS[COMP_CWORD-1]}=\n"
	     "	elif [[ $COMP_CWORD -gt 1 && ${COMP_WORDS[COMP_CWORD-1]} == = ]]; then\n"
	     "		word=${COMP_WORDS[COMP_CWORD-2]}=$word\n	fi");
	fputs("	if [[ $COMP_CWORD == 1 ]]; then\n		COMPREPLY=($(compgen -W '", stdout);
	for (const struct mq_command *c = mq_commands; c->name; c++)
		printf("%s ", c->name);
	puts("help --help --version' -- \"$word\"))\n		return\n	fi");
	bash_values();
	puts("	case ${COMP_WORDS[1]} in");
	for (const struct mq_command *c = mq_commands; c->name; c++) {
		const struct mq_option *o;

		printf("	%s) options='", c->name);
		for (int i = 0; (o = next_option(c, &i));)
			printf("--%s%s ", o->name, o->value ? "=" : "");
		puts("';;");
	}
	puts("	esac\n	if [[ $word == -* ]]; then");
	puts("		COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))");
	puts("		[[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace");
	puts("	else\n		COMPREPLY=($(compgen -f -- \"$word\"))\n	fi\n}");
	puts("complete -F _mandelq mandelq");
}

/* Brackets and colons have a meaning in _arguments' specifications. */
static void zsh_text(const char *text)
{
	for (; *text; text++)
		printf("%s%c", strchr("[]:\\", *text) ? "\\" : "", *text == '\'' ? ' ' : *text);
}

static void zsh_option(const struct mq_option *o)
{
	char text[256];
	const char *values = o->value ? values_of(o, text, sizeof(text)) : NULL;

	printf("		'--%s%s[", o->name, o->value ? "=" : "");
	zsh_text(o->help);
	putchar(']');
	if (o->value) {
		putchar(':');
		zsh_text(o->value);
		putchar(':');
		if (values && strcmp(values, "@files") == 0)
			fputs("_files", stdout);
		else if (values)
			printf("(%s)", values);
	}
	puts("' \\");
}

static void zsh(void)
{
	puts("#compdef mandelq\n_mandelq() {\n	local -a commands\n	commands=(");
	for (const struct mq_command *c = mq_commands; c->name; c++)
		printf("		'%s:%s'\n", c->name, c->summary);
	puts("	)\n	if (( CURRENT == 2 )); then\n		_describe command commands\n"
	     "		return\n	fi\n	case $words[2] in");
	for (const struct mq_command *c = mq_commands; c->name; c++) {
		const struct mq_option *o;

		printf("	%s) shift words; (( CURRENT-- )); _arguments \\\n", c->name);
		for (int i = 0; (o = next_option(c, &i));)
			zsh_option(o);
		puts("		'*:file:_files';;");
	}
	puts("	esac\n}\n_mandelq \"$@\"");
}

static void fish(void)
{
	char text[256];

	puts("# fish completion for mandelq");
	for (const struct mq_command *c = mq_commands; c->name; c++) {
		const struct mq_option *o;

		printf("complete -c mandelq -n __fish_use_subcommand -f -a %s -d '%s'\n", c->name,
		       c->summary);
		for (int i = 0; (o = next_option(c, &i));) {
			const char *values = o->value ? values_of(o, text, sizeof(text)) : NULL;

			printf("complete -c mandelq -n '__fish_seen_subcommand_from %s' -l %s", c->name,
			       o->name);
			if (o->letter)
				printf(" -s %c", o->letter);
			if (o->value && values && strcmp(values, "@files") == 0)
				fputs(" -r -F", stdout);
			else if (o->value && values)
				printf(" -x -a '%s'", values);
			else if (o->value)
				fputs(" -x", stdout);
			fputs(" -d '", stdout);
			for (const char *p = o->help; *p; p++)
				printf("%s%c", *p == '\'' || *p == '\\' ? "\\" : "", *p);
			puts("'");
		}
	}
}

enum mq_status mq_completion(const char *shell, struct mq_error *err)
{
	if (strcmp(shell, "bash") == 0)
		bash();
	else if (strcmp(shell, "zsh") == 0)
		zsh();
	else if (strcmp(shell, "fish") == 0)
		fish();
	else
		return mq_fail(err, MQ_EINVAL, "--completion=%.40s: bash, zsh or fish is needed", shell);
	return mq_say_flush_stdout(err);
}
