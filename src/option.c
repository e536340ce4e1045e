/* option: parsing by the table of option_table.c. Called by main() of both programs and by whoever
 * turns an option's text into a number. Holds no state; texts stay where they are. */
#include "src/option.h"

#include <errno.h>
#include <ini.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/nearest.h"

#define CONFIG_LINE_MAX 190 /* inih's buffer is 200 bytes */

/* A string that a configuration file gave: one node of mq_options.owned. */
struct owned {
	struct owned *next;
	char text[];
};

/* text for an error: one line, cut. */
struct quoted {
	char text[72];
};

static struct quoted quote(const char *text)
{
	struct quoted q;
	size_t i;

	for (i = 0; i < sizeof(q.text) - 4 && text[i]; i++)
		q.text[i] = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i];
	if (text[i]) {
		while (i > 0 && ((unsigned char)text[i] & 0xc0) == 0x80)
			i--; /* not in the middle of a character */
		memcpy(q.text + i, "...", 3);
		i += 3;
	}
	q.text[i] = '\0';
	return q;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

static const struct mq_option *find_long(const char *name, size_t len, unsigned scope)
{
	for (size_t i = 0; i < MQ_OPT_COUNT; i++) {
		const struct mq_option *o = &mq_option_table[i];

		if ((o->scopes & scope) && strlen(o->name) == len &&
		    memcmp(o->name, name, len) == 0)
			return o;
	}
	return NULL;
}

static const struct mq_option *find_letter(char letter, unsigned scope)
{
	for (size_t i = 0; i < MQ_OPT_COUNT; i++)
		if ((mq_option_table[i].scopes & scope) && mq_option_table[i].letter == letter)
			return &mq_option_table[i];
	return NULL;
}

/* The option of scope that name most likely means, or NULL. */
static const struct mq_option *nearest(const char *name, unsigned scope)
{
	struct mq_nearest n;

	mq_nearest_begin(&n, name);
	for (size_t i = 0; i < MQ_OPT_COUNT; i++)
		if (mq_option_table[i].scopes & scope)
			mq_nearest_try(&n, mq_option_table[i].name);
	return n.found ? find_long(n.found, strlen(n.found), scope) : NULL;
}

/* "mandelqd and mandelq render": who takes an option. */
static const char *takers(const struct mq_option *o, char out[256])
{
	const char *named = "";
	size_t used = 0;
	unsigned left = o->scopes & (MQ_SCOPE_END - 1);

	out[0] = '\0';
	while (left && used < 256) {
		unsigned scope = left & -left;
		const char *name = mq_scope_name(scope), *program = scope == MQ_SCOPE_DAEMON ? "" : "mandelq ";

		left &= ~scope;
		used += (size_t)snprintf(out + used, 256 - used, "%s%s%s",
					 used == 0 ? "" : left ? ", " : " and ",
					 strcmp(named, program) ? program : "", name);
		named = program;
	}
	return out;
}

/* arg as it was typed; the name in it, behind one dash or two, has len bytes. */
static enum mq_status fail_unknown(const char *arg, const char *name, size_t len, unsigned scope,
				   struct mq_error *err)
{
	const struct mq_option *o = find_long(name, len, ~0u);
	char word[64] = "", list[256];

	if (!o && name == arg + 1 && !find_letter(name[0], scope)) {
		o = find_letter(name[0], ~0u);
		len = o ? 1 : len;
	}
	memcpy(word, name, smaller(len, sizeof(word) - 1));
	if (!o)
		o = len > 1 ? nearest(word, scope) : NULL;
	else if (!(o->scopes & scope))
		return mq_fail(err, MQ_EINVAL, "option %.*s%s is not for this command; %s %s it",
			       (int)(name - arg), arg, word, takers(o, list),
			       o->scopes & (o->scopes - 1) ? "have" : "has");
	if (o)
		return mq_fail(err, MQ_EINVAL, "unknown option %.*s%s; did you mean --%s?",
			       (int)(name - arg), arg, quote(word).text, o->name);
	return mq_fail(err, MQ_EINVAL, "unknown option %.*s%s; see --help", (int)(name - arg), arg,
		       quote(word).text);
}

/* Stores a value; value is "" for a switch. */
static enum mq_status set(struct mq_options *out, const struct mq_option *o, const char *value,
			  struct mq_error *err)
{
	if (o->repeats) {
		if (out->count[o->id] >= MQ_OPTION_REPEAT_MAX)
			return mq_fail(err, MQ_EINVAL, "--%s may be given %d times at most",
				       o->name, MQ_OPTION_REPEAT_MAX);
		out->repeated[out->count[o->id]] = value;
	}
	out->value[o->id] = value;
	out->count[o->id]++;
	return MQ_OK;
}

/* One "--..." argument; *i moves on when the next argument is its value. */
static enum mq_status parse_long(struct mq_options *out, unsigned scope, int argc,
				 char *const *argv, int *i, struct mq_error *err)
{
	const char *name = argv[*i] + 2, *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	const struct mq_option *o = find_long(name, len, scope);

	if (!o)
		return fail_unknown(argv[*i], name, len, scope, err);
	if (!o->value) {
		if (equals)
			return mq_fail(err, MQ_EINVAL, "--%s takes no value", o->name);
		return set(out, o, "", err);
	}
	if (equals)
		return set(out, o, equals + 1, err);
	if (*i + 1 >= argc)
		return mq_fail(err, MQ_EINVAL, "--%s needs a value: --%s=%s", o->name, o->name,
			       o->value);
	return set(out, o, argv[++*i], err);
}

/* One "-x" argument, its value attached or next. */
static enum mq_status parse_letter(struct mq_options *out, unsigned scope, int argc,
				   char *const *argv, int *i, struct mq_error *err)
{
	const char *arg = argv[*i], *name = arg + 1;
	size_t len = strcspn(name, "=");
	const struct mq_option *o = find_letter(arg[1], scope);

	/* "-output=x" means the long option, not -o and "utput=x" */
	if (!o || (!o->value && arg[2]) || (len > 1 && find_long(name, len, scope)))
		return fail_unknown(arg, name, len, scope, err);
	if (!o->value)
		return set(out, o, "", err);
	if (arg[2])
		return set(out, o, arg + 2, err);
	if (*i + 1 >= argc)
		return mq_fail(err, MQ_EINVAL, "-%c needs a value: -%c %s", o->letter, o->letter,
			       o->value);
	return set(out, o, argv[++*i], err);
}

enum mq_status mq_options_parse(struct mq_options *out, unsigned scope, int argc, char *const *argv,
				struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	bool ended = false;

	*out = (struct mq_options){ 0 };
	out->operand = calloc((size_t)argc + 1, sizeof(*out->operand));
	if (!out->operand)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for %d arguments", argc);

	for (int i = 0; i < argc && status == MQ_OK; i++) {
		const char *arg = argv[i];

		/* a negative number is no option */
		if (ended || arg[0] != '-' || !arg[1] || (arg[1] >= '0' && arg[1] <= '9'))
			out->operand[out->operands++] = arg;
		else if (strcmp(arg, "--") == 0)
			ended = true;
		else if (arg[1] == '-')
			status = parse_long(out, scope, argc, argv, &i, err);
		else
			status = parse_letter(out, scope, argc, argv, &i, err);
	}
	return status;
}

void mq_options_clear(struct mq_options *options)
{
	struct owned *node = options->owned;

	while (node) {
		struct owned *next = node->next;

		free(node);
		node = next;
	}
	free(options->operand);
	*options = (struct mq_options){ 0 };
}

/* --- configuration file --- */

struct config {
	struct mq_options *options;
	unsigned scope;
	FILE *file;
	const char *path;
	unsigned line;
	bool given[MQ_OPT_COUNT]; /* on the command line, which wins */
	unsigned at[MQ_OPT_COUNT]; /* the line that has it; 0: none yet */
	unsigned failed_line;     /* 0: no failure yet */
	enum mq_status status;
	struct mq_error error;
};

static void config_fail(struct config *c, enum mq_status status)
{
	if (!c->failed_line) {
		c->failed_line = c->line;
		c->status = status;
	}
}

/* inih's reader: as fgets, but it counts lines, refuses what does not fit, and takes the indentation
 * away (inih would read an indented key as the value above going on). */
static char *config_read(char *buffer, int size, void *stream)
{
	struct config *c = stream;
	char line[CONFIG_LINE_MAX + 2];
	size_t start;

	if (c->failed_line ||
	    !fgets(line, sizeof(line) < (size_t)size ? (int)sizeof(line) : size, c->file))
		return NULL;
	c->line++;
	if (!strchr(line, '\n') && !feof(c->file)) {
		mq_fail(&c->error, MQ_EINVAL, "the line has over %d bytes", CONFIG_LINE_MAX);
		config_fail(c, MQ_EINVAL);
		return NULL;
	}
	start = strspn(line, " \t");
	memcpy(buffer, line + start, strlen(line + start) + 1);
	return buffer;
}

static const char *config_keep(struct mq_options *options, const char *text)
{
	size_t size = strlen(text) + 1;
	struct owned *node = malloc(sizeof(*node) + size);

	if (!node)
		return NULL;
	memcpy(node->text, text, size);
	node->next = options->owned;
	options->owned = node;
	return node->text;
}

/* A switch in a file: *on, or MQ_EINVAL. */
static enum mq_status config_switch(const struct mq_option *o, const char *value, bool *on,
				    struct mq_error *err)
{
	static const char *const yes[] = { "yes", "true", "on", "1" };
	static const char *const no[] = { "no", "false", "off", "0" };

	for (size_t i = 0; i < 4; i++) {
		*on = strcmp(value, yes[i]) == 0;
		if (*on || strcmp(value, no[i]) == 0)
			return MQ_OK;
	}
	return mq_fail(err, MQ_EINVAL, "%s is yes or no", o->name);
}

static enum mq_status config_set(struct config *c, const char *section, const char *name,
				 const char *value)
{
	const struct mq_option *o = find_long(name, strlen(name), c->scope);
	struct mq_error *err = &c->error;
	bool on = true;
	const char *kept;
	char text[520];
	const char *origin;
	enum mq_status status;

	if (section[0])
		return mq_fail(err, MQ_EINVAL, "there are no sections here, and [%s] is one",
			       quote(section).text);
	if (!o) {
		o = nearest(name, c->scope);
		if (o && o->config)
			return mq_fail(err, MQ_EINVAL, "unknown option %s; did you mean %s?",
				       quote(name).text, o->name);
		return mq_fail(err, MQ_EINVAL, "unknown option %s", quote(name).text);
	}
	if (!o->config)
		return mq_fail(err, MQ_EINVAL, "%s is for the command line only", o->name);
	if (!value || !value[0])
		return mq_fail(err, MQ_EINVAL, "%s has no value", o->name);
	if (c->at[o->id] && !o->repeats)
		return mq_fail(err, MQ_EINVAL, "%s stands in line %u already", o->name, c->at[o->id]);
	c->at[o->id] = c->line;
	if (!o->value) {
		status = config_switch(o, value, &on, err);
		if (status != MQ_OK)
			return status;
		value = "";
	}
	if (c->given[o->id] || !on)
		return MQ_OK;
	kept = config_keep(c->options, value);
	snprintf(text, sizeof(text), "%.500s:%u", c->path, c->line);
	origin = config_keep(c->options, text);
	if (!kept || !origin)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for the value of %s", o->name);
	status = set(c->options, o, kept, err);
	if (status == MQ_OK) {
		c->options->origin[o->id] = origin;
		if (o->repeats)
			c->options->repeated_origin[c->options->count[o->id] - 1] = origin;
	}
	return status;
}

void mq_options_set_aside(struct mq_options *options, enum mq_option_id id)
{
	if (!options->origin[id])
		return;
	options->aside[id] = options->value[id];
	options->aside_origin[id] = options->origin[id];
	options->value[id] = options->origin[id] = NULL;
	options->count[id] = 0;
}

enum mq_status mq_option_blame(const char *origin, enum mq_status status, struct mq_error *err)
{
	struct mq_error cause;

	if (status == MQ_OK || !origin || !err)
		return status;
	cause = *err;
	return mq_fail(err, status, "%s: %s", origin, cause.text);
}

static int config_entry(void *user, const char *section, const char *name, const char *value)
{
	struct config *c = user;
	enum mq_status status;

	if (c->failed_line)
		return 0;
	status = config_set(c, section, name, value);
	if (status != MQ_OK)
		config_fail(c, status);
	return status == MQ_OK;
}

enum mq_status mq_options_read_config(struct mq_options *options, unsigned scope, const char *path,
				      struct mq_error *err)
{
	struct config c = { .options = options, .scope = scope, .path = path };
	enum mq_status status = MQ_OK;
	int rc;

	c.file = fopen(path, "re");
	if (!c.file)
		return mq_fail_errno(err, errno, "cannot read the configuration file %s", path);
	for (size_t i = 0; i < MQ_OPT_COUNT; i++)
		c.given[i] = options->count[i] > 0;

	errno = 0;
	rc = ini_parse_stream(config_read, &c, config_entry, &c);
	if (c.failed_line && (rc <= 0 || c.failed_line <= (unsigned)rc))
		status = mq_fail(err, c.status, "%s:%u: %s", path, c.failed_line, c.error.text);
	else if (rc > 0)
		status = mq_fail(err, MQ_EINVAL, "%s:%d: not a line of the form \"option = value\"",
				 path, rc);
	else if (rc < 0)
		status = mq_fail(err, MQ_ENOMEM_HOST, "no memory to read %s", path);
	else if (ferror(c.file))
		status = mq_fail(err, MQ_EIO, "cannot read %s: %s", path, strerror(errno));
	if (fclose(c.file) != 0 && status == MQ_OK)
		status = mq_fail_errno(err, errno, "cannot read %s", path);
	return status;
}

/* --- help --- */

/* "  -o, --output=FILE" into out; gives its length. */
static int help_left(char *out, size_t size, const struct mq_option *o)
{
	char letter[8] = "    ";

	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c, ", o->letter);
	return snprintf(out, size, "  %s--%s%s%s", letter, o->name, o->value ? "=" : "",
			o->value ? o->value : "");
}

void mq_options_help(FILE *out, unsigned scope)
{
	char left[80];
	int width = 0;

	for (size_t i = 0; i < MQ_OPT_COUNT; i++) {
		int n = help_left(left, sizeof(left), &mq_option_table[i]);

		if ((mq_option_table[i].scopes & scope) && n > width)
			width = n;
	}
	for (size_t i = 0; i < MQ_OPT_COUNT; i++) {
		const struct mq_option *o = &mq_option_table[i];

		if (!(o->scopes & scope))
			continue;
		help_left(left, sizeof(left), o);
		fprintf(out, "%-*s  %s", width, left, mq_option_help(o, scope));
		if (o->standard)
			fprintf(out, " [%s]", o->standard);
		fputc('\n', out);
	}
}

/* --- values --- */

/* Digits only, to *out; false when there is none or it overflows. *end is behind them. */
static bool digits(const char *text, const char **end, unsigned long long *out)
{
	unsigned long long n = 0;
	const char *p;

	for (p = text; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(n, 10ull, &n) ||
		    __builtin_add_overflow(n, (unsigned long long)(*p - '0'), &n))
			return false;
	*end = p;
	*out = n;
	return p != text;
}

enum mq_status mq_option_u64(const char *text, enum mq_option_id id, unsigned long long min,
			     unsigned long long max, unsigned long long *out, struct mq_error *err)
{
	unsigned long long n;
	const char *end;

	if (!digits(text, &end, &n) || *end || n < min || n > max)
		return mq_fail(err, MQ_EINVAL,
			       "--%s=%s: a whole number from %llu to %llu is needed",
			       mq_option_table[id].name, quote(text).text, min, max);
	*out = n;
	return MQ_OK;
}

enum mq_status mq_option_bytes(const char *text, enum mq_option_id id, unsigned long long *out,
			       struct mq_error *err)
{
	static const char units[] = "BKMGT";
	unsigned long long n;
	const char *end, *unit;
	unsigned shift = 0;
	bool ok = digits(text, &end, &n);

	if (ok && *end) {
		unit = strchr(units, *end >= 'a' && *end <= 'z' ? *end - 'a' + 'A' : *end);
		ok = unit != NULL;
		if (ok) {
			shift = 10 * (unsigned)(unit - units);
			end++;
			if (shift && end[0] == 'i' && end[1] == 'B')
				end += 2;
			else if (shift && end[0] == 'B')
				end++;
			ok = !*end;
		}
	}
	if (!ok || (shift && n >> (64 - shift)))
		return mq_fail(err, MQ_EINVAL,
			       "--%s=%s: a size like 256M or 4G is needed, under 2^64 bytes",
			       mq_option_table[id].name, quote(text).text);
	*out = n << shift;
	return MQ_OK;
}

enum mq_status mq_option_age(const char *text, enum mq_option_id id, unsigned long long *ms,
			     struct mq_error *err)
{
	static const struct {
		char unit;
		unsigned seconds;
	} units[] = { { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', 86400 }, { 'w', 604800 } };
	unsigned long long n, seconds = 0;
	const char *end;
	bool ok = digits(text, &end, &n);

	if (ok && !*end && n == 0)
		seconds = 1; /* 7 would be seconds to one, days to another */
	for (size_t i = 0; ok && i < sizeof(units) / sizeof(units[0]); i++)
		if (end[0] == units[i].unit && !end[1])
			seconds = units[i].seconds;
	if (!seconds || n > 1000000000ull / seconds)
		return mq_fail(err, MQ_EINVAL,
			       "--%s=%s: an age with its unit is needed, as 7d, 12h, 30m or 45s, to 1000000000s",
			       mq_option_table[id].name, quote(text).text);
	*ms = n * seconds * 1000;
	return MQ_OK;
}

enum mq_status mq_option_seconds(const char *text, enum mq_option_id id, unsigned long long *ms,
				 struct mq_error *err)
{
	unsigned long long whole = 0, part = 0, scale = 100;
	const char *p = text;
	bool ok = digits(text, &p, &whole);

	if (ok && *p == '.') {
		for (p++; *p >= '0' && *p <= '9'; p++, scale /= 10)
			part += scale * (unsigned long long)(*p - '0');
		ok = p[-1] != '.';
	}
	if (!ok || *p || whole > 1000000000ull || (whole == 1000000000ull && part))
		return mq_fail(err, MQ_EINVAL, "--%s=%s: seconds from 0 to 1000000000 are needed",
			       mq_option_table[id].name, quote(text).text);
	*ms = whole * 1000 + part;
	return MQ_OK;
}
