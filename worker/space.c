/* space: see space.h. */
#include "config.h"

#include "worker/space.h"

#include <errno.h>
#include <sys/statvfs.h>

#include "src/bytes.h"
#include "src/failpoint.h"

#define SOME_BYTES (64ull << 20)
#define SOME_SHARE 32
/* Samples that one byte of a picture can hold at best, and pixels that one byte of kept counts can: see
 * mandelqd(8), which tells users. */
#define SAMPLES_A_BYTE 1000
#define PIXELS_A_BYTE 5000

static enum mq_status look(const struct mq_statedir *dir, uint64_t *free_bytes, uint64_t *total,
			   struct mq_error *err)
{
	struct statvfs fs;
	int e = mq_failpoint("disk-free");

	if (e != ENOSPC && (e || fstatvfs(dir->fd, &fs)))
		return mq_fail_errno(err, e ? e : errno, "looking at the disk of %s", dir->path);
	if (e) {
		*free_bytes = *total = 0;
		return MQ_OK;
	}
	*free_bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
	*total = (uint64_t)fs.f_blocks * fs.f_frsize;
	return MQ_OK;
}

enum mq_status mq_space_free(const struct mq_statedir *dir, uint64_t *bytes, struct mq_error *err)
{
	uint64_t total;

	return look(dir, bytes, &total, err);
}

/* What jobs need to get on. */
static uint64_t some_of(uint64_t total)
{
	return total / SOME_SHARE < SOME_BYTES ? total / SOME_SHARE : SOME_BYTES;
}

enum mq_status mq_space_some(const struct mq_statedir *dir, bool *some, struct mq_error *err)
{
	uint64_t available = 0, total = 0;
	enum mq_status s = look(dir, &available, &total, err);

	if (s)
		return s;
	*some = available > 0 && available >= some_of(total);
	return MQ_OK;
}

enum mq_status mq_space_beside(const struct mq_statedir *dir, uint64_t bytes, uint64_t promised,
			       const char *what, struct mq_error *err)
{
	uint64_t available = 0, total = 0, kept;
	char needed[32], left[32], spared[32];
	enum mq_status s = look(dir, &available, &total, err);

	if (s)
		return s;
	kept = some_of(total) + promised;
	if (available > kept && bytes <= available - kept)
		return MQ_OK;
	return mq_fail(err, MQ_ENOSPC,
		       "%s may take %s on the disk of %s, which has %s free; %s must stay free for jobs and other "
		       "downloads",
		       what, mq_bytes_text((double)bytes, needed), dir->path,
		       mq_bytes_text((double)available, left), mq_bytes_text((double)kept, spared));
}

enum mq_status mq_space_fits(const struct mq_statedir *dir, const struct mq_layout *layout,
			     bool keep_counts, struct mq_error *err)
{
	uint64_t pixels = (uint64_t)layout->width * layout->height, available = 0, total = 0, need;
	char needed[32], left[32];
	enum mq_status s = look(dir, &available, &total, err);

	if (s)
		return s;
	need = pixels * layout->channels / SAMPLES_A_BYTE;
	if (keep_counts)
		need += pixels / PIXELS_A_BYTE;
	need *= 2; /* the tiles stay until the picture is whole */
	if (need <= available)
		return MQ_OK;
	return mq_fail(err, MQ_ENOSPC,
		       "this picture needs at least %s on the disk of %s, which has %s free: make room there "
		       "(mandelq clean), or take a smaller --size",
		       mq_bytes_text((double)need, needed), dir->path,
		       mq_bytes_text((double)available, left));
}
