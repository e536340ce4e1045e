/* bench_png: rendered pixels in memory to a durable PNG, on one core, beside libpng's own writer with its
 * default settings in the same run; one JSON object a line.
 *
 *   bench_png DIR [SIDE (4096)] [REPEATS (3)]
 *
 * The pictures are real: the reference view (-2..2 squared, 10000 iterations) in gray, and in the default
 * palette with smooth colours. Seconds are CPU seconds of this process (system time included, waiting for
 * the disk not), the best of the repeats; ours and libpng's take turns. Both files are synced. What
 * is written is read back with libpng and compared. */
#include "config.h"

#include <fcntl.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/backend.h"
#include "src/image/palette.h"
#include "src/image/png.h"
#include "src/image/strip.h"
#include "src/job.h"

struct image {
	uint32_t side;
	unsigned channels;
	uint8_t *pixels;
	struct mq_layout layout;
};

struct written {
	double seconds;
	uint64_t bytes;
};

static const char *directory;

static void die(const char *what, const struct mq_error *err)
{
	fprintf(stderr, "bench_png: %s: %s\n", what, err ? err->text : "failed");
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void render(struct image *im, uint32_t side, const char *palette)
{
	json_t *object = json_pack("{s:i, s:i, s:[s,s,s,s], s:i, s:s}", "width", (int)side, "height", (int)side,
	                           "view", "-2", "2", "-2", "2", "iterations", 10000, "palette", palette);
	static struct mq_shade shade;
	struct mq_scene scene = {.width = side, .height = side, .supersample = 1, .limit = 10000,
	                         .shortcuts = true, .shade = &shade};
	struct mq_rendered done;
	struct mq_backend *b;
	struct mq_job *job;
	struct mq_error err;
	size_t bytes;

	if (mq_job_from_json(object, &job, NULL, &err) || mq_job_grid(job, &scene.grid, &err) ||
	    mq_palette_shade(job, &shade, &err))
		die("the job", &err);
	im->side = side;
	im->channels = shade.channels;
	bytes = (size_t)side * side * shade.channels;
	mq_layout_init(&im->layout, side, side, shade.channels, false);
	if (mq_cpu_open(1, &b, &err) || b->ops->reserve(b, 1, bytes, &err) ||
	    b->ops->submit(b, 0, &scene, 0, side, &err) || b->ops->wait(b, 0, &done, &err))
		die("rendering", &err);
	im->pixels = malloc(bytes);
	if (!im->pixels)
		die("memory", NULL);
	memcpy(im->pixels, done.pixels, bytes);
	b->ops->close(b);
	mq_job_free(job);
	json_decref(object);
}

static int create(char path[4096])
{
	int fd;

	snprintf(path, 4096, "%s/bench.png", directory);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		die(path, NULL);
	return fd;
}

static struct written write_ours(const struct image *im, bool small)
{
	const struct mq_layout *l = &im->layout;
	size_t row_bytes = (size_t)l->width * l->channels, most = l->strip_rows * (row_bytes + 1);
	struct mq_png_header header = {im->side, im->side, im->channels, 11811, "{}"};
	struct mq_strip_encoder *encoder;
	struct mq_png_writer *png;
	struct mq_strip_result r;
	struct written w;
	struct mq_error err;
	uint8_t *out, sha[32];
	char path[4096];
	int fd = create(path);
	double begun = now();

	out = malloc(mq_strip_bound(most));
	if (!out || mq_strip_encoder_open(most, &encoder, &err) || mq_png_create(fd, &header, &png, &err))
		die("opening", &err);
	mq_strip_encoder_small(encoder, small);
	for (uint32_t i = 0; i < l->strips; i++) {
		uint32_t rows = mq_span_rows(l, (struct mq_span){i, 1});

		if (mq_strip_encode(encoder, im->pixels + i * l->strip_rows * row_bytes, row_bytes, rows,
		                    l->channels, i + 1 == l->strips, out, mq_strip_bound(most), &r, &err) ||
		    mq_png_add(png, out, r.bytes, r.adler, r.filtered, i + 1 == l->strips, NULL, &err))
			die("a strip", &err);
	}
	if (mq_png_finish(png, &w.bytes, sha, &err) || fsync(fd))
		die("finishing", &err);
	mq_strip_encoder_close(encoder);
	free(out);
	w.seconds = now() - begun;
	close(fd);
	return w;
}

static png_bytep *row_pointers(const struct image *im, uint8_t *pixels)
{
	png_bytep *rows = malloc(im->side * sizeof *rows);

	if (!rows)
		die("memory", NULL);
	for (uint32_t y = 0; y < im->side; y++)
		rows[y] = pixels + (size_t)y * im->side * im->channels;
	return rows;
}

static struct written write_libpng(const struct image *im)
{
	char path[4096];
	int fd = create(path);
	FILE *f = fdopen(fd, "wb");
	png_bytep *rows = row_pointers(im, im->pixels);
	struct written w;
	double begun = now();
	png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
	png_infop info = png ? png_create_info_struct(png) : NULL;

	if (!f || !info || setjmp(png_jmpbuf(png)))
		die("libpng", NULL);
	png_init_io(png, f);
	png_set_IHDR(png, info, im->side, im->side, 8,
	             im->channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
	             PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_write_info(png, info);
	png_write_image(png, rows);
	png_write_end(png, NULL);
	png_destroy_write_struct(&png, &info);
	if (fflush(f) || fsync(fd))
		die("libpng: writing", NULL);
	w.seconds = now() - begun;
	w.bytes = (uint64_t)ftello(f);
	fclose(f);
	free(rows);
	return w;
}

/* Is the file that lies there the picture? */
static bool reads_back(const struct image *im)
{
	size_t bytes = (size_t)im->side * im->side * im->channels;
	uint8_t *found = malloc(bytes);
	png_bytep *rows = row_pointers(im, found);
	char path[4096];
	FILE *f;
	png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
	png_infop info = png ? png_create_info_struct(png) : NULL;
	bool equal;

	snprintf(path, sizeof path, "%s/bench.png", directory);
	f = fopen(path, "rb");
	if (!f || !info || setjmp(png_jmpbuf(png)))
		die("reading back", NULL);
	png_init_io(png, f);
	png_read_info(png, info);
	png_read_image(png, rows);
	png_read_end(png, NULL);
	png_destroy_read_struct(&png, &info, NULL);
	equal = memcmp(found, im->pixels, bytes) == 0;
	fclose(f);
	free(rows);
	free(found);
	return equal;
}

static void compare(const char *name, const struct image *im, bool small, unsigned repeats)
{
	struct written ours = {.seconds = 1e9}, rival = {.seconds = 1e9};
	double megabytes = (double)im->side * im->side * im->channels / 1e6;
	bool equal = true;

	for (unsigned i = 0; i < repeats; i++) {
		struct written w = write_libpng(im);

		rival = w.seconds < rival.seconds ? w : rival;
		w = write_ours(im, small);
		ours = w.seconds < ours.seconds ? w : ours;
		equal = equal && reads_back(im);
	}
	printf("{\"figure\":\"%s\",\"side\":%u,\"mb_per_cpu_s\":%.0f,\"libpng_mb_per_cpu_s\":%.1f,"
	       "\"times\":%.1f,\"bytes\":%llu,\"libpng_bytes\":%llu,\"size_ratio\":%.4f,\"equal\":%s}\n",
	       name, im->side, megabytes / ours.seconds, megabytes / rival.seconds, rival.seconds / ours.seconds,
	       (unsigned long long)ours.bytes, (unsigned long long)rival.bytes,
	       (double)ours.bytes / (double)rival.bytes, equal ? "true" : "false");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	uint32_t side = argc > 2 ? (uint32_t)atoi(argv[2]) : 4096;
	unsigned repeats = argc > 3 ? (unsigned)atoi(argv[3]) : 3;
	struct image gray, rgb;
	char path[4096];

	if (argc < 2) {
		fprintf(stderr, "usage: bench_png DIR [SIDE [REPEATS]]\n");
		return 2;
	}
	directory = argv[1];
	render(&gray, side, "gray");
	compare("PNG, gray", &gray, false, repeats);
	compare("PNG, gray, compression small", &gray, true, repeats);
	free(gray.pixels);
	render(&rgb, side, "ember");
	compare("PNG, RGB", &rgb, false, repeats);
	compare("PNG, RGB, compression small", &rgb, true, repeats);
	free(rgb.pixels);
	snprintf(path, sizeof path, "%s/bench.png", directory);
	unlink(path);
	return 0;
}
