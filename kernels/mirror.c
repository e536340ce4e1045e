/* mirror: is a picture its own mirror image? Asked by the worker, once a job. */
#include "kernels/backend.h"
#include "kernels/escape.h"

bool mq_grid_is_mirrored(const struct mq_grid *grid, uint64_t rows)
{
	for (uint64_t j = 0; j < (rows + 1) / 2; j++)
		if (mq_sample_im(grid, (double)j) != -mq_sample_im(grid, (double)(rows - 1 - j)))
			return false;
	return true;
}
