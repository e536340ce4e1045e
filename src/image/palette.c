/* palette: see palette.h. Called once a job, before its first tile.
 *
 * A palette is a circle of 4096 colours through a few stops, interpolated in Oklab, where equal steps
 * look equal, by monotone cubics (Fritsch and Carlson 1980), which do not overshoot. The way back from
 * Oklab needs cubes only, the way to it is done beforehand (palette_stops.c); so +, -, * and / suffice. */
#include "src/image/palette.h"

#include <gmp.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "src/decimal.h"
#include "src/image/palette_stops.h"

/* round(65535 * L(v/255)), L from IEC 61966-2-1: s/12.92 up to 0.04045, else ((s+0.055)/1.055)^2.4. */
static const uint16_t srgb_to_linear[256] = {
	0,     20,    40,    60,    80,    99,    119,   139,   159,   179,   199,   219,   241,
	264,   288,   313,   340,   367,   396,   427,   458,   491,   526,   562,   599,   637,
	677,   718,   761,   805,   851,   898,   947,   997,   1048,  1101,  1156,  1212,  1270,
	1330,  1391,  1453,  1517,  1583,  1651,  1720,  1790,  1863,  1937,  2013,  2090,  2170,
	2250,  2333,  2418,  2504,  2592,  2681,  2773,  2866,  2961,  3058,  3157,  3258,  3360,
	3464,  3570,  3678,  3788,  3900,  4014,  4129,  4247,  4366,  4488,  4611,  4736,  4864,
	4993,  5124,  5257,  5392,  5530,  5669,  5810,  5953,  6099,  6246,  6395,  6547,  6700,
	6856,  7014,  7174,  7335,  7500,  7666,  7834,  8004,  8177,  8352,  8528,  8708,  8889,
	9072,  9258,  9445,  9635,  9828,  10022, 10219, 10417, 10619, 10822, 11028, 11235, 11446,
	11658, 11873, 12090, 12309, 12530, 12754, 12980, 13209, 13440, 13673, 13909, 14146, 14387,
	14629, 14874, 15122, 15371, 15623, 15878, 16135, 16394, 16656, 16920, 17187, 17456, 17727,
	18001, 18277, 18556, 18837, 19121, 19407, 19696, 19987, 20281, 20577, 20876, 21177, 21481,
	21787, 22096, 22407, 22721, 23038, 23357, 23678, 24002, 24329, 24658, 24990, 25325, 25662,
	26001, 26344, 26688, 27036, 27386, 27739, 28094, 28452, 28813, 29176, 29542, 29911, 30282,
	30656, 31033, 31412, 31794, 32179, 32567, 32957, 33350, 33745, 34143, 34544, 34948, 35355,
	35764, 36176, 36591, 37008, 37429, 37852, 38278, 38706, 39138, 39572, 40009, 40449, 40891,
	41337, 41785, 42236, 42690, 43147, 43606, 44069, 44534, 45002, 45473, 45947, 46423, 46903,
	47385, 47871, 48359, 48850, 49344, 49841, 50341, 50844, 51349, 51858, 52369, 52884, 53401,
	53921, 54445, 54971, 55500, 56032, 56567, 57105, 57646, 58190, 58737, 59287, 59840, 60396,
	60955, 61517, 62082, 62650, 63221, 63795, 64372, 64952, 65535,
};

/* The same for every job, and making it would be most of the work of a small one: made once. */
static uint8_t linear_to_srgb[65536];
static pthread_once_t curves_once = PTHREAD_ONCE_INIT;

/* The nearest sRGB byte of every linear value: byte v from the middle between v-1 and v on. */
static void make_curves(void)
{
	uint32_t linear;
	unsigned v = 0;

	for (linear = 0; linear < 65536; linear++) {
		while (v < 255 && 2 * linear >= (uint32_t)srgb_to_linear[v] + srgb_to_linear[v + 1])
			v++;
		linear_to_srgb[linear] = (uint8_t)v;
	}
}

static void fill_curves(struct mq_shade *out)
{
	(void)pthread_once(&curves_once, make_curves); /* fails only for a bad argument */
	_Static_assert(sizeof out->encode == sizeof linear_to_srgb, "the table is copied whole");
	memcpy(out->decode, srgb_to_linear, sizeof out->decode);
	memcpy(out->encode, linear_to_srgb, sizeof out->encode);
}

/* Where stop k of the circle lies; k may be count or more, which is the next round. */
static double stop_at(const struct mq_stops *stops, unsigned k)
{
	return stops->stop[k % stops->count].at + (double)(k / stops->count);
}

/* The slope at a stop from those on its two sides: 0 at an extreme, else their weighted harmonic mean
 * (Fritsch and Butland 1984). */
static double slope_at(double step0, double rise0, double step1, double rise1)
{
	double w0 = 2 * step1 + step0, w1 = step1 + 2 * step0;

	if (rise0 * rise1 <= 0)
		return 0;
	return (w0 + w1) / (w0 / rise0 + w1 / rise1);
}

/* Component c at place t of the span from stop k to k+1, k >= 1. */
static double interpolate(const struct mq_stops *stops, unsigned k, unsigned c, double t)
{
	double x[4], y[4], step[3], rise[3], m0, m1, s;
	unsigned i;

	for (i = 0; i < 4; i++) {
		x[i] = stop_at(stops, k - 1 + i);
		y[i] = stops->stop[(k - 1 + i) % stops->count].lab[c];
	}
	for (i = 0; i < 3; i++) {
		step[i] = x[i + 1] - x[i];
		rise[i] = (y[i + 1] - y[i]) / step[i];
	}
	m0 = slope_at(step[0], rise[0], step[1], rise[1]) * step[1];
	m1 = slope_at(step[1], rise[1], step[2], rise[2]) * step[1];
	s = (t - x[1]) / step[1];
	return y[1] + s * (m0 + s * ((3 * (y[2] - y[1]) - 2 * m0 - m1) +
	                             s * (2 * (y[1] - y[2]) + m0 + m1)));
}

static uint32_t to_byte(const struct mq_shade *shade, double linear)
{
	if (!(linear > 0))
		return shade->encode[0];
	if (linear >= 1)
		return shade->encode[65535];
	return shade->encode[(uint32_t)(linear * 65535 + 0.5)];
}

/* Oklab to linear sRGB, Ottosson's matrices. */
static uint32_t lab_to_colour(const struct mq_shade *shade, const double lab[3])
{
	double l = lab[0] + 0.3963377774 * lab[1] + 0.2158037573 * lab[2];
	double m = lab[0] - 0.1055613458 * lab[1] - 0.0638541728 * lab[2];
	double s = lab[0] - 0.0894841775 * lab[1] - 1.2914855480 * lab[2];

	l = l * l * l;
	m = m * m * m;
	s = s * s * s;
	return to_byte(shade, 4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s) |
	       to_byte(shade, -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s) << 8 |
	       to_byte(shade, -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s) << 16;
}

static void fill_lut(struct mq_shade *out, const struct mq_stops *stops)
{
	unsigned k = stops->count, i, c; /* the second round, so that k-1 exists */
	double lab[3], t;

	for (i = 0; i < MQ_LUT_SIZE; i++) {
		t = 1 + i / (double)MQ_LUT_SIZE;
		while (t >= stop_at(stops, k + 1))
			k++;
		for (c = 0; c < 3; c++)
			lab[c] = interpolate(stops, k, c, t);
		out->lut[i] = lab_to_colour(out, lab);
	}
}

/* inv_period and offset, each rounded once from the exact decimals. */
static enum mq_status fill_period(const struct mq_job *job, struct mq_shade *out,
                                  struct mq_error *err)
{
	enum mq_status status;
	mpq_t q;

	mpq_init(q);
	status = mq_decimal_parse(q, job->offset, "--palette-offset", err);
	if (status == MQ_OK) {
		out->offset = mq_rational_to_double(q);
		status = mq_decimal_parse(q, job->period, "--palette-period", err);
	}
	if (status == MQ_OK && mpq_sgn(q) <= 0)
		status = mq_fail(err, MQ_EINVAL, "--palette-period must be over 0");
	if (status == MQ_OK) {
		mpq_inv(q, q);
		out->inv_period = mq_rational_to_double(q);
		if (!isfinite(out->inv_period) || !isfinite(out->offset))
			status = mq_fail(err, MQ_EINVAL,
			                 "--palette-period or --palette-offset is out of range");
	}
	mpq_clear(q);
	return status;
}

enum mq_status mq_palette_shade(const struct mq_job *job, struct mq_shade *out,
                                struct mq_error *err)
{
	enum mq_status status = MQ_OK;

	if ((unsigned)job->palette >= MQ_PALETTE_COUNT)
		return mq_fail(err, MQ_EINTERNAL, "palette %d does not exist", (int)job->palette);
	memset(out, 0, sizeof *out);
	fill_curves(out);
	out->channels = mq_job_channels(job);
	if (out->channels == 1)
		return MQ_OK;
	status = fill_period(job, out, err);
	if (status)
		return status;
	out->inside =
		(job->inside >> 16 & 0xff) | (job->inside & 0xff00) | (job->inside & 0xff) << 16;
	fill_lut(out, &mq_palette_stops[job->palette]);
	return MQ_OK;
}
