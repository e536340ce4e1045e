/* job: what somebody asks for, checked and made canonical. The only place that knows a job's limits.
 *
 * A job travels as a JSON object whose keys are the names of the options with '_' for '-':
 *   width height                integers, 1 .. MQ_JOB_SIDE_MAX
 *   view                        ["xmin","xmax","ymin","ymax"], decimals as strings; or
 *   center, zoom                ["re","im"], "Z": zoom 1 is a view 4 high, square pixels
 *   iterations                  integer 1 .. 2^32-2, or "auto" (resolved here)
 *   palette palette_period palette_offset inside
 *                               name, decimal string, decimal string, "RRGGBB"
 *   supersample                 1 .. MQ_JOB_SUPERSAMPLE_MAX
 *   ppm                         pixels a metre for pHYs (--print); 11811 (300 dpi) if not given
 *   compression                 "fast" or "small": how the picture is deflated
 *   keep_counts                 boolean
 * Everything absent takes its default; a key that is not known is an error. */
#ifndef MQ_JOB_H
#define MQ_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "src/scene.h"
#include "src/status.h"

#define MQ_JOB_SIDE_MAX (1u << 24)
#define MQ_JOB_SUPERSAMPLE_MAX 16u
#define MQ_JOB_NAME_MAX 200u       /* bytes of UTF-8 */
#define MQ_JOB_REQUEST_ID_MAX 200u /* bytes of UTF-8 */
#define MQ_JOB_PRIORITY_MAX 1000000 /* and down to minus this */
#define MQ_JOB_PPM_DEFAULT 11811u

enum mq_view_form { MQ_VIEW_BOUNDS, MQ_VIEW_CENTER };

/* The names stand in job.c, the colours in src/image/palette.c. MQ_PALETTE_GRAY is one channel. */
enum mq_palette {
	MQ_PALETTE_GRAY,
	MQ_PALETTE_EMBER,  /* the default */
	MQ_PALETTE_OCEAN,
	MQ_PALETTE_AURORA,
	MQ_PALETTE_SUNSET,
	MQ_PALETTE_FOREST,
	MQ_PALETTE_PORCELAIN,
	MQ_PALETTE_SPECTRUM,
	MQ_PALETTE_COUNT
};

struct mq_job {
	uint32_t width, height;
	enum mq_view_form form;
	char *number[4];      /* canonical decimals; BOUNDS: xmin xmax ymin ymax; CENTER: re im zoom */
	uint32_t iterations;  /* resolved */
	enum mq_palette palette;
	char *period, *offset; /* canonical decimals; NULL for gray */
	uint32_t inside;      /* 0xRRGGBB */
	uint32_t supersample;
	uint32_t ppm;
	bool small; /* compression */
	bool keep_counts;
};

#define MQ_JOB_WARNINGS_MAX 4
struct mq_job_warnings {
	unsigned count;
	char text[MQ_JOB_WARNINGS_MAX][256]; /* pixels not square; a side past 1,000,000; gray with colour options */
};

const char *mq_palette_name(enum mq_palette palette);

/* Checks object and makes a job of it. MQ_EINVAL: the text names the option and the limit; also for
 * a view whose pixel step is under 4 ulp of its coordinates, with the deepest zoom that this size
 * allows. *out is owned by the caller (mq_job_free). warnings may be NULL. */
enum mq_status mq_job_from_json(const json_t *object, struct mq_job **out,
                                struct mq_job_warnings *warnings, struct mq_error *err);
void mq_job_free(struct mq_job *job);

/* The canonical object, keys sorted when dumped with JSON_SORT_KEYS; a new reference, NULL when
 * memory is out. mq_job_from_json of it gives an equal job. */
json_t *mq_job_to_json(const struct mq_job *job);

/* The canonical text of the settings that decide the picture's bytes (all but keep_counts): equal
 * jobs give equal texts, and it is what a PNG carries. Caller frees; NULL when memory is out. */
char *mq_job_picture_text(const struct mq_job *job);

/* The sample grid, each number rounded once from the exact decimals (mandelq-job(5)). */
enum mq_status mq_job_grid(const struct mq_job *job, struct mq_grid *out, struct mq_error *err);

static inline unsigned mq_job_channels(const struct mq_job *job)
{
	return job->palette == MQ_PALETTE_GRAY ? 1 : 3;
}

/* A job's name or request id: UTF-8 without control characters, 1 .. max bytes (empty is allowed if
 * `what` is "--name"). MQ_EINVAL names `what`. */
enum mq_status mq_job_check_label(const char *text, size_t len, size_t max, const char *what,
                                  struct mq_error *err);

#endif
