/* pngtext: finds the job that one of our pictures carries, without libpng (the client has none).
 *
 * Reads the chunks before the first IDAT, at most MQ_PNGTEXT_SCAN bytes of the file, and gives the
 * text of the iTXt chunk whose keyword is MQ_PNGTEXT_KEYWORD; the chunk's CRC is checked. */
#ifndef MQ_PNGTEXT_H
#define MQ_PNGTEXT_H

#include <stddef.h>

#include "src/status.h"

#define MQ_PNGTEXT_KEYWORD "mandelq"
#define MQ_PNGTEXT_SCAN (1u << 20)

/* What mq_pngtext_read does with a file's beginning; public for tests and fuzzing. *out is
 * NUL-terminated and owned by the caller. MQ_EINVAL: no PNG, damaged, or no picture of ours. */
enum mq_status mq_pngtext_find(const void *bytes, size_t len, char **out, struct mq_error *err);

/* The same from a file. MQ_EIO or MQ_ENOENT when it cannot be read. */
enum mq_status mq_pngtext_read(const char *path, char **out, struct mq_error *err);

#endif
