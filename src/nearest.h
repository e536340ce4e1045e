/* nearest: which of some words a mistyped one most likely means. Called where a name that is not known is
 * refused; pure. */
#ifndef MQ_NEAREST_H
#define MQ_NEAREST_H

#include <stddef.h>

struct mq_nearest {
	const char *word;
	const char *found; /* the best so far, or NULL */
	size_t limit, distance;
};

void mq_nearest_begin(struct mq_nearest *nearest, const char *word);
/* candidate must outlive nearest. Of equally near ones the first is kept. */
void mq_nearest_try(struct mq_nearest *nearest, const char *candidate);

#endif
