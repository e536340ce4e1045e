/* print: sizes as people type them. Pure. */
#ifndef MQ_CLIENT_PRINT_H
#define MQ_CLIENT_PRINT_H

#include <stdint.h>

#include "src/status.h"

struct mq_print {
	uint32_t width, height; /* pixels, 1 .. MQ_JOB_SIDE_MAX */
	uint32_t ppm;           /* pixels a metre; 0: not said */
};

/* "90x60cm@300": two lengths, a unit (cm, mm, in), and optionally @DPI (300 if not given).
 * width = round(length / 2.54 cm * DPI), ppm = round(DPI / 0.0254 m). MQ_EINVAL names --print. */
enum mq_status mq_print_parse(const char *text, struct mq_print *out, struct mq_error *err);

/* "N" or "WxH". MQ_EINVAL names --size. ppm is left alone. */
enum mq_status mq_print_parse_size(const char *text, struct mq_print *out, struct mq_error *err);

#endif
