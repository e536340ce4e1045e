/* test_tilefile: tile files and count files: what goes in comes out, nothing half is left, and every
 * damaged byte is found. */
#include "tests/unit/image_util.h"

#include <openssl/sha.h>
#include <signal.h>
#include <sys/resource.h>
#include <zlib.h>

#include "src/image/strip.h"
#include "src/image/tilefile.h"

#define STRIPS 3
#define NAME "t.mqt"

static struct mq_error err;
static char path[128];
static int dir;

static int open_dir(void **state)
{
	(void)state;
	dir = util_dir(path);
	return 0;
}

static int close_dir(void **state)
{
	(void)state;
	unlinkat(dir, NAME, 0);
	close(dir);
	return rmdir(path); /* fails if anything else was left */
}

static const struct mq_span span = { 7, STRIPS };

static void fill(struct mq_strip_data strips[STRIPS], bool planes)
{
	static const uint8_t a[] = "picture one", b[] = "2", c[] = "the third picture of the tile";
	static const uint8_t *const text[STRIPS] = { a, b, c };
	static const size_t size[STRIPS] = { sizeof a, sizeof b, sizeof c };
	int i;

	memset(strips, 0, STRIPS * sizeof *strips);
	for (i = 0; i < STRIPS; i++) {
		strips[i].picture = text[i];
		strips[i].picture_bytes = size[i];
		strips[i].adler = 0x80000001u + (uint32_t)i;
		strips[i].filtered = 0x123456789aull + (uint64_t)i;
		if (planes) {
			strips[i].counts = text[(i + 1) % STRIPS];
			strips[i].counts_bytes = size[(i + 1) % STRIPS];
			strips[i].smooth = text[(i + 2) % STRIPS];
			strips[i].smooth_bytes = size[(i + 2) % STRIPS];
		}
	}
}

static void assert_blob(const uint8_t *a, size_t a_bytes, const uint8_t *b, size_t b_bytes)
{
	assert_int_equal(a_bytes, b_bytes);
	if (a_bytes)
		assert_memory_equal(a, b, a_bytes);
	else
		assert_true(!a && !b);
}

static void assert_strips(const struct mq_tilefile *file, const struct mq_strip_data *strips)
{
	struct mq_strip_data s;
	uint32_t i;

	for (i = 0; i < STRIPS; i++) {
		mq_tilefile_strip(file, i, &s);
		assert_blob(s.picture, s.picture_bytes, strips[i].picture, strips[i].picture_bytes);
		assert_blob(s.counts, s.counts_bytes, strips[i].counts, strips[i].counts_bytes);
		assert_blob(s.smooth, s.smooth_bytes, strips[i].smooth, strips[i].smooth_bytes);
		assert_int_equal(s.adler, strips[i].adler);
		assert_true(s.filtered == strips[i].filtered);
	}
}

static uint8_t *file_bytes(size_t *bytes)
{
	int fd = openat(dir, NAME, O_RDONLY);
	uint8_t *all;

	assert_true(fd >= 0);
	all = util_read(fd, bytes);
	close(fd);
	return all;
}

static void put_file(const uint8_t *bytes, size_t n)
{
	int fd = openat(dir, NAME, O_WRONLY);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)n), 0);
	assert_int_equal(pwrite(fd, bytes, n, 0), n);
	close(fd);
}

static enum mq_status try_open(int64_t job, struct mq_span s, unsigned channels, uint64_t bytes,
                               const uint8_t sha[32])
{
	struct mq_tilefile *file;
	enum mq_status status =
		mq_tilefile_open(dir, NAME, job, s, channels, bytes, sha, &file, &err);

	if (status == MQ_OK)
		mq_tilefile_close(file);
	return status;
}

static void test_name(void **state)
{
	char name[64];

	(void)state;
	mq_tilefile_name(name, (struct mq_span){ 12, 3 }, 45);
	assert_string_equal(name, "tile-12-3-45.mqt");
	mq_tilefile_name(name, (struct mq_span){ UINT32_MAX, UINT32_MAX }, INT64_MAX);
	assert_string_equal(name, "tile-4294967295-4294967295-9223372036854775807.mqt");
}

static void test_round_trip(void **state)
{
	struct mq_strip_data strips[STRIPS];
	struct mq_tilefile *file;
	uint8_t sha[32], found[32], *all;
	uint64_t bytes;
	size_t size;
	int planes;

	(void)state;
	for (planes = 0; planes < 2; planes++) {
		fill(strips, planes);
		assert_int_equal(mq_tilefile_write(dir, NAME, 1ll << 40, 9, span, 3, strips, &bytes,
		                                   sha, &err),
		                 MQ_OK);
		all = file_bytes(&size);
		assert_int_equal(size, bytes);
		assert_memory_equal(all, "MQTILE2", 8);
		SHA256(all, size, found);
		assert_memory_equal(sha, found, 32);
		assert_int_equal(
			mq_tilefile_open(dir, NAME, 1ll << 40, span, 3, bytes, sha, &file, &err),
			MQ_OK);
		assert_strips(file, strips);
		mq_tilefile_close(file);
		free(all);
	}
	assert_int_equal(try_open(1, span, 3, bytes, sha), MQ_ECORRUPT);
	assert_int_equal(try_open(1ll << 40, (struct mq_span){ 6, STRIPS }, 3, bytes, sha),
	                 MQ_ECORRUPT);
	assert_int_equal(try_open(1ll << 40, (struct mq_span){ 7, 2 }, 3, bytes, sha), MQ_ECORRUPT);
	assert_int_equal(try_open(1ll << 40, (struct mq_span){ 7, UINT32_MAX }, 3, bytes, sha),
	                 MQ_ECORRUPT);
	assert_int_equal(try_open(1ll << 40, span, 1, bytes, sha), MQ_ECORRUPT);
	assert_int_equal(try_open(1ll << 40, span, 3, bytes + 1, sha), MQ_ECORRUPT);
	unlinkat(dir, NAME, 0);
	assert_int_equal(try_open(1ll << 40, span, 3, bytes, sha), MQ_ENOENT);
}

/* Earlier strips are other bytes for the same pixels: such a tile is not joined with new ones. */
static void test_earlier_version(void **state)
{
	struct mq_strip_data strips[STRIPS];
	uint8_t sha[32], *all;
	uint64_t bytes;
	size_t size;

	(void)state;
	fill(strips, 0);
	assert_int_equal(mq_tilefile_write(dir, NAME, 4, 9, span, 3, strips, &bytes, sha, &err), MQ_OK);
	all = file_bytes(&size);
	memcpy(all, "MQTILE1", 8);
	put_file(all, size);
	SHA256(all, size, sha);
	assert_int_equal(try_open(4, span, 3, bytes, sha), MQ_ECORRUPT);
	assert_non_null(strstr(err.text, "earlier version"));
	unlinkat(dir, NAME, 0);
	free(all);
}

static void test_damage(void **state)
{
	struct mq_strip_data strips[STRIPS];
	uint8_t sha[32], *all;
	uint64_t bytes;
	size_t size, i;
	int bit;

	(void)state;
	fill(strips, true);
	assert_int_equal(mq_tilefile_write(dir, NAME, 5, 9, span, 3, strips, &bytes, sha, &err),
	                 MQ_OK);
	all = file_bytes(&size);
	for (i = 0; i < size; i++)
		for (bit = 0; bit < 8; bit++) {
			all[i] ^= (uint8_t)(1 << bit);
			put_file(all, size);
			assert_int_equal(try_open(5, span, 3, bytes, sha), MQ_ECORRUPT);
			all[i] ^= (uint8_t)(1 << bit);
		}
	for (i = 0; i < size; i++) {
		put_file(all, i);
		assert_int_equal(try_open(5, span, 3, bytes, sha), MQ_ECORRUPT);
	}
	put_file(all, size);
	assert_int_equal(try_open(5, span, 3, bytes, sha), MQ_OK);
	free(all);
}

/* Reads all that an opened file offers, so that a pointer out of bounds is found by the sanitizers. */
static unsigned touch(const struct mq_tilefile *file)
{
	struct mq_strip_data s;
	unsigned sum = 0;
	uint32_t i;
	size_t k;

	for (i = 0; i < STRIPS; i++) {
		mq_tilefile_strip(file, i, &s);
		for (k = 0; k < s.picture_bytes; k++)
			sum += s.picture[k];
		for (k = 0; k < s.counts_bytes; k++)
			sum += s.counts[k];
		for (k = 0; k < s.smooth_bytes; k++)
			sum += s.smooth[k];
	}
	return sum;
}

/* Every field of header and index replaced by hostile values, with checksums that match. */
static void test_hostile(void **state)
{
	static const uint64_t values[] = { 0,          1,          0x7fffffff,       0xffffffff,
		                           1ull << 63, UINT64_MAX, UINT64_MAX - 100, 300 };
	const size_t head = 40 + STRIPS * 68;
	struct mq_strip_data strips[STRIPS];
	uint8_t sha[32], *all, *bad;
	uint64_t bytes;
	uint32_t crc;
	size_t size, at, v;

	(void)state;
	fill(strips, true);
	assert_int_equal(mq_tilefile_write(dir, NAME, 5, 9, span, 3, strips, &bytes, sha, &err),
	                 MQ_OK);
	all = file_bytes(&size);
	bad = malloc(size);
	for (at = 0; at + 8 <= head; at += 4)
		for (v = 0; v < sizeof values / sizeof values[0]; v++) {
			struct mq_tilefile *file;
			enum mq_status status;

			memcpy(bad, all, size);
			memcpy(bad + at, &values[v], 8);
			crc = (uint32_t)crc32(0, bad, (unsigned)head);
			memcpy(bad + head, &crc, 4);
			SHA256(bad, size, sha);
			put_file(bad, size);
			status = mq_tilefile_open(dir, NAME, 5, span, 3, bytes, sha, &file, &err);
			if (status == MQ_OK) {
				(void)touch(file);
				mq_tilefile_close(file);
				/* Only numbers that lead nowhere may be anything: the attempt, an entry's
				 * filtered bytes, Adler-32 and CRCs. */
				assert_true(at == 16 || at == 12 || at == 20 ||
				            memcmp(bad, all, head) == 0 ||
				            (at >= 40 && (at - 40) % 68 >= 44));
			} else {
				assert_int_equal(status, MQ_ECORRUPT);
			}
		}
	free(all);
	free(bad);
}

/* A disk that takes no more: nothing is left under any name. */
static void test_no_room(void **state)
{
	struct mq_countfile_writer *writer;
	struct mq_strip_data strips[STRIPS];
	struct rlimit old, small;
	uint8_t sha[32];
	uint64_t bytes;
	enum mq_status tile, counts;

	(void)state;
	fill(strips, true);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = 100;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	tile = mq_tilefile_write(dir, NAME, 5, 9, span, 3, strips, &bytes, sha, &err);
	counts = mq_countfile_create(dir, NAME, 5, 1, &writer, &err);
	if (counts == MQ_OK) {
		counts = mq_countfile_add(writer, &strips[0], &err);
		assert_int_equal(counts, MQ_OK);
		counts = mq_countfile_finish(writer, &bytes, &err);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(tile, MQ_EIO);
	assert_int_equal(counts, MQ_EIO);
	assert_int_equal(faccessat(dir, NAME, F_OK, 0), -1);
}

static void test_incomplete(void **state)
{
	struct mq_strip_data strips[STRIPS];
	uint8_t sha[32];
	uint64_t bytes;

	(void)state;
	fill(strips, true);
	strips[1].counts_bytes = 0;
	assert_int_equal(mq_tilefile_write(dir, NAME, 5, 9, span, 3, strips, &bytes, sha, &err),
	                 MQ_EINTERNAL);
	fill(strips, false);
	strips[2].picture_bytes = 0;
	assert_int_equal(mq_tilefile_write(dir, NAME, 5, 9, span, 3, strips, &bytes, sha, &err),
	                 MQ_EINTERNAL);
}

#define PLANE 60

static void make_counts(uint32_t counts[STRIPS][PLANE], uint32_t smooth[STRIPS][PLANE],
                        uint64_t *bytes)
{
	struct mq_strip_encoder *e;
	struct mq_countfile_writer *w;
	uint8_t a[1024], b[1024];
	struct mq_strip_data s = { .picture = a, .picture_bytes = 10, .counts = a, .smooth = b };
	int i, k;

	assert_int_equal(mq_strip_encoder_open(10, &e, &err), MQ_OK);
	assert_int_equal(mq_countfile_create(dir, NAME, 77, STRIPS, &w, &err), MQ_OK);
	for (i = 0; i < STRIPS; i++) {
		for (k = 0; k < PLANE; k++) {
			counts[i][k] = (uint32_t)(i * 1000 + k / 7);
			smooth[i][k] = (uint32_t)(k * 0x01010101u + (unsigned)i);
		}
		assert_int_equal(mq_plane_encode(e, counts[i], sizeof counts[i], a, sizeof a,
		                                 &s.counts_bytes, &err),
		                 MQ_OK);
		assert_int_equal(mq_plane_encode(e, smooth[i], sizeof smooth[i], b, sizeof b,
		                                 &s.smooth_bytes, &err),
		                 MQ_OK);
		assert_int_equal(mq_countfile_add(w, &s, &err), MQ_OK);
	}
	assert_int_equal(mq_countfile_add(w, &s, &err), MQ_EINTERNAL);
	assert_int_equal(faccessat(dir, NAME, F_OK, 0), -1); /* not before it is whole */
	assert_int_equal(mq_countfile_finish(w, bytes, &err), MQ_OK);
	mq_strip_encoder_close(e);
}

/* Opens and reads all; the first failure, or MQ_OK with equal planes. */
static enum mq_status read_counts(uint32_t counts[STRIPS][PLANE], uint32_t smooth[STRIPS][PLANE])
{
	struct mq_countfile *f;
	uint32_t plane[PLANE], i;
	enum mq_status status = mq_countfile_open(dir, NAME, 77, STRIPS, &f, &err);

	if (status)
		return status;
	for (i = 0; i < STRIPS && status == MQ_OK; i++) {
		status = mq_countfile_plane(f, i, false, plane, sizeof plane, &err);
		if (status == MQ_OK) {
			assert_memory_equal(plane, counts[i], sizeof plane);
			status = mq_countfile_plane(f, i, true, plane, sizeof plane, &err);
		}
		if (status == MQ_OK)
			assert_memory_equal(plane, smooth[i], sizeof plane);
	}
	mq_countfile_close(f);
	return status;
}

static void test_counts(void **state)
{
	uint32_t counts[STRIPS][PLANE], smooth[STRIPS][PLANE], plane[PLANE];
	struct mq_countfile *f;
	uint8_t *all;
	uint64_t bytes;
	size_t size, i;
	int bit;

	(void)state;
	make_counts(counts, smooth, &bytes);
	all = file_bytes(&size);
	assert_int_equal(size, bytes);
	assert_int_equal(read_counts(counts, smooth), MQ_OK);
	assert_int_equal(mq_countfile_open(dir, NAME, 77, STRIPS, &f, &err), MQ_OK);
	assert_int_equal(mq_countfile_plane(f, 0, false, plane, sizeof plane - 4, &err),
	                 MQ_ECORRUPT);
	mq_countfile_close(f);
	assert_int_equal(mq_countfile_open(dir, NAME, 76, STRIPS, &f, &err), MQ_ECORRUPT);
	assert_int_equal(mq_countfile_open(dir, NAME, 77, STRIPS + 1, &f, &err), MQ_ECORRUPT);
	assert_int_equal(mq_countfile_open(dir, "none", 77, STRIPS, &f, &err), MQ_ENOENT);
	for (i = 0; i < size; i++)
		for (bit = 0; bit < 8; bit++) {
			all[i] ^= (uint8_t)(1 << bit);
			put_file(all, size);
			assert_int_equal(read_counts(counts, smooth), MQ_ECORRUPT);
			all[i] ^= (uint8_t)(1 << bit);
		}
	for (i = 0; i < size; i++) {
		put_file(all, i);
		assert_int_equal(read_counts(counts, smooth), MQ_ECORRUPT);
	}
	free(all);
}

static void test_counts_given_up(void **state)
{
	struct mq_countfile_writer *w;
	uint64_t bytes;

	(void)state;
	assert_int_equal(mq_countfile_create(dir, NAME, 77, STRIPS, &w, &err), MQ_OK);
	mq_countfile_abort(w);
	assert_int_equal(mq_countfile_create(dir, NAME, 77, STRIPS, &w, &err), MQ_OK);
	assert_int_equal(mq_countfile_finish(w, &bytes, &err), MQ_EINTERNAL);
	assert_int_equal(faccessat(dir, NAME, F_OK, 0), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_name, open_dir, close_dir),
		cmocka_unit_test_setup_teardown(test_round_trip, open_dir, close_dir),
		cmocka_unit_test_setup_teardown(test_earlier_version, open_dir, close_dir),
		cmocka_unit_test_setup_teardown(test_damage, open_dir, close_dir),
		cmocka_unit_test_setup_teardown(test_hostile, open_dir, close_dir),
		cmocka_unit_test_setup_teardown(test_no_room, open_dir, close_dir),
		cmocka_unit_test_setup_teardown(test_incomplete, open_dir, close_dir),
		cmocka_unit_test_setup_teardown(test_counts, open_dir, close_dir),
		cmocka_unit_test_setup_teardown(test_counts_given_up, open_dir, close_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
