/* cuda_stub: stands for cuda.c in a build without CUDA. */
#include <stdio.h>

#include "kernels/backend.h"

unsigned mq_cuda_count(char why[256])
{
	snprintf(why, 256, "built without CUDA");
	return 0;
}

enum mq_status mq_cuda_find(const char *uuid, unsigned *index, struct mq_error *err)
{
	(void)index;
	return mq_fail(err, MQ_EINVAL, "there is no %.40s: built without CUDA", uuid);
}

enum mq_status mq_cuda_open(unsigned index, struct mq_backend **out, struct mq_error *err)
{
	(void)out;
	return mq_fail(err, MQ_EINVAL, "no CUDA device %u: built without CUDA", index);
}
