/* fuzz: what the targets share. A target gives bytes from anywhere to a parser; the sanitizers, or
 * FUZZ_CHECK when something that must hold does not, end the process. Run by scripts/fuzz. */
#ifndef MQ_FUZZ_H
#define MQ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FUZZ_CHECK(condition)                                                                      \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__,          \
			        #condition);                                                       \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A text of these bytes up to the first NUL; freed by the caller. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	FUZZ_CHECK(text);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

/* Makes the file have these bytes and no others. */
static inline void fuzz_fill(int fd, const uint8_t *data, size_t size)
{
	FUZZ_CHECK(ftruncate(fd, 0) == 0);
	FUZZ_CHECK(pwrite(fd, data, size, 0) == (ssize_t)size);
}

/* Reads every byte, so that a sanitizer sees one that is not there. */
static inline void fuzz_touch(const uint8_t *bytes, size_t size)
{
	static volatile uint8_t sink;

	for (size_t i = 0; i < size; i++)
		sink ^= bytes[i];
	(void)sink;
}

#endif
