/* completion: see completion.h. The texts of both tables have no quotes and no brackets that a shell would
 * see, but for what zsh_text and fish_text take care of. */
#include "src/completion.h"

#include <string.h>

#include "src/job.h"
#include "src/option.h"

#define FILES "@files"
#define FOLDERS "@folders"
#define DEVICES "auto cpu cuda cuda:0"

/* The options of some scopes, one after another. */
static const struct mq_option *next_option(unsigned scopes, int *i)
{
	while (*i < MQ_OPT_COUNT) {
		const struct mq_option *o = &mq_option_table[(*i)++];

		if (o->scopes & scopes)
			return o;
	}
	return NULL;
}

static unsigned all_scopes(const struct mq_completion *of)
{
	unsigned scopes = of->scopes;

	for (size_t c = 0; c < of->commands; c++)
		scopes |= of->command[c].scopes;
	return scopes;
}

static const char *palettes(char *text, size_t size)
{
	text[0] = '\0';
	for (int p = 0; p < MQ_PALETTE_COUNT; p++) {
		size_t n = strlen(text);

		snprintf(text + n, size - n, "%s%s", n ? " " : "", mq_palette_name((enum mq_palette)p));
	}
	return text;
}

/* The words that an option takes, FILES, FOLDERS, or NULL when there is nothing to offer. */
static const char *values_of(const struct mq_option *o, char *text, size_t size)
{
	if (!o->value)
		return NULL;
	switch (o->id) {
	case MQ_OPT_OUTPUT:
	case MQ_OPT_LIKE:
	case MQ_OPT_KEY:
	case MQ_OPT_SERVER_KEY:
	case MQ_OPT_CONFIG:
	case MQ_OPT_BACKUP:
		return FILES;
	case MQ_OPT_STATE_DIR:
		return FOLDERS;
	case MQ_OPT_STATE:
		return "queued waiting running paused assembling done failed cancelled";
	case MQ_OPT_DEVICE:
		return DEVICES;
	case MQ_OPT_LOG_LEVEL:
		return "error warn info debug";
	case MQ_OPT_ITERATIONS:
		return "auto";
	case MQ_OPT_COMPRESSION:
		return "fast small";
	case MQ_OPT_PALETTE:
		return palettes(text, size);
	default:
		return NULL;
	}
}

/* What lists the UUIDs of this machine's GPUs in any shell: from the driver, as nvidia-smi is slow. */
#define GPUS \
	"find /proc/driver/nvidia/gpus -name information -exec sed -n 's/^GPU UUID:[[:space:]]*//p' '{}' + " \
	"2>/dev/null"

/* --- bash --- */

static void bash_values(const struct mq_completion *of, FILE *out)
{
	const struct mq_option *o;
	char text[256];

	fputs("	case $pair in\n", out);
	for (int i = 0; (o = next_option(all_scopes(of), &i));) {
		const char *values = values_of(o, text, sizeof(text));

		if (!values)
			continue;
		fprintf(out, "	--%s=*) ", o->name);
		if (strcmp(values, FILES) == 0 || strcmp(values, FOLDERS) == 0)
			fprintf(out, "compopt -o filenames 2>/dev/null; "
				     "mapfile -t COMPREPLY < <(compgen -%c -- \"$value\");;\n",
				strcmp(values, FILES) == 0 ? 'f' : 'd');
		else if (o->id == MQ_OPT_DEVICE)
			fprintf(out, "COMPREPLY=($(compgen -W '%s $(_%s_gpus)' -- \"$value\"));;\n", values,
				of->program);
		else
			fprintf(out, "COMPREPLY=($(compgen -W '%s' -- \"$value\"));;\n", values);
	}
	fputs("	*) pair=;;\n	esac\n", out);
}

static void bash_options(unsigned scopes, FILE *out)
{
	const struct mq_option *o;

	fputs("options='", out);
	for (int i = 0; (o = next_option(scopes, &i));)
		fprintf(out, "--%s%s ", o->name, o->value ? "=" : "");
	fputs("'", out);
}

/* readline splits words at '=' and ':': they are put together again, and what it does not replace is cut
 * off the answer. */
static void bash_begin(const struct mq_completion *of, FILE *out)
{
	fprintf(out, "# bash completion for %s\n", of->program);
	fprintf(out, "_%s_gpus()\n{\n	%s\n}\n_%s()\n{\n", of->program, GPUS, of->program);
	fputs("	local i=$COMP_CWORD word=${COMP_WORDS[COMP_CWORD]} pair value options=\n	COMPREPLY=()\n"
	      "	while [[ $i -gt 1 && ( ${COMP_WORDS[i]} == [=:] || ${COMP_WORDS[i-1]} == [=:] ) ]]; do\n"
	      "		i=$((i - 1)) word=${COMP_WORDS[i]}$word\n	done\n"
	      "	pair=$word\n"
	      "	[[ $word != -* && $i -gt 1 && ${COMP_WORDS[i-1]} == --* ]] && pair=${COMP_WORDS[i-1]}=$word\n"
	      "	value=${pair#*=}\n",
	      out);
}

static void bash(const struct mq_completion *of, FILE *out)
{
	bash_begin(of, out);
	bash_values(of, out);
	fputs("	if [[ $pair ]]; then\n		value=${value%\"${value##*:}\"}\n"
	      "		COMPREPLY=(\"${COMPREPLY[@]#\"$value\"}\")\n		return\n	fi\n",
	      out);
	fputs("	if [[ $i == 1 && $word != -?* ]]; then\n		COMPREPLY=($(compgen -W '", out);
	for (size_t c = 0; c < of->commands; c++)
		fprintf(out, "%s ", of->command[c].name);
	fputs(of->scopes ? "" : "help ", out);
	fputs("--help --version' -- \"$word\"))\n		return\n	fi\n	", out);
	if (of->scopes) {
		bash_options(of->scopes, out);
	} else {
		fputs("case ${COMP_WORDS[1]} in\n", out);
		for (size_t c = 0; c < of->commands; c++) {
			fprintf(out, "	%s) ", of->command[c].name);
			bash_options(of->command[c].scopes, out);
			fputs(";;\n", out);
		}
		fputs("	-*) options='--help --version';;\n	esac", out);
	}
	fputs("\n	if [[ $word == -* ]]; then\n		COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
	      "		[[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace 2>/dev/null\n",
	      out);
	if (!of->scopes)
		fputs("	else\n		compopt -o filenames 2>/dev/null\n"
		      "		mapfile -t COMPREPLY < <(compgen -f -- \"$word\")\n",
		      out);
	fprintf(out, "	fi\n	return 0\n}\ncomplete -F _%s %s\n", of->program, of->program);
}

/* --- zsh --- */

/* Brackets and colons have a meaning in _arguments' specifications. */
static void zsh_text(const char *text, FILE *out)
{
	for (; *text; text++)
		fprintf(out, "%s%c", strchr("[]:\\", *text) ? "\\" : "", *text == '\'' ? ' ' : *text);
}

static void zsh_option(const struct mq_completion *of, unsigned scopes, const struct mq_option *o,
		       bool letter, FILE *out)
{
	char text[256];
	const char *values = values_of(o, text, sizeof(text));

	fprintf(out, "		'%s", o->repeats ? "*" : "");
	if (letter)
		fprintf(out, "-%c%s[", o->letter, o->value ? "+" : "");
	else
		fprintf(out, "--%s%s[", o->name, o->value ? "=" : "");
	zsh_text(mq_option_help(o, scopes), out);
	fputc(']', out);
	if (o->value) {
		fputc(':', out);
		zsh_text(o->value, out);
		fputc(':', out);
	}
	if (values && strcmp(values, FILES) == 0) {
		fputs("_files", out);
	} else if (values && strcmp(values, FOLDERS) == 0) {
		fputs("_files -/", out);
	} else if (values) {
		fputc('(', out);
		zsh_text(values, out);
		if (o->id == MQ_OPT_DEVICE)
			fprintf(out, " $(_%s_gpus)", of->program);
		fputc(')', out);
	}
	fputs("' \\\n", out);
}

static void zsh_options(const struct mq_completion *of, unsigned scopes, FILE *out)
{
	const struct mq_option *o;

	fputs("_arguments \\\n", out);
	for (int i = 0; (o = next_option(scopes, &i));) {
		zsh_option(of, scopes, o, false, out);
		if (o->letter)
			zsh_option(of, scopes, o, true, out);
	}
}

static void zsh(const struct mq_completion *of, FILE *out)
{
	fprintf(out, "#compdef %s\n", of->program);
	fprintf(out, "_%s_gpus() {\n	%s\n}\n_%s() {\n", of->program, GPUS, of->program);
	if (of->scopes) {
		fputs("	", out);
		zsh_options(of, of->scopes, out);
		fputs("		'1:command:((", out);
		for (size_t c = 0; c < of->commands; c++)
			fprintf(out, "%s%s\\:\"%s\"", c ? " " : "", of->command[c].name,
				of->command[c].summary);
		fputs("))'\n", out);
	} else {
		fputs("	local -a commands\n	commands=(\n", out);
		for (size_t c = 0; c < of->commands; c++)
			fprintf(out, "		'%s:%s'\n", of->command[c].name, of->command[c].summary);
		fputs("	)\n	if (( CURRENT == 2 )); then\n		_describe command commands\n"
		      "		return\n	fi\n	case $words[2] in\n",
		      out);
		for (size_t c = 0; c < of->commands; c++) {
			fprintf(out, "	%s) shift words; (( CURRENT-- )); ", of->command[c].name);
			zsh_options(of, of->command[c].scopes, out);
			fputs("		'*:file:_files';;\n", out);
		}
		fputs("	esac\n", out);
	}
	fprintf(out, "}\n_%s \"$@\"\n", of->program);
}

/* --- fish --- */

static void fish_text(const char *text, FILE *out)
{
	for (; *text; text++)
		fprintf(out, "%s%c", *text == '\'' || *text == '\\' ? "\\" : "", *text);
}

/* command: the one that the option belongs to, or NULL. */
static void fish_option(const struct mq_completion *of, const char *command, unsigned scopes,
			const struct mq_option *o, FILE *out)
{
	char text[256];
	const char *values = values_of(o, text, sizeof(text));

	fprintf(out, "complete -c %s", of->program);
	if (command)
		fprintf(out, " -n '__fish_seen_subcommand_from %s'", command);
	fprintf(out, " -l %s", o->name);
	if (o->letter)
		fprintf(out, " -s %c", o->letter);
	if (values && strcmp(values, FILES) == 0)
		fputs(" -r -F", out);
	else if (values && strcmp(values, FOLDERS) == 0)
		fputs(" -x -a '(__fish_complete_directories)'", out);
	else if (values && o->id == MQ_OPT_DEVICE)
		fprintf(out, " -x -a '%s (__%s_gpus)'", values, of->program);
	else if (values)
		fprintf(out, " -x -a '%s'", values);
	else if (o->value)
		fputs(" -x", out);
	fputs(" -d '", out);
	fish_text(mq_option_help(o, scopes), out);
	fputs("'\n", out);
}

static void fish(const struct mq_completion *of, FILE *out)
{
	const struct mq_option *o;

	fprintf(out, "# fish completion for %s\nfunction __%s_gpus\n	%s\nend\n", of->program, of->program,
		GPUS);
	if (of->scopes)
		fprintf(out, "complete -c %s -f\n", of->program);
	for (int i = 0; (o = next_option(of->scopes, &i));)
		fish_option(of, NULL, of->scopes, o, out);
	for (size_t c = 0; c < of->commands; c++) {
		const struct mq_completion_command *command = &of->command[c];

		fprintf(out, "complete -c %s -n __fish_use_subcommand -f -a %s -d '", of->program,
			command->name);
		fish_text(command->summary, out);
		fputs("'\n", out);
		for (int i = 0; !of->scopes && (o = next_option(command->scopes, &i));)
			fish_option(of, command->name, command->scopes, o, out);
	}
}

enum mq_status mq_completion_print(const struct mq_completion *of, const char *shell, FILE *out,
				   struct mq_error *err)
{
	if (strcmp(shell, "bash") == 0)
		bash(of, out);
	else if (strcmp(shell, "zsh") == 0)
		zsh(of, out);
	else if (strcmp(shell, "fish") == 0)
		fish(of, out);
	else
		return mq_fail(err, MQ_EINVAL, "--completion=%.40s: bash, zsh or fish is needed", shell);
	return MQ_OK;
}
