/* private: the life of a render's own worker. Called by cmd_render.c. Whatever way this process ends,
 * the worker ends too (PR_SET_PDEATHSIG), and its state directory is safe to take up again. */
#include "config.h"

#include "client/private.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/endpoint.h"
#include "client/interrupt.h"
#include "client/private_dir.h"
#include "client/say.h"
#include "src/clock.h"
#include "src/place.h"

#define LOG_NAME "mandelqd.log"
#define START_MS 60000    /* recovery may take long */
#define LEFTOVER_MS 12000 /* a killed render's worker ends within 10 s */
#define STOP_MS 10000
#define REVIVALS_MAX 10
#define ARGS_MAX (8 + MQ_OPTION_REPEAT_MAX)

struct mq_private {
	const struct mq_options *options;
	struct mq_private_dir dir;
	char *uri, *program;
	char *socket; /* only when it is outside the directory */
	pid_t pid;    /* 0: none runs */
	int ended;    /* waitpid's status of the last one */
	unsigned revivals;
};

bool mq_private_exists(const char *picture)
{
	return mq_private_dir_exists(picture);
}

const char *mq_private_uri(const struct mq_private *worker)
{
	return worker->uri;
}

const char *mq_private_dir(const struct mq_private *worker)
{
	return worker->dir.path;
}

/* --- places --- */

static enum mq_status no_memory(struct mq_error *err)
{
	return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a private worker");
}

/* The socket in the state directory, or in $XDG_RUNTIME_DIR if that path is too long. */
static enum mq_status choose_uri(struct mq_private *w, struct mq_error *err)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	enum mq_status status = mq_place_endpoint(w->dir.path, &w->uri, err);

	if (status != MQ_EINVAL)
		return status;
	if (!runtime || runtime[0] != '/' || strlen(runtime) > 60)
		return mq_fail(err, MQ_EINVAL,
			       "-o: the path %s is too long for a worker's socket; set "
			       "XDG_RUNTIME_DIR, or start a worker yourself: mandelqd &",
			       w->dir.path);
	if (asprintf(&w->socket, "%s/mandelq-render-%016llx.sock", runtime,
		     (unsigned long long)mq_private_dir_hash(w->dir.path)) < 0) {
		w->socket = NULL;
		return no_memory(err);
	}
	if (asprintf(&w->uri, "ipc://%s", w->socket) < 0) {
		w->uri = NULL;
		return no_memory(err);
	}
	return MQ_OK;
}

/* dir/name if it can be run, else NULL. */
static char *runnable(const char *dir, size_t len, const char *name)
{
	struct stat st;
	char *path;

	if (asprintf(&path, "%.*s/%s", (int)len, dir, name) < 0)
		return NULL;
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0)
		return path;
	free(path);
	return NULL;
}

/* Beside this program, where it is installed and built, then PATH. */
static char *find_program(void)
{
	char here[4096], *found = NULL;
	ssize_t n = readlink("/proc/self/exe", here, sizeof(here) - 1);
	const char *path = getenv("PATH"), *slash;

	if (n > 0) {
		here[n] = '\0';
		slash = strrchr(here, '/');
		if (slash)
			found = runnable(here, (size_t)(slash - here), "mandelqd");
	}
	while (path && *path && !found) {
		size_t len = strcspn(path, ":");

		if (len)
			found = runnable(path, len, "mandelqd");
		path += len + (path[len] == ':');
	}
	return found;
}

enum mq_status mq_private_open(const char *picture, const struct mq_options *options,
			       struct mq_private **out, struct mq_error *err)
{
	struct mq_private *w = calloc(1, sizeof(*w));
	enum mq_status status;

	if (!w)
		return no_memory(err);
	w->options = options;
	status = mq_private_dir_open(picture, &w->dir, err);
	if (status == MQ_OK)
		status = choose_uri(w, err);
	if (status == MQ_OK) {
		w->program = find_program();
		if (!w->program)
			status = mq_fail(err, MQ_EUNREACH,
					 "no worker answers, and no mandelqd is installed to start "
					 "one");
	}
	if (status == MQ_OK) {
		*out = w;
		return MQ_OK;
	}
	mq_private_remove_new(w);
	mq_private_close(w);
	return status;
}

/* --- the process --- */

static bool add_arg(char **args, size_t *n, const char *name, const char *value)
{
	if (asprintf(&args[*n], "--%s=%s", name, value) < 0) {
		args[*n] = NULL;
		return false;
	}
	(*n)++;
	return true;
}

static void free_args(char **args)
{
	for (size_t i = 0; args[i]; i++)
		free(args[i]);
}

static bool make_args(const struct mq_private *w, char **args)
{
	const struct mq_options *o = w->options;
	size_t n = 0;
	bool ok;

	args[n] = strdup("mandelqd");
	ok = args[n++] && add_arg(args, &n, "state-dir", w->dir.path) &&
	     add_arg(args, &n, "endpoint", w->uri) &&
	     add_arg(args, &n, "config", "/dev/null"); /* what the machine's service may do is not ours */
	for (unsigned i = 0; ok && i < o->count[MQ_OPT_DEVICE]; i++)
		ok = add_arg(args, &n, "device", o->repeated[i]);
	if (ok && o->count[MQ_OPT_THREADS])
		ok = add_arg(args, &n, "threads", o->value[MQ_OPT_THREADS]);
	if (ok && o->count[MQ_OPT_DEVICE_MEMORY])
		ok = add_arg(args, &n, "device-memory", o->value[MQ_OPT_DEVICE_MEMORY]);
	return ok;
}

/* In the child: only async-signal-safe calls. */
static _Noreturn void become_worker(const struct mq_private *w, char *const *args, int log,
				    pid_t parent)
{
	int null = open("/dev/null", O_RDWR);

	/* Its own process group: Ctrl-C on the terminal is ours to pass on. */
	if (null >= 0 && setpgid(0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 &&
	    getppid() == parent && dup2(null, 0) == 0 && dup2(log, 1) == 1 && dup2(log, 2) == 2) {
		mq_interrupt_end();
		execv(w->program, args);
	}
	_exit(127);
}

static enum mq_status spawn(struct mq_private *w, struct mq_error *err)
{
	char *args[ARGS_MAX] = { NULL };
	enum mq_status status = MQ_OK;
	pid_t parent = getpid(), pid;
	int log;

	if (!make_args(w, args)) {
		free_args(args);
		return no_memory(err);
	}
	log = openat(w->dir.fd, LOG_NAME, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC,
		     0600);
	if (log < 0) {
		status = mq_fail(err, MQ_EIO, "cannot write %s/%s: %s", w->dir.path, LOG_NAME,
				 strerror(errno));
		goto out;
	}
	pid = fork();
	if (pid == 0)
		become_worker(w, args, log, parent);
	if (pid < 0)
		status = mq_fail(err, MQ_EIO, "cannot start %s: %s", w->program, strerror(errno));
	else
		w->pid = pid;
	close(log);
out:
	free_args(args);
	return status;
}

/* Has it ended (or does none run)? */
static bool has_ended(struct mq_private *w)
{
	int ended;

	if (w->pid && waitpid(w->pid, &ended, WNOHANG) == w->pid) {
		w->ended = ended;
		w->pid = 0;
	}
	return w->pid == 0;
}

/* The last line the worker said, or "". */
static void last_words(const struct mq_private *w, char *out, size_t size)
{
	int log = openat(w->dir.fd, LOG_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char text[400];
	ssize_t n;
	off_t end;

	out[0] = '\0';
	if (log < 0)
		return;
	end = lseek(log, 0, SEEK_END);
	n = pread(log, text, sizeof(text) - 1,
		  end > (off_t)sizeof(text) - 1 ? end - (off_t)sizeof(text) + 1 : 0);
	close(log);
	while (n > 0 && text[n - 1] == '\n')
		n--;
	if (n > 0) {
		char *line;

		text[n] = '\0';
		line = strrchr(text, '\n');
		line = line ? line + 1 : text;
		if (strncmp(line, "mandelqd: ", 10) == 0)
			line += 10;
		snprintf(out, size, "%s", line);
	}
}

static enum mq_status fail_ended(const struct mq_private *w, struct mq_error *err)
{
	char words[400];

	last_words(w, words, sizeof(words));
	if (WIFSIGNALED(w->ended))
		return mq_fail(err, MQ_EUNREACH,
			       "the private worker was ended by signal %d (%s/%s)",
			       WTERMSIG(w->ended), w->dir.path, LOG_NAME);
	if (WEXITSTATUS(w->ended) == 2 && words[0]) /* an option of ours that it refused */
		return mq_fail(err, MQ_EINVAL, "%s", words);
	return mq_fail(err, MQ_EUNREACH, "the private worker did not start: %s",
		       words[0] ? words : "it said nothing");
}

enum mq_status mq_private_start(struct mq_private *worker, struct mq_error *err)
{
	int64_t began = mq_clock_ms();
	enum mq_status status = spawn(worker, err);

	while (status == MQ_OK) {
		int64_t passed = mq_clock_ms() - began;

		if (has_ended(worker)) {
			/* The worker of a render that was killed may still hold the directory. */
			bool again = worker->dir.existed && passed < LEFTOVER_MS &&
				     WIFEXITED(worker->ended) && WEXITSTATUS(worker->ended) == 1;

			if (!again)
				return fail_ended(worker, err);
			mq_interrupt_sleep(500);
			status = mq_interrupt_check(err);
			if (status == MQ_OK)
				status = spawn(worker, err);
			continue;
		}
		if (mq_endpoint_probe(worker->uri, NULL) == MQ_OK && !has_ended(worker))
			return MQ_OK;
		if (passed > START_MS)
			status = mq_fail(err, MQ_EUNREACH,
					 "the private worker did not begin to listen within %d s "
					 "(%s/%s)",
					 START_MS / 1000, worker->dir.path, LOG_NAME);
		else if ((status = mq_interrupt_check(err)) == MQ_OK)
			mq_interrupt_sleep(20);
	}
	mq_private_stop(worker);
	return status;
}

enum mq_status mq_private_revive(void *worker, struct mq_error *err)
{
	struct mq_private *w = worker;

	if (!has_ended(w))
		return MQ_OK;
	if (++w->revivals > REVIVALS_MAX || (WIFEXITED(w->ended) && WEXITSTATUS(w->ended) == 2))
		return fail_ended(w, err);
	mq_say("the private worker has died; starting it again");
	return mq_private_start(w, err);
}

void mq_private_stop(struct mq_private *worker)
{
	int64_t until = mq_clock_ms() + STOP_MS;
	unsigned signals = mq_interrupt_count();

	if (has_ended(worker))
		return;
	kill(worker->pid, SIGTERM);
	while (!has_ended(worker)) {
		if (mq_clock_ms() >= until || mq_interrupt_count() > signals) {
			kill(worker->pid, SIGKILL); /* it recovers from that at the next start */
			until = INT64_MAX;
			signals = UINT32_MAX;
		}
		mq_interrupt_sleep(10);
	}
}

void mq_private_remove(struct mq_private *worker)
{
	if (worker->socket)
		unlink(worker->socket);
	mq_private_dir_remove(&worker->dir);
}

void mq_private_remove_new(struct mq_private *worker)
{
	if (!worker->dir.existed)
		mq_private_remove(worker);
}

void mq_private_close(struct mq_private *worker)
{
	if (!worker)
		return;
	mq_private_stop(worker);
	mq_private_dir_close(&worker->dir);
	free(worker->uri);
	free(worker->socket);
	free(worker->program);
	free(worker);
}
