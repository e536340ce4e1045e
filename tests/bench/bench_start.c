/* bench_start: how quickly a worker is ready with a million finished tiles in its database.
 *
 * bench_start MANDELQD DIR [JOBS]: makes DIR, fills its database through the store with JOBS jobs (16) of
 * 65536 tiles, every one done, and of a job that goes on; starts MANDELQD three times and tells how long
 * it takes until its socket answers: after an unclean end, and after clean ones. No tile file exists:
 * a start must not look at them. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "src/job.h"
#include "src/store/store.h"

static void die(const char *what, const struct mq_error *err)
{
	fprintf(stderr, "bench_start: %s: %s\n", what, err ? err->text : strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* 2^20 strips of one row, 16 a tile. The last tile stays pending, and the job paused, so that nothing
 * is rendered. */
static int64_t add_job(struct mq_store *store)
{
	json_t *object = json_pack("{s:i, s:i, s:s, s:i}", "width", 1048576, "height", 1048576, "palette",
	                           "gray", "iterations", 100);
	struct mq_new_job n = {.name = "", .owner = -1, .now_ms = 1};
	struct mq_error err;
	struct mq_job *job;
	int64_t id;
	bool existing;
	char *spec;

	if (mq_job_from_json(object, &job, NULL, &err))
		die("job", &err);
	json_decref(object);
	object = mq_job_to_json(job);
	spec = json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT);
	n.spec = spec;
	n.width = job->width;
	n.height = job->height;
	n.iterations = job->iterations;
	mq_layout_init(&n.layout, job->width, job->height, 1, false);
	if (mq_store_job_add(store, &n, &id, &existing, &err))
		die("adding a job", &err);
	json_decref(object);
	free(spec);
	mq_job_free(job);
	return id;
}

static uint64_t finish_tiles(struct mq_store *store)
{
	struct mq_tile_row rows[1024];
	struct mq_tile_file file = {.bytes = 100000, .sha256 = {1, 2, 3}};
	struct mq_error err;
	uint64_t done = 0;
	int64_t attempt;
	bool complete;
	size_t n;

	for (;;) {
		if (mq_store_tiles_next(store, false, rows, 1024, &n, &err))
			die("tiles", &err);
		for (size_t i = 0; i < n; i++, done++) {
			if (rows[i].span.first + rows[i].span.count == 1048576) {
				/* The last of this job. */
				if (mq_store_job_move(store, rows[i].job, MQ_JOB_PAUSED, "bench", NULL, 1, &err))
					die("pausing", &err);
				done--;
				continue;
			}
			if (mq_store_attempt_begin(store, rows[i].id, "cpu", false, 1, &attempt, &err) ||
			    mq_store_tile_done(store, attempt, &file, 0.01, 2, &complete, &err))
				die("a tile", &err);
		}
		if (mq_store_commit(store, NULL, &err))
			die("commit", &err);
		if (n == 0)
			return done;
	}
}

static void build(const char *dir, int jobs)
{
	char path[4096];
	struct mq_store *store;
	struct mq_error err;
	double begun = now();
	uint64_t tiles;
	struct stat st;

	snprintf(path, sizeof path, "%s/mandelq.db", dir);
	if (mkdir(dir, 0700))
		die(dir, NULL);
	if (mq_store_open(path, &store, &err))
		die(path, &err);
	for (int i = 0; i < jobs; i++)
		add_job(store);
	if (mq_store_commit(store, NULL, &err))
		die("commit", &err);
	tiles = finish_tiles(store);
	mq_store_close(store);
	if (stat(path, &st))
		die(path, NULL);
	printf("%llu tiles done, database of %.0f MiB, made in %.0f s\n", (unsigned long long)tiles,
	       (double)st.st_size / (1 << 20), now() - begun);
}

static bool answers(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool yes;

	snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
	yes = connect(fd, (struct sockaddr *)&a, sizeof a) == 0;
	close(fd);
	return yes;
}

static double start_once(const char *program, const char *dir, int signal_number)
{
	char socket_path[sizeof ((struct sockaddr_un *)NULL)->sun_path], option[4096];
	double begun = now(), took;
	pid_t pid;

	snprintf(socket_path, sizeof socket_path, "%s/mandelqd.sock", dir);
	snprintf(option, sizeof option, "--state-dir=%s", dir);
	pid = fork();
	if (pid == 0) {
		execl(program, program, option, "--device=cpu", "--log-level=warn", (char *)NULL);
		_exit(127);
	}
	while (!answers(socket_path)) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			die("the worker has ended", NULL);
		usleep(1000);
	}
	took = now() - begun;
	kill(pid, signal_number);
	waitpid(pid, NULL, 0);
	return took;
}

int main(int argc, char **argv)
{
	static const struct {
		int end;
		const char *after;
	} starts[] = {{SIGKILL, "first"}, {SIGTERM, "after SIGKILL"}, {SIGKILL, "after SIGTERM"}};

	if (argc < 3) {
		fprintf(stderr, "usage: bench_start MANDELQD DIR [JOBS]\n");
		return 2;
	}
	if (access(argv[2], F_OK))
		build(argv[2], argc > 3 ? atoi(argv[3]) : 16);
	for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++)
		printf("start to ready, %s: %.2f s\n", starts[i].after,
		       start_once(argv[1], argv[2], starts[i].end));
	return 0;
}
