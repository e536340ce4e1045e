/* decimal: scans a number's text once into sign, digits and exponent; all else works on that. Called
 * for every number of a job. Nothing is allocated before the limits have been checked. */
#include "src/decimal.h"

#include <mpfr.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Plain digits while the exponent of the first digit lies in this range. */
#define PLAIN_MIN (-6)
#define PLAIN_MAX 20

struct scan {
	bool negative;
	const char *mantissa; /* digits with at most one point in them */
	size_t length;        /* of mantissa */
	size_t digits;        /* in mantissa */
	size_t whole;         /* digits before the point */
	long exponent;        /* as written */
	size_t skip, keep;    /* zeros in front; digits from the first to the last that is not 0 */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* text for an error: short, and printable whatever it was. */
static const char *quote(char out[36], const char *text)
{
	size_t n = 0;

	for (; n < 32 && text[n]; n++)
		out[n] = text[n] >= 0x20 && text[n] < 0x7f ? text[n] : '?';
	memcpy(out + n, text[n] ? "..." : "", text[n] ? 4 : 1);
	return out;
}

static const char *scan_mantissa(struct scan *s, const char *p)
{
	bool point = false;
	size_t last = 0; /* digits up to the last that is not 0 */

	s->mantissa = p;
	for (; is_digit(*p) || (*p == '.' && !point); p++) {
		if (*p == '.') {
			point = true;
			s->whole = s->digits;
			continue;
		}
		s->digits++;
		if (*p != '0')
			last = s->digits;
		else if (last == 0)
			s->skip++;
	}
	if (!point)
		s->whole = s->digits;
	s->length = (size_t)(p - s->mantissa);
	s->keep = last ? last - s->skip : 0;
	return p;
}

/* Returns the end, or NULL: no digits. The value stops growing once it is over the limit. */
static const char *scan_exponent(struct scan *s, const char *p)
{
	bool negative = *p == '-';
	long value = 0;

	if (*p == '+' || *p == '-')
		p++;
	if (!is_digit(*p))
		return NULL;
	for (; is_digit(*p); p++)
		if (value <= MQ_DECIMAL_EXPONENT)
			value = value * 10 + (*p - '0');
	s->exponent = negative ? -value : value;
	return p;
}

/* The power of ten of the first digit that is not 0. */
static long leading_exponent(const struct scan *s)
{
	return s->exponent + (long)s->whole - (long)s->skip - 1;
}

static bool too_big(long exponent)
{
	return exponent > MQ_DECIMAL_EXPONENT || exponent < -MQ_DECIMAL_EXPONENT;
}

static enum mq_status scan(struct scan *s, const char *text, const char *what, struct mq_error *err)
{
	char quoted[36];
	const char *p = text;

	memset(s, 0, sizeof(*s));
	s->negative = *p == '-';
	if (*p == '+' || *p == '-')
		p++;
	p = scan_mantissa(s, p);
	if (s->digits && (*p == 'e' || *p == 'E'))
		p = scan_exponent(s, p + 1);
	if (!s->digits || !p || *p)
		return mq_fail(err, MQ_EINVAL, "%s: \"%s\" is not a decimal number", what,
		               quote(quoted, text));
	if (s->digits > MQ_DECIMAL_DIGITS)
		return mq_fail(err, MQ_EINVAL, "%s: a number of %zu digits: the limit is %d", what,
		               s->digits, MQ_DECIMAL_DIGITS);
	if (too_big(s->exponent) || (s->keep && too_big(leading_exponent(s))))
		return mq_fail(err, MQ_EINVAL,
		               "%s: \"%s\" has an exponent past the limit of 1e+-%d", what,
		               quote(quoted, text), MQ_DECIMAL_EXPONENT);
	return MQ_OK;
}

/* Writes the kept digits, which have neither point nor zeros at their ends. */
static char *put_digits(char *out, const struct scan *s)
{
	size_t seen = 0;

	for (const char *p = s->mantissa; seen < s->skip + s->keep; p++) {
		if (*p == '.')
			continue;
		if (seen++ >= s->skip)
			*out++ = *p;
	}
	return out;
}

enum mq_status mq_decimal_parse(mpq_t out, const char *text, const char *what, struct mq_error *err)
{
	struct scan s;
	mpz_t power;

	enum mq_status status = scan(&s, text, what, err);
	if (status)
		return status;
	if (!s.keep) {
		mpq_set_ui(out, 0, 1);
		return MQ_OK;
	}
	char *digits = malloc(s.keep + 1);
	if (!digits)
		return mq_fail(err, MQ_ENOMEM_HOST, "%s: no memory for %zu digits", what, s.keep);
	*put_digits(digits, &s) = '\0';
	long scale = leading_exponent(&s) + 1 - (long)s.keep; /* value = digits * 10^scale */

	mpq_set_ui(out, 0, 1);
	if (mpz_set_str(mpq_numref(out), digits, 10) != 0) {
		status = mq_fail(err, MQ_EINTERNAL, "%s: digits that are none", what);
		goto out;
	}
	mpz_init(power);
	mpz_ui_pow_ui(power, 10, (unsigned long)(scale < 0 ? -scale : scale));
	if (scale < 0)
		mpz_swap(mpq_denref(out), power);
	else
		mpz_mul(mpq_numref(out), mpq_numref(out), power);
	mpz_clear(power);
	if (s.negative)
		mpz_neg(mpq_numref(out), mpq_numref(out));
	mpq_canonicalize(out);
out:
	free(digits);
	return status;
}

static char *put_zeros(char *out, size_t n)
{
	memset(out, '0', n);
	return out + n;
}

/* 0.000ddd, ddd.ddd or ddd000: the point stands behind `whole` of the kept digits. */
static char *put_plain(char *out, const struct scan *s, long whole)
{
	if (whole <= 0) {
		*out++ = '0';
		*out++ = '.';
		out = put_zeros(out, (size_t)-whole);
		return put_digits(out, s);
	}
	char *begin = out;
	out = put_digits(out, s);
	if ((size_t)whole >= s->keep)
		return put_zeros(out, (size_t)whole - s->keep);
	memmove(begin + whole + 1, begin + whole, s->keep - (size_t)whole);
	begin[whole] = '.';
	return out + 1;
}

static char *put_scientific(char *out, const struct scan *s, long exponent)
{
	char *begin = out;

	out = put_digits(out, s);
	if (s->keep > 1) {
		memmove(begin + 2, begin + 1, s->keep - 1);
		begin[1] = '.';
		out++;
	}
	return out + snprintf(out, 16, "e%ld", exponent);
}

enum mq_status mq_decimal_canonical(const char *text, const char *what, char **out,
                                    struct mq_error *err)
{
	struct scan s;

	enum mq_status status = scan(&s, text, what, err);
	if (status)
		return status;
	char *canonical = malloc(s.keep + 48); /* sign, point, at most 21 zeros, exponent */
	if (!canonical)
		return mq_fail(err, MQ_ENOMEM_HOST, "%s: no memory for %zu digits", what, s.keep);
	char *p = canonical;
	if (!s.keep) {
		*p++ = '0';
		*p = '\0';
		*out = canonical;
		return MQ_OK;
	}
	long exponent = leading_exponent(&s);
	size_t zeros = exponent < 0 ? (size_t)-exponent : 0;

	if (s.negative)
		*p++ = '-';
	/* The zeros in front must not push the canonical text itself over the limit of digits. */
	if (exponent >= PLAIN_MIN && exponent <= PLAIN_MAX && s.keep + zeros <= MQ_DECIMAL_DIGITS)
		p = put_plain(p, &s, exponent + 1);
	else
		p = put_scientific(p, &s, exponent);
	*p = '\0';
	*out = canonical;
	return MQ_OK;
}

double mq_rational_to_double(const mpq_t q)
{
	mpfr_exp_t emin = mpfr_get_emin(), emax = mpfr_get_emax();
	mpfr_t rounded;

	/* The range of double, so that set_q and subnormalize round as double does, once. */
	mpfr_init2(rounded, 53);
	mpfr_set_emin(-1073);
	mpfr_set_emax(1024);
	int ternary = mpfr_set_q(rounded, q, MPFR_RNDN);
	mpfr_subnormalize(rounded, ternary, MPFR_RNDN);
	double result = mpfr_get_d(rounded, MPFR_RNDN);
	mpfr_set_emin(emin);
	mpfr_set_emax(emax);
	mpfr_clear(rounded);
	return result;
}
