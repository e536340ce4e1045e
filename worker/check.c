/* check: see check.h. The database first, then each job with its files, then the files that no job
 * counts on. */
#include "worker/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/image/tilefile.h"
#include "src/job.h"
#include "src/store/store.h"
#include "src/writeall.h"
#include "worker/active.h"
#include "worker/statedir.h"

#define DB "mandelq.db"

static const char *const db_files[] = {DB, DB "-wal", DB "-journal"};

struct checker {
	const char *path;
	FILE *out;
	int fd, lock_fd;
	char *copy; /* the folder of the copy */
	struct mq_store *store;
	uint64_t findings, leftovers, jobs, pictures, tiles;
	int64_t *damaged; /* ids, ascending */
	size_t damaged_count;
	bool no_memory;
};

static void finding(struct checker *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void finding(struct checker *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(c->out, fmt, ap); /* main looks at the stream when all is written */
	va_end(ap);
	fputc('\n', c->out);
	c->findings++;
}

static void leftover(struct checker *c, const char *path)
{
	fprintf(c->out, "leftover: %s\n", path);
	c->leftovers++;
}

/* ---- the directory, its lock, a copy of the database ---- */

static enum mq_status open_locked(struct checker *c, struct mq_error *err)
{
	char pid[32] = "";
	ssize_t n;

	c->fd = open(c->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->fd < 0)
		return mq_fail_errno(err, errno, "--state-dir: %s", c->path);
	c->lock_fd = openat(c->fd, "lock", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (c->lock_fd < 0 && errno == ENOENT)
		return mq_fail(err, MQ_ENOENT, "--state-dir: no worker has ever used %s", c->path);
	if (c->lock_fd < 0)
		return mq_fail_errno(err, errno, "%s/lock", c->path);
	if (!flock(c->lock_fd, LOCK_EX | LOCK_NB))
		return MQ_OK;
	if (errno != EWOULDBLOCK)
		return mq_fail_errno(err, errno, "locking %s/lock", c->path);
	n = pread(c->lock_fd, pid, sizeof pid - 1, 0);
	pid[n > 0 ? strcspn(pid, "\n") : 0] = '\0';
	return mq_fail(err, MQ_EBUSY, "%s is in use by mandelqd (process %s): stop it first", c->path,
	               *pid ? pid : "unknown");
}

static enum mq_status copy_bytes(int from, int to, const char *name, struct mq_error *err)
{
	char buffer[65536];
	ssize_t n;

	while ((n = read(from, buffer, sizeof buffer)) > 0) {
		int e = mq_write_all(to, buffer, (size_t)n);

		if (e)
			return mq_fail_errno(err, e, "copying %s (set TMPDIR)", name);
	}
	return n < 0 ? mq_fail_errno(err, errno, "reading %s", name) : MQ_OK;
}

static enum mq_status copy_file(struct checker *c, int copy_fd, const char *name, struct mq_error *err)
{
	int from = openat(c->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), to;
	enum mq_status s;

	if (from < 0)
		return errno == ENOENT ? MQ_OK : mq_fail_errno(err, errno, "%s/%s", c->path, name);
	to = openat(copy_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	s = to < 0 ? mq_fail_errno(err, errno, "copying %s (set TMPDIR)", name)
	           : copy_bytes(from, to, name, err);
	if (to >= 0 && close(to) && !s)
		s = mq_fail_errno(err, errno, "copying %s", name);
	close(from);
	return s;
}

static enum mq_status make_copy(struct checker *c, struct mq_error *err)
{
	const char *base = getenv("TMPDIR");
	enum mq_status s = MQ_OK;
	int fd;

	if (asprintf(&c->copy, "%s/mandelqd-check.XXXXXX", base && *base ? base : "/tmp") < 0) {
		c->copy = NULL;
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	}
	if (!mkdtemp(c->copy)) {
		s = mq_fail_errno(err, errno, "making %s", c->copy);
		free(c->copy);
		c->copy = NULL;
		return s;
	}
	fd = open(c->copy, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return mq_fail_errno(err, errno, "%s", c->copy);
	for (size_t i = 0; !s && i < sizeof db_files / sizeof db_files[0]; i++)
		s = copy_file(c, fd, db_files[i], err);
	close(fd);
	return s;
}

/* The copy is private and its files are known: what else SQLite left is one of these too. */
static void drop_copy(struct checker *c)
{
	char *path;

	if (!c->copy)
		return;
	for (size_t i = 0; i < sizeof db_files / sizeof db_files[0]; i++)
		if (asprintf(&path, "%s/%s", c->copy, db_files[i]) >= 0) {
			(void)unlink(path); /* not all exist */
			free(path);
		}
	for (int version = 1; version < MQ_STORE_SCHEMA; version++)
		if (asprintf(&path, "%s/" DB ".v%d-backup", c->copy, version) >= 0) {
			(void)unlink(path); /* only an older database is copied once more */
			free(path);
		}
	if (rmdir(c->copy))
		fprintf(stderr, "mandelqd: %s is left behind: %s\n", c->copy, strerror(errno));
	free(c->copy);
}

/* ---- the database ---- */

static void note_damaged(void *arg, int64_t job)
{
	struct checker *c = arg;
	int64_t *more = realloc(c->damaged, (c->damaged_count + 1) * sizeof *more);

	if (!more) {
		c->no_memory = true;
		return;
	}
	c->damaged = more;
	c->damaged[c->damaged_count++] = job;
	finding(c, "job %lld: its row, or one of its tiles' rows, is damaged: it will be set aside as failed",
	        (long long)job);
}

static bool is_damaged(const struct checker *c, int64_t job)
{
	for (size_t i = 0; i < c->damaged_count; i++)
		if (c->damaged[i] == job)
			return true;
	return false;
}

/* The text of a refusal, with the database's own name for the copy's. */
static void database_finding(struct checker *c, const struct mq_error *why)
{
	size_t n = strlen(c->copy);
	const char *at = strstr(why->text, c->copy);

	if (at)
		finding(c, "%.*s%s%s", (int)(at - why->text), why->text, c->path, at + n);
	else
		finding(c, DB ": %s", why->text);
}

/* *usable: the rows can be read. */
static enum mq_status check_database(struct checker *c, bool *usable, struct mq_error *err)
{
	struct mq_error why = {""};
	struct stat st;
	enum mq_status s;
	char *path;

	*usable = false;
	if (fstatat(c->fd, DB, &st, AT_SYMLINK_NOFOLLOW)) {
		finding(c, DB ": %s", strerror(errno));
		return MQ_OK;
	}
	s = make_copy(c, err);
	if (s)
		return s;
	if (asprintf(&path, "%s/" DB, c->copy) < 0)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
	s = mq_store_damaged_jobs(path, note_damaged, c, &why);
	if (!s)
		s = mq_store_open(path, &c->store, &why);
	free(path);
	if (s == MQ_ENOMEM_HOST || c->no_memory)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory to check the database");
	if (s)
		database_finding(c, &why);
	*usable = !s;
	return MQ_OK;
}

/* ---- files ---- */

static enum mq_status hash_file(int fd, char hex[65])
{
	EVP_MD_CTX *md = EVP_MD_CTX_new();
	unsigned char digest[32], buffer[65536];
	ssize_t n = -1;

	if (md && EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1)
		while ((n = read(fd, buffer, sizeof buffer)) > 0)
			if (EVP_DigestUpdate(md, buffer, (size_t)n) != 1)
				break;
	if (n == 0 && EVP_DigestFinal_ex(md, digest, NULL) != 1)
		n = -1;
	EVP_MD_CTX_free(md);
	for (int i = 0; !n && i < 32; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	return n ? MQ_EIO : MQ_OK;
}

/* A file that a done job has: its size and, if given, its SHA-256. */
static void check_result(struct checker *c, int64_t job, const char *name, int64_t bytes,
                         const char *sha256)
{
	char path[96], hex[65];
	struct stat st;
	int fd;

	snprintf(path, sizeof path, "pictures/%lld/%s", (long long)job, name);
	fd = openat(c->fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st))
		finding(c, "job %lld: %s: %s", (long long)job, path, strerror(errno));
	else if (st.st_size != bytes)
		finding(c, "job %lld: %s has %lld bytes instead of %lld", (long long)job, path,
		        (long long)st.st_size, (long long)bytes);
	else if (sha256 && (hash_file(fd, hex) || strcmp(hex, sha256)))
		finding(c, "job %lld: %s is damaged: its SHA-256 is another than was noted", (long long)job,
		        path);
	if (fd >= 0)
		close(fd);
}

/* The tiles of a job that goes on. */
struct tiles {
	struct checker *c;
	int64_t job;
	unsigned channels;
	int fd; /* of work/ID, or -1 */
	struct mq_done_tile *list;
	size_t count, room;
};

static enum mq_status check_tile(void *arg, const struct mq_done_tile *tile)
{
	struct tiles *t = arg;
	struct mq_error why = {""};
	struct mq_tilefile *file;
	char name[64];
	enum mq_status s;

	if (t->count == t->room) {
		size_t room = t->room ? 2 * t->room : 256;
		struct mq_done_tile *more = realloc(t->list, room * sizeof *more);

		if (!more)
			return MQ_ENOMEM_HOST;
		t->list = more;
		t->room = room;
	}
	t->list[t->count++] = *tile;
	t->c->tiles++;
	mq_tilefile_name(name, tile->span, tile->attempt);
	s = t->fd < 0 ? mq_fail(&why, MQ_ENOENT, "there is no folder of its tiles")
	              : mq_tilefile_open(t->fd, name, t->job, tile->span, t->channels, tile->file.bytes,
	                                 tile->file.sha256, &file, &why);
	if (s)
		finding(t->c, "job %lld: work/%lld/%s: %s: it will be rendered again", (long long)t->job,
		        (long long)t->job, name, why.text);
	else
		mq_tilefile_close(file);
	return MQ_OK;
}

static bool names_a_tile(const struct tiles *t, const char *name)
{
	unsigned first, count;
	long long attempt;
	char again[64];
	size_t low = 0, high = t->count;

	if (sscanf(name, "tile-%u-%u-%lld.mqt", &first, &count, &attempt) != 3)
		return false;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->list[mid].span.first < first)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == t->count)
		return false;
	mq_tilefile_name(again, t->list[low].span, t->list[low].attempt);
	return !strcmp(again, name);
}

/* Entries of PARENT/ID that `known` does not know. */
static void list_leftovers(struct checker *c, const char *parent, int64_t job,
                           bool (*known)(const void *arg, const char *name), const void *arg)
{
	char path[400];
	struct dirent *entry;
	DIR *d = NULL;
	int fd;

	snprintf(path, sizeof path, "%s/%lld", parent, (long long)job);
	fd = openat(c->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0)
		d = fdopendir(fd);
	if (!d) {
		if (fd >= 0)
			close(fd);
		return; /* whoever needs the folder has found that out */
	}
	while ((entry = readdir(d))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..") ||
		    known(arg, entry->d_name))
			continue;
		snprintf(path, sizeof path, "%s/%lld/%s", parent, (long long)job, entry->d_name);
		leftover(c, path);
	}
	closedir(d);
}

static bool known_tile(const void *arg, const char *name)
{
	return names_a_tile(arg, name);
}

static bool known_result(const void *arg, const char *name)
{
	(void)arg;
	return !strcmp(name, "picture.png") || !strcmp(name, "preview.png") || !strcmp(name, "counts.mqc");
}

/* ---- jobs ---- */

/* MQ_ECORRUPT: there has been a finding. */
static enum mq_status check_spec(struct checker *c, const struct mq_job_row *row,
                                 struct mq_layout *layout)
{
	struct mq_error why = {""};
	json_t *object = json_loads(row->spec, JSON_REJECT_DUPLICATES, NULL);
	struct mq_job *job = NULL;
	enum mq_status s = MQ_ECORRUPT;

	if (!object)
		finding(c, "job %lld: its settings are no JSON", (long long)row->id);
	else if (mq_job_from_json(object, &job, NULL, &why))
		finding(c, "job %lld: its settings are no job: %s", (long long)row->id, why.text);
	else
		s = mq_active_agrees(job, row, layout, &why);
	if (job && s)
		finding(c, "job %lld: %s", (long long)row->id, why.text);
	json_decref(object);
	mq_job_free(job);
	return s;
}

static enum mq_status check_tiles(struct checker *c, const struct mq_job_row *row,
                                  const struct mq_layout *layout)
{
	struct tiles t = {.c = c, .job = row->id, .channels = layout->channels};
	struct mq_error why = {""};
	char path[64];
	enum mq_status s;

	snprintf(path, sizeof path, "work/%lld", (long long)row->id);
	t.fd = openat(c->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	s = mq_store_tiles_done(c->store, row->id, check_tile, &t, &why);
	if (s && s != MQ_ENOMEM_HOST) {
		finding(c, "job %lld: %s", (long long)row->id, why.text);
		s = MQ_OK;
	}
	if (!s)
		list_leftovers(c, "work", row->id, known_tile, &t);
	if (t.fd >= 0)
		close(t.fd);
	free(t.list);
	return s;
}

static enum mq_status check_job(void *arg, const struct mq_job_row *row)
{
	struct checker *c = arg;
	struct mq_layout layout;

	c->jobs++;
	if (is_damaged(c, row->id) || row->state == MQ_JOB_FAILED || row->state == MQ_JOB_CANCELLED)
		return MQ_OK;
	if (check_spec(c, row, &layout))
		return MQ_OK;
	if (row->state != MQ_JOB_DONE)
		return check_tiles(c, row, &layout);
	c->pictures++;
	check_result(c, row->id, "picture.png", row->output_bytes, row->output_sha256);
	if (row->preview_bytes)
		check_result(c, row->id, "preview.png", row->preview_bytes, NULL);
	if (row->counts_bytes)
		check_result(c, row->id, "counts.mqc", row->counts_bytes, NULL);
	list_leftovers(c, "pictures", row->id, known_result, NULL);
	return MQ_OK;
}

/* ---- folders of jobs that have none ---- */

struct folders {
	struct checker *c;
	const char *parent;
	bool for_done; /* a done job has one here; else one that goes on, or may: a failed one */
	int64_t last;  /* the highest id that a job has had */
	int fd;        /* parent's */
};

static void check_folder(void *arg, int64_t id)
{
	struct folders *f = arg;
	struct mq_job_row row;
	char path[64];
	bool belongs = false;

	if (is_damaged(f->c, id))
		return; /* its files are left to whoever mends it */
	if (!mq_store_job_get(f->c->store, id, &row, NULL)) {
		belongs = f->for_done ? row.state == MQ_JOB_DONE
		                      : !mq_job_is_terminal(row.state) || row.state == MQ_JOB_FAILED;
		mq_job_row_clear(&row);
	}
	if (belongs)
		return;
	snprintf(path, sizeof path, "%s/%lld", f->parent, (long long)id);
	if (id > f->last && mq_statedir_holds(f->fd, id))
		finding(f->c, "%s: the database does not know this job: it is older than the folder, which stays",
		        path);
	else
		leftover(f->c, path);
}

static enum mq_status check_folders(struct checker *c, const char *parent, bool for_done,
                                    struct mq_error *err)
{
	struct folders f = {c, parent, for_done, 0, -1};
	int fd = openat(c->fd, parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	enum mq_status s = mq_store_ids_last(c->store, &f.last, err);

	if (s) {
		if (fd >= 0)
			close(fd);
		return s;
	}
	if (fd < 0) {
		finding(c, "%s: %s", parent, strerror(errno));
		return MQ_OK;
	}
	f.fd = fd;
	s = mq_statedir_each(fd, check_folder, &f, err);
	close(fd);
	return s;
}

static enum mq_status check_all(struct checker *c, struct mq_error *err)
{
	bool usable;
	enum mq_status s = check_database(c, &usable, err);

	if (s || !usable)
		return s;
	s = mq_store_job_each(c->store, 0, INT64_MAX, check_job, c, err);
	if (s == MQ_ECORRUPT) {
		finding(c, "%s", err->text);
		s = MQ_OK;
	}
	if (!s)
		s = check_folders(c, "work", false, err);
	if (!s)
		s = check_folders(c, "pictures", true, err);
	return s;
}

static void print_summary(const struct checker *c)
{
	const struct {
		const char *before;
		uint64_t n;
		const char *what;
	} counts[] = { { "", c->findings, "finding" },
		       { ", ", c->leftovers, "leftover" },
		       { "; looked at ", c->jobs, "job" },
		       { ", ", c->pictures, "picture" },
		       { ", ", c->tiles, "tile" } };

	for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
		fprintf(c->out, "%s%llu %s%s", counts[i].before, (unsigned long long)counts[i].n,
		        counts[i].what, counts[i].n == 1 ? "" : "s");
	fputc('\n', c->out);
}

enum mq_status mq_check_state_dir(const char *path, FILE *out, uint64_t *findings,
                                  struct mq_error *err)
{
	struct checker c = {.path = path, .out = out, .fd = -1, .lock_fd = -1};
	enum mq_status s = open_locked(&c, err);

	if (!s)
		s = check_all(&c, err);
	if (!s)
		print_summary(&c);
	*findings = c.findings;
	mq_store_close(c.store);
	drop_copy(&c);
	free(c.damaged);
	if (c.lock_fd >= 0)
		close(c.lock_fd);
	if (c.fd >= 0)
		close(c.fd);
	return s;
}
