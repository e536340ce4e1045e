/* job: JSON to struct mq_job and back, setting by setting; job_view.c has the arithmetic of views.
 * Called by the worker at submit and when it takes a job up; by the client for what it must know before
 * it asks (render's request id, the jobs of a file). A job that exists has passed every check here. */
#include "src/job.h"

#include <gmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/decimal.h"
#include "src/job_view.h"
#include "src/nearest.h"

#define FORMAT 1 /* of the text in a picture; the key "mandelq" */
#define ITERATIONS_MAX 4294967294u
#define PPM_MAX 1000000u
#define PICTURE_SIDE_COMMON 1000000u /* libpng's default limit for readers */

static const char *const palette_names[MQ_PALETTE_COUNT] = {
	[MQ_PALETTE_GRAY] = "gray",           [MQ_PALETTE_EMBER] = "ember",
	[MQ_PALETTE_OCEAN] = "ocean",         [MQ_PALETTE_AURORA] = "aurora",
	[MQ_PALETTE_SUNSET] = "sunset",       [MQ_PALETTE_FOREST] = "forest",
	[MQ_PALETTE_PORCELAIN] = "porcelain", [MQ_PALETTE_SPECTRUM] = "spectrum",
};

static const char *const known_keys[] = {
	"mandelq", "width",       "height",  "view",           "center",
	"zoom",    "iterations",  "palette", "palette_period", "palette_offset",
	"inside",  "supersample", "ppm",     "compression",    "keep_counts",
};

const char *mq_palette_name(enum mq_palette palette)
{
	return (unsigned)palette < MQ_PALETTE_COUNT ? palette_names[palette] : "unknown";
}

void mq_job_warn(struct mq_job_warnings *warnings, const char *fmt, ...)
{
	va_list ap;

	if (warnings->count == MQ_JOB_WARNINGS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(warnings->text[warnings->count++], sizeof(warnings->text[0]), fmt, ap);
	va_end(ap);
}

static enum mq_status no_memory(struct mq_error *err)
{
	return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a job");
}

/* ---- reading ---- */

static enum mq_status refuse_key(const char *key, struct mq_error *err)
{
	struct mq_nearest n;

	if (!strcmp(key, "size"))
		return mq_fail(err, MQ_EINVAL,
		               "a job has no setting \"size\": it has \"width\" and \"height\"");
	mq_nearest_begin(&n, key);
	for (size_t i = 0; i < sizeof(known_keys) / sizeof(known_keys[0]); i++)
		mq_nearest_try(&n, known_keys[i]);
	if (n.found)
		return mq_fail(err, MQ_EINVAL, "a job has no setting \"%.60s\"; did you mean \"%s\"?", key,
		               n.found);
	return mq_fail(err, MQ_EINVAL, "a job has no setting \"%.60s\"; see mandelq-job(5)", key);
}

static enum mq_status check_keys(const json_t *object, struct mq_error *err)
{
	const size_t known = sizeof(known_keys) / sizeof(known_keys[0]);
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value) {
		size_t i = 0;
		while (i < known && strcmp(key, known_keys[i]))
			i++;
		if (i == known)
			return refuse_key(key, err);
	}
	value = json_object_get(object, "mandelq");
	if (!value)
		return MQ_OK;
	if (!json_is_integer(value) || json_integer_value(value) < 1)
		return mq_fail(err, MQ_EINVAL, "\"mandelq\" must be the number of a job format");
	if (json_integer_value(value) > FORMAT)
		return mq_fail(err, MQ_EVERSION,
		               "the job has format %lld, and this mandelq knows up to %d: "
		               "use a newer one",
		               (long long)json_integer_value(value), FORMAT);
	return MQ_OK;
}

/* *out holds the default; subject begins the error ("--size: width"). */
static enum mq_status read_u32(const json_t *object, const char *key, const char *subject,
                               uint32_t max, uint32_t *out, struct mq_error *err)
{
	const json_t *value = json_object_get(object, key);

	if (!value)
		return MQ_OK;
	if (!json_is_integer(value))
		return mq_fail(err, MQ_EINVAL, "%s must be an integer from 1 to %u", subject, max);
	json_int_t n = json_integer_value(value);
	if (n < 1 || n > (json_int_t)max)
		return mq_fail(err, MQ_EINVAL, "%s must be an integer from 1 to %u, not %lld",
		               subject, max, (long long)n);
	*out = (uint32_t)n;
	return MQ_OK;
}

/* A decimal that came as a string, made canonical into *out. */
static enum mq_status take_decimal(const json_t *value, const char *option, char **out,
                                   struct mq_error *err)
{
	if (!json_is_string(value))
		return mq_fail(err, MQ_EINVAL, "%s: a decimal number is needed, as a string",
		               option);
	return mq_decimal_canonical(json_string_value(value), option, out, err);
}

static enum mq_status take_decimals(const json_t *value, size_t n, const char *option, char **out,
                                    struct mq_error *err)
{
	if (!json_is_array(value) || json_array_size(value) != n)
		return mq_fail(err, MQ_EINVAL, "%s: %zu decimal numbers are needed, as strings",
		               option, n);
	for (size_t i = 0; i < n; i++) {
		enum mq_status status = take_decimal(json_array_get(value, i), option, &out[i],
		                                     err);
		if (status)
			return status;
	}
	return MQ_OK;
}

static enum mq_status default_decimal(const char *text, char **out, struct mq_error *err)
{
	return mq_decimal_canonical(text, "default", out, err);
}

static enum mq_status read_view(struct mq_job *job, const json_t *object, struct mq_error *err)
{
	const json_t *view = json_object_get(object, "view");
	const json_t *center = json_object_get(object, "center");
	const json_t *zoom = json_object_get(object, "zoom");
	char whole[32];
	enum mq_status status;

	if (view && (center || zoom))
		return mq_fail(err, MQ_EINVAL,
		               "--view: cannot be given together with --center or --zoom");
	if (view) {
		job->form = MQ_VIEW_BOUNDS;
		return take_decimals(view, 4, "--view", job->number, err);
	}
	job->form = MQ_VIEW_CENTER;
	if (center) {
		status = take_decimals(center, 2, "--center", job->number, err);
	} else {
		status = default_decimal(MQ_VIEW_SET_RE, &job->number[0], err);
		if (!status)
			status = default_decimal(MQ_VIEW_SET_IM, &job->number[1], err);
	}
	if (status)
		return status;
	if (zoom)
		return take_decimal(zoom, "--zoom", &job->number[2], err);
	mq_job_view_whole_set(job->width, job->height, whole);
	return default_decimal(center ? "1" : whole, &job->number[2], err);
}

/* Needs the view. */
static enum mq_status read_iterations(struct mq_job *job, const json_t *object,
                                      struct mq_error *err)
{
	const json_t *value = json_object_get(object, "iterations");

	if (!value || (json_is_string(value) && !strcmp(json_string_value(value), "auto")))
		return mq_job_view_iterations(job, &job->iterations, err);
	if (!json_is_integer(value))
		return mq_fail(err, MQ_EINVAL,
		               "--iterations: must be \"auto\" or an integer from 1 to %u",
		               ITERATIONS_MAX);
	return read_u32(object, "iterations", "--iterations:", ITERATIONS_MAX, &job->iterations,
	                err);
}

/* Must lie within min .. max (decimals; the text of the error shows them). */
static enum mq_status check_range(const char *number, const char *option, const char *min,
                                  const char *max, struct mq_error *err)
{
	enum mq_status status;
	mpq_t value, bound;

	mpq_inits(value, bound, NULL);
	status = mq_decimal_parse(value, number, option, err);
	bool inside = !status && !mq_decimal_parse(bound, min, option, NULL) &&
	              mpq_cmp(value, bound) >= 0 && !mq_decimal_parse(bound, max, option, NULL) &&
	              mpq_cmp(value, bound) <= 0;
	if (!status && !inside)
		status = mq_fail(err, MQ_EINVAL, "%s: must lie within %s and %s, not %.40s", option,
		                 min, max, number);
	mpq_clears(value, bound, NULL);
	return status;
}

static enum mq_status read_ranged(const json_t *object, const char *key, const char *option,
                                  const char *standard, const char *min, const char *max,
                                  char **out, struct mq_error *err)
{
	const json_t *value = json_object_get(object, key);

	if (!value)
		return default_decimal(standard, out, err);
	enum mq_status status = take_decimal(value, option, out, err);
	return status ? status : check_range(*out, option, min, max, err);
}

static enum mq_status read_inside(struct mq_job *job, const json_t *object, struct mq_error *err)
{
	const json_t *value = json_object_get(object, "inside");
	const char *text = json_string_value(value);

	if (!value)
		return MQ_OK;
	if (!text || strlen(text) != 6 || strspn(text, "0123456789abcdefABCDEF") != 6)
		return mq_fail(err, MQ_EINVAL,
		               "--inside: a colour is needed as six hexadecimal digits, RRGGBB");
	job->inside = (uint32_t)strtoul(text, NULL, 16);
	return MQ_OK;
}

static enum mq_status refuse_palette(const char *name, struct mq_error *err)
{
	char list[MQ_PALETTE_COUNT * 16] = "";

	for (unsigned i = 0; i < MQ_PALETTE_COUNT; i++) {
		size_t used = strlen(list);
		snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", palette_names[i]);
	}
	if (!name)
		return mq_fail(err, MQ_EINVAL, "--palette: a name is needed: %s", list);
	return mq_fail(err, MQ_EINVAL, "--palette: there is no palette \"%.40s\": it is one of %s",
	               name, list);
}

static enum mq_status read_palette(struct mq_job *job, const json_t *object, struct mq_error *err)
{
	const json_t *value = json_object_get(object, "palette");
	const char *name = json_string_value(value);
	unsigned i = 0;

	job->palette = MQ_PALETTE_EMBER;
	if (!value)
		return MQ_OK;
	while (name && i < MQ_PALETTE_COUNT && strcmp(name, palette_names[i]))
		i++;
	if (!name || i == MQ_PALETTE_COUNT)
		return refuse_palette(name, err);
	job->palette = (enum mq_palette)i;
	return MQ_OK;
}

/* The colour settings are checked for gray too, and then dropped: they decide nothing there. */
static enum mq_status read_colours(struct mq_job *job, const json_t *object,
                                   struct mq_job_warnings *warnings, struct mq_error *err)
{
	enum mq_status status = read_palette(job, object, err);

	if (!status)
		status = read_ranged(object, "palette_period", "--palette-period", "64", "0.001",
		                     "1000000000", &job->period, err);
	if (!status)
		status = read_ranged(object, "palette_offset", "--palette-offset", "0", "-1000000",
		                     "1000000", &job->offset, err);
	if (!status)
		status = read_inside(job, object, err);
	if (status || job->palette != MQ_PALETTE_GRAY)
		return status;
	if (json_object_get(object, "palette_period") ||
	    json_object_get(object, "palette_offset") || json_object_get(object, "inside"))
		mq_job_warn(warnings,
		            "--palette: gray has no use for --palette-period, --palette-offset and "
		            "--inside: ignored");
	free(job->period);
	free(job->offset);
	job->period = NULL;
	job->offset = NULL;
	job->inside = 0;
	return MQ_OK;
}

static enum mq_status read_compression(struct mq_job *job, const json_t *object, struct mq_error *err)
{
	const json_t *value = json_object_get(object, "compression");
	const char *name = json_string_value(value);

	if (value && (!name || (strcmp(name, "fast") && strcmp(name, "small"))))
		return mq_fail(err, MQ_EINVAL, "--compression: must be fast or small");
	job->small = name && !strcmp(name, "small");
	return MQ_OK;
}

static enum mq_status read_samples(struct mq_job *job, const json_t *object, struct mq_error *err)
{
	const json_t *keep = json_object_get(object, "keep_counts");
	enum mq_status status;

	status = read_u32(object, "supersample", "--supersample:", MQ_JOB_SUPERSAMPLE_MAX,
	                  &job->supersample, err);
	if (status)
		return status;
	if (keep && !json_is_boolean(keep))
		return mq_fail(err, MQ_EINVAL, "--keep-counts: keep_counts must be true or false");
	job->keep_counts = json_is_true(keep);
	if (job->keep_counts && job->supersample > 1)
		return mq_fail(err, MQ_EINVAL,
		               "--keep-counts: needs --supersample=1, not %u: counts are kept "
		               "for one sample a pixel",
		               job->supersample);
	return MQ_OK;
}

static enum mq_status read_size(struct mq_job *job, const json_t *object, struct mq_error *err)
{
	enum mq_status status;

	status = read_u32(object, "width", "--size: width", MQ_JOB_SIDE_MAX, &job->width, err);
	if (!status)
		status = read_u32(object, "height", "--size: height", MQ_JOB_SIDE_MAX, &job->height,
		                  err);
	if (!status)
		status = read_u32(object, "ppm", "--print: the pixels a metre", PPM_MAX, &job->ppm,
		                  err);
	return status;
}

static void warn_side(const struct mq_job *job, struct mq_job_warnings *warnings)
{
	uint32_t side = job->width > job->height ? job->width : job->height;

	if (side > PICTURE_SIDE_COMMON)
		mq_job_warn(warnings,
		            "--size: a side of %u pixels is past the %u that most programs open "
		            "(libpng's default); vips opens it, and mandelq fetch --region cuts "
		            "from it",
		            side, PICTURE_SIDE_COMMON);
}

enum mq_status mq_job_from_json(const json_t *object, struct mq_job **out,
                                struct mq_job_warnings *warnings, struct mq_error *err)
{
	struct mq_job_warnings found = { 0 };
	enum mq_status status;

	if (!json_is_object(object))
		return mq_fail(err, MQ_EINVAL, "a job must be a JSON object");
	status = check_keys(object, err);
	if (status)
		return status;
	struct mq_job *job = calloc(1, sizeof(*job));
	if (!job)
		return no_memory(err);
	job->width = 1920;
	job->height = 1080;
	job->supersample = 1;
	job->ppm = MQ_JOB_PPM_DEFAULT;
	if ((status = read_size(job, object, err)) || (status = read_samples(job, object, err)) ||
	    (status = read_view(job, object, err)) ||
	    (status = mq_job_view_check(job, &found, err)) ||
	    (status = read_iterations(job, object, err)) ||
	    (status = read_colours(job, object, &found, err)) ||
	    (status = read_compression(job, object, err))) {
		mq_job_free(job);
		return status;
	}
	warn_side(job, &found);
	if (warnings)
		*warnings = found;
	*out = job;
	return MQ_OK;
}

void mq_job_free(struct mq_job *job)
{
	if (!job)
		return;
	for (int i = 0; i < 4; i++)
		free(job->number[i]);
	free(job->period);
	free(job->offset);
	free(job);
}

/* ---- writing ---- */

static json_t *view_to_json(const struct mq_job *job)
{
	char *const *n = job->number;
	json_t *view;

	if (job->form == MQ_VIEW_BOUNDS)
		view = json_pack("{s:[s,s,s,s]}", "view", n[0], n[1], n[2], n[3]);
	else
		view = json_pack("{s:[s,s], s:s}", "center", n[0], n[1], "zoom", n[2]);
	return view;
}

static json_t *colours_to_json(const struct mq_job *job)
{
	char inside[8];

	if (job->palette == MQ_PALETTE_GRAY)
		return json_pack("{s:s}", "palette", mq_palette_name(job->palette));
	snprintf(inside, sizeof(inside), "%06x", job->inside & 0xffffffu);
	return json_pack("{s:s, s:s, s:s, s:s}", "palette", mq_palette_name(job->palette),
	                 "palette_period", job->period, "palette_offset", job->offset, "inside",
	                 inside);
}

json_t *mq_job_to_json(const struct mq_job *job)
{
	json_t *view = view_to_json(job);
	json_t *colours = colours_to_json(job);
	json_t *object = json_pack("{s:I, s:I, s:I, s:I, s:I, s:b}", "width",
	                           (json_int_t)job->width, "height", (json_int_t)job->height,
	                           "iterations", (json_int_t)job->iterations, "supersample",
	                           (json_int_t)job->supersample, "ppm", (json_int_t)job->ppm,
	                           "keep_counts", (int)job->keep_counts);

	/* Left out when it is the default. */
	if (!view || !colours || !object || json_object_update(object, view) != 0 ||
	    json_object_update(object, colours) != 0 ||
	    (job->small && json_object_set_new(object, "compression", json_string("small")) != 0)) {
		json_decref(object);
		object = NULL;
	}
	json_decref(view);
	json_decref(colours);
	return object;
}

char *mq_job_picture_text(const struct mq_job *job)
{
	json_t *object = mq_job_to_json(job);
	char *text = NULL;

	if (object && json_object_del(object, "keep_counts") == 0 &&
	    json_object_set_new(object, "mandelq", json_integer(FORMAT)) == 0)
		text = json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT);
	json_decref(object);
	return text;
}

/* ---- labels ---- */

/* The next character of UTF-8 text, at *at, which moves behind it; -1: not UTF-8. */
static long next_character(const unsigned char *text, size_t len, size_t *at)
{
	static const uint32_t least[] = { 0, 0x80, 0x800, 0x10000 };
	unsigned char lead = text[(*at)++];
	unsigned more = lead < 0x80 ? 0 : lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
	uint32_t c = more ? lead & (0x3fu >> more) : lead;

	if ((lead >= 0x80 && lead < 0xc0) || lead >= 0xf8 || more > len - *at)
		return -1;
	for (unsigned i = 0; i < more; i++) {
		unsigned char next = text[(*at)++];
		if ((next & 0xc0) != 0x80)
			return -1;
		c = c << 6 | (next & 0x3f);
	}
	if (c < least[more] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return -1;
	return (long)c;
}

enum mq_status mq_job_check_label(const char *text, size_t len, size_t max, const char *what,
                                  struct mq_error *err)
{
	if (len > max)
		return mq_fail(err, MQ_EINVAL, "%s: %zu bytes: the limit is %zu", what, len, max);
	if (len == 0 && strcmp(what, "--name"))
		return mq_fail(err, MQ_EINVAL, "%s: must have 1 to %zu bytes, and is empty", what,
		               max);
	for (size_t at = 0; at < len;) {
		long c = next_character((const unsigned char *)text, len, &at);
		if (c < 0)
			return mq_fail(err, MQ_EINVAL, "%s: is not UTF-8 (near byte %zu)", what,
			               at);
		if (c < 0x20 || (c >= 0x7f && c < 0xa0))
			return mq_fail(err, MQ_EINVAL,
			               "%s: must not have control characters (byte %zu has)", what,
			               at);
	}
	return MQ_OK;
}
