/* decimal: exact numbers as people type them, to GMP rationals, to double, and back to text.
 *
 * Grammar: [+-] digits [. digits] [(e|E) [+-] digits], at least one digit in the mantissa. At most
 * MQ_DECIMAL_DIGITS digits and an exponent within +-MQ_DECIMAL_EXPONENT; both are checked before
 * anything is converted, so that a hostile "1e999999999" costs nothing. */
#ifndef MQ_DECIMAL_H
#define MQ_DECIMAL_H

#include <gmp.h>

#include "src/status.h"

#define MQ_DECIMAL_DIGITS 20000
#define MQ_DECIMAL_EXPONENT 100000

/* Sets out (initialised by the caller) to the exact value of text. MQ_EINVAL: not a number of the
 * grammar, or over a limit; the error names `what` ("--view", say) and the limit; out is unchanged. */
enum mq_status mq_decimal_parse(mpq_t out, const char *text, const char *what, struct mq_error *err);

/* The canonical text of a number: equal values give equal texts ("-2", "0.5", "1e-30"; plain digits
 * while the decimal exponent lies within -6 .. 20, else d.ddde-N). Caller frees *out. Errors as
 * mq_decimal_parse, and MQ_ENOMEM_HOST. */
enum mq_status mq_decimal_canonical(const char *text, const char *what, char **out,
                                    struct mq_error *err);

/* q rounded once, to nearest even, to double (by MPFR; subnormals too; overflow gives +-HUGE_VAL). */
double mq_rational_to_double(const mpq_t q);

#endif
