/* fuzz_tilefile: any file as a finished tile, and as kept counts. Checksums are put right first, or no
 * input would come far; the first byte says whether to, and what the file is compared with. */
#include <fcntl.h>
#include <isa-l/crc.h>
#include <openssl/evp.h>

#include "src/image/tilefile.h"
#include "tests/fuzz/fuzz.h"

#define HEAD 40u
#define ENTRY 68u

static uint32_t get32(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get64(const uint8_t *p)
{
	return get32(p) | (uint64_t)get32(p + 4) << 32;
}

/* The CRC of the head, where the file itself says it ends; and those of the planes. */
static void put_checksums_right(uint8_t *file, size_t size)
{
	uint64_t end = HEAD + (uint64_t)get32(file + 28) * ENTRY;

	if (end + 4 > size)
		return;
	for (uint8_t *p = file + HEAD; p < file + end; p += ENTRY)
		for (int i = 0; i < 2; i++) {
			uint64_t offset = get64(p + 16 + 16 * i), bytes = get64(p + 24 + 16 * i);

			if (offset <= size && bytes <= size - offset)
				put32(p + 60 + 4 * i, crc32_gzip_refl(0, file + offset, bytes));
		}
	put32(file + end, crc32_gzip_refl(0, file, end));
}

static void as_tile(int dir, const uint8_t *file, size_t size, struct mq_span span, unsigned channels,
                    int64_t job)
{
	struct mq_tilefile *t = NULL;
	struct mq_error err = {""};
	uint8_t sha[32];

	FUZZ_CHECK(EVP_Digest(file, size, sha, NULL, EVP_sha256(), NULL) == 1);
	if (mq_tilefile_open(dir, "f", job, span, channels, size, sha, &t, &err)) {
		FUZZ_CHECK(!t && err.text[0]);
		return;
	}
	/* The data fill the file; what is past its end lies on the same page, where no sanitizer looks. */
	uint64_t end = HEAD + (uint64_t)span.count * ENTRY + 4;

	for (uint32_t i = 0; i < span.count; i++) {
		struct mq_strip_data d;

		mq_tilefile_strip(t, i, &d);
		end += d.picture_bytes + d.counts_bytes + d.smooth_bytes;
		FUZZ_CHECK(end <= size);
		fuzz_touch(d.picture, d.picture_bytes);
		fuzz_touch(d.counts, d.counts_bytes);
		fuzz_touch(d.smooth, d.smooth_bytes);
	}
	FUZZ_CHECK(end == size);
	mq_tilefile_close(t);
}

static void as_counts(int dir, uint32_t strips, int64_t job)
{
	static uint8_t plane[4096];
	struct mq_countfile *c = NULL;
	struct mq_error err = {""};

	if (mq_countfile_open(dir, "f", job, strips, &c, &err)) {
		FUZZ_CHECK(!c && err.text[0]);
		return;
	}
	for (uint32_t i = 0; i < strips && i < 64; i++) {
		(void)mq_countfile_plane(c, i, false, plane, 256, &err);
		(void)mq_countfile_plane(c, i, true, plane, sizeof plane, &err);
	}
	mq_countfile_close(c);
}

static int open_folder(int *fd)
{
	char memory[] = "/dev/shm/mq-fuzz-XXXXXX", disk[] = "/tmp/mq-fuzz-XXXXXX", *path;
	int dir;

	path = mkdtemp(memory);
	if (!path)
		path = mkdtemp(disk);
	FUZZ_CHECK(path);
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FUZZ_CHECK(dir >= 0);
	*fd = openat(dir, "f", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	FUZZ_CHECK(*fd >= 0);
	return dir;
}

static int folder = -1;

static void remove_folder(void)
{
	char path[64], name[128] = "";

	snprintf(path, sizeof path, "/proc/self/fd/%d", folder);
	(void)unlinkat(folder, "f", 0);
	if (readlink(path, name, sizeof name - 1) > 0)
		(void)rmdir(name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd;
	uint8_t *file;
	bool own;

	if (folder < 0) {
		folder = open_folder(&fd);
		atexit(remove_folder);
	}
	if (size < 1 + HEAD)
		return 0;
	own = data[0] & 2;
	file = malloc(size - 1);
	FUZZ_CHECK(file);
	memcpy(file, data + 1, size - 1);
	if (data[0] & 1)
		put_checksums_right(file, size - 1);
	fuzz_fill(fd, file, size - 1);
	/* A job's row decides how many strips there are, never the file. */
	struct mq_span span = {own ? get32(file + 24) : 0, own ? get32(file + 28) : 2};

	if (span.count <= 1u << 24) {
		int64_t job = own ? (int64_t)get64(file + 8) : 1;

		as_tile(folder, file, size - 1, span, data[0] & 4 ? 1 : 3, job);
		as_counts(folder, span.count, job);
	}
	free(file);
	return 0;
}
