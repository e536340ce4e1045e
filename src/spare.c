/* spare: see spare.h. */
#include "src/spare.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Not by malloc, which would change how it treats blocks of that size from then on. */
bool mq_spare_left(void)
{
	void *p = mmap(NULL, MQ_SPARE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return false;
	(void)munmap(p, MQ_SPARE_BYTES);
	return true;
}

void *mq_spare_malloc(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	if (p && !mq_spare_left()) {
		free(p);
		p = NULL;
	}
	return p;
}
