/* print: --size and --print. Called by jobargs.c. */
#include "client/print.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "src/job.h"
#include "src/option.h"

#define DPI_DEFAULT 300.0
#define DPI_MAX 25400.0 /* 1,000,000 pixels a metre */

/* digits [. digits], at most 15 digits, so that the double is the nearest; no locale. */
static bool read_length(const char **text, double *out)
{
	double n = 0, scale = 1;
	unsigned digits = 0;
	bool point = false;
	const char *p = *text;

	for (; (*p >= '0' && *p <= '9') || (*p == '.' && !point && digits); p++) {
		if (*p == '.') {
			point = true;
			continue;
		}
		n = 10 * n + (*p - '0');
		scale *= point ? 10 : 1;
		if (++digits > 15)
			return false;
	}
	*text = p;
	*out = n / scale;
	return digits > 0;
}

static bool read_unit(const char **text, double *inches)
{
	static const struct {
		const char *name;
		double per_inch;
	} units[] = {
		{ "cm", 2.54 },
		{ "mm", 25.4 },
		{ "in", 1 },
	};

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strncmp(*text, units[i].name, 2) == 0) {
			*text += 2;
			*inches = units[i].per_inch;
			return true;
		}
	return false;
}

static bool to_pixels(double length, double per_inch, double dpi, uint32_t *out)
{
	double pixels = round(length / per_inch * dpi);

	if (!(pixels >= 1 && pixels <= MQ_JOB_SIDE_MAX))
		return false;
	*out = (uint32_t)pixels;
	return true;
}

enum mq_status mq_print_parse(const char *text, struct mq_print *out, struct mq_error *err)
{
	double width = 0, height = 0, per_inch = 1, dpi = DPI_DEFAULT;
	const char *p = text;
	bool ok = read_length(&p, &width);

	ok = ok && *p++ == 'x' && read_length(&p, &height) && read_unit(&p, &per_inch);
	if (ok && *p == '@') {
		p++;
		ok = read_length(&p, &dpi);
	}
	if (!ok || *p)
		return mq_fail(err, MQ_EINVAL,
			       "--print=%.40s: a size like 90x60cm@300 is needed (cm, mm or in, "
			       "and dots an inch)",
			       text);
	if (!(dpi >= 0.1 && dpi <= DPI_MAX))
		return mq_fail(err, MQ_EINVAL,
			       "--print=%.40s: from 0.1 to %.0f dots an inch are possible", text,
			       DPI_MAX);
	if (!to_pixels(width, per_inch, dpi, &out->width) ||
	    !to_pixels(height, per_inch, dpi, &out->height))
		return mq_fail(err, MQ_EINVAL,
			       "--print=%.40s: a side would not have 1 to %u pixels", text,
			       MQ_JOB_SIDE_MAX);
	out->ppm = (uint32_t)round(dpi / 0.0254);
	return MQ_OK;
}

static bool read_side(const char **text, uint32_t *out)
{
	uint64_t n = 0;
	const char *p = *text;

	for (; *p >= '0' && *p <= '9' && n <= MQ_JOB_SIDE_MAX; p++)
		n = 10 * n + (uint64_t)(*p - '0');
	*text = p;
	*out = (uint32_t)n;
	return n >= 1 && n <= MQ_JOB_SIDE_MAX;
}

enum mq_status mq_print_parse_size(const char *text, struct mq_print *out, struct mq_error *err)
{
	const char *p = text;
	uint32_t width = 0, height = 0;
	bool ok = read_side(&p, &width);

	height = width;
	if (ok && *p == 'x') {
		p++;
		ok = read_side(&p, &height);
	}
	if (!ok || *p)
		return mq_fail(err, MQ_EINVAL,
			       "--size=%.40s: N or WxH is needed, a side from 1 to %u pixels", text,
			       MQ_JOB_SIDE_MAX);
	out->width = width;
	out->height = height;
	return MQ_OK;
}
