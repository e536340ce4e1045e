/* nearest: see nearest.h. */
#include "src/nearest.h"

#include <stdint.h>
#include <string.h>

#define WORD_MAX 32 /* longer ones are no typing errors */

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Levenshtein; only short words are compared. */
static size_t edit_distance(const char *a, const char *b)
{
	size_t row[WORD_MAX + 1], la = strlen(a), lb = strlen(b);

	if (la > WORD_MAX || lb > WORD_MAX)
		return SIZE_MAX;
	for (size_t j = 0; j <= lb; j++)
		row[j] = j;
	for (size_t i = 1; i <= la; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= lb; j++) {
			size_t up = row[j];

			row[j] = smaller(smaller(up, row[j - 1]) + 1,
					 diagonal + (a[i - 1] != b[j - 1]));
			diagonal = up;
		}
	}
	return row[lb];
}

void mq_nearest_begin(struct mq_nearest *nearest, const char *word)
{
	size_t len = strlen(word), limit = len < 4 ? 1 : len < 9 ? 2 : 3;

	*nearest = (struct mq_nearest){ .word = word, .limit = limit, .distance = limit + 1 };
}

void mq_nearest_try(struct mq_nearest *nearest, const char *candidate)
{
	size_t len = strlen(nearest->word), d = edit_distance(nearest->word, candidate);

	/* the beginning of a word means it too */
	if (d > nearest->limit && len >= 2 && strncmp(nearest->word, candidate, len) == 0)
		d = nearest->limit;
	if (d < nearest->distance) {
		nearest->distance = d;
		nearest->found = candidate;
	}
}
