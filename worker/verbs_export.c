/* verbs_export: verbs that hand bytes out: results of jobs, and a copy of the database. */
#include "worker/verbs_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "src/clock.h"
#include "src/log.h"
#include "worker/report.h"

static enum mq_status answer_export(struct mq_call *c, const struct mq_export_state *x,
                                    struct mq_error *err)
{
	return mq_verb_reply(c,
	             json_pack("{s:I, s:b, s:f, s:o, s:o}", "handle", (json_int_t)x->handle, "ready",
	                       x->ready, "progress", x->progress, "bytes",
	                       x->ready ? json_integer((json_int_t)x->bytes) : json_null(), "sha256",
	                       x->sha256[0] ? json_string(x->sha256) : json_null()),
	             err);
}

static enum mq_status arg_what(const struct mq_call *c, enum mq_export_what *out, struct mq_error *err)
{
	static const char *const names[] = {"picture", "preview", "counts", "smooth"};
	const char *what = json_string_value(json_object_get(c->args, "what"));

	for (size_t i = 0; what && i < sizeof names / sizeof names[0]; i++)
		if (!strcmp(what, names[i])) {
			*out = (enum mq_export_what)i;
			return MQ_OK;
		}
	return mq_fail(err, MQ_EINVAL, "what must be picture, preview, counts or smooth");
}

static enum mq_status arg_region(const struct mq_call *c, const struct mq_job_row *row,
                                 struct mq_region *out, bool *given, struct mq_error *err)
{
	const json_t *j = json_object_get(c->args, "region");
	json_int_t n[4];

	*given = j && !json_is_null(j);
	if (!*given)
		return MQ_OK;
	if (!json_is_array(j) || json_array_size(j) != 4)
		return mq_fail(err, MQ_EINVAL, "--region takes X,Y,W,H");
	for (size_t i = 0; i < 4; i++) {
		if (!json_is_integer(json_array_get(j, i)))
			return mq_fail(err, MQ_EINVAL, "--region takes four integers X,Y,W,H");
		n[i] = json_integer_value(json_array_get(j, i));
	}
	/* Each bound alone first, so that no sum can overflow. */
	if (n[0] < 0 || n[1] < 0 || n[2] < 1 || n[3] < 1 || n[0] >= row->width || n[1] >= row->height ||
	    n[2] > row->width - n[0] || n[3] > row->height - n[1])
		return mq_fail(err, MQ_EINVAL, "--region lies outside the picture of %u x %u pixels", row->width,
		               row->height);
	*out = (struct mq_region){(uint32_t)n[0], (uint32_t)n[1], (uint32_t)n[2], (uint32_t)n[3]};
	return MQ_OK;
}

static enum mq_status check_ready(const struct mq_job_row *row, enum mq_export_what what,
                                  struct mq_error *err)
{
	long long id = (long long)row->id;

	if (row->state == MQ_JOB_FAILED || row->state == MQ_JOB_CANCELLED)
		return mq_fail(err, MQ_ESTATE, "job %lld is %s: it has no picture", id,
		               mq_job_state_name(row->state));
	if (row->state != MQ_JOB_DONE)
		return mq_fail(err, MQ_ESTATE, "job %lld is %s (%d %%): its picture is not ready", id,
		               mq_job_state_name(row->state), (int)(100 * mq_report_progress(row)));
	if ((what == MQ_EXPORT_COUNTS || what == MQ_EXPORT_SMOOTH) && !row->counts_bytes)
		return mq_fail(err, MQ_ESTATE, "job %lld did not keep its counts: submit it with --keep-counts",
		               id);
	return MQ_OK;
}

/* A file that is not there: its job is not there either, or something has happened to it. */
static enum mq_status explain(struct mq_call *c, int64_t job, enum mq_status s, struct mq_error *err)
{
	struct mq_error why = s ? *err : (struct mq_error){""};
	struct mq_job_row row;

	if (s != MQ_ENOENT || !job)
		return s;
	s = mq_store_job_get(c->v->store, job, &row, err);
	if (s)
		return s;
	mq_job_row_clear(&row);
	return mq_fail(err, MQ_ECORRUPT, "files of job %lld are missing: %s", (long long)job, why.text);
}

enum mq_status mq_verb_open(struct mq_call *c, struct mq_error *err)
{
	struct mq_export_request q = {0};
	struct mq_export_state x;
	struct mq_region region;
	struct mq_job_row row;
	bool given = false;
	json_int_t id;
	enum mq_status s = mq_arg_int(c, "id", 1, INT64_MAX, &id, err);

	if (!s)
		s = arg_what(c, &q.what, err);
	if (!s)
		s = mq_store_job_get(c->v->store, id, &row, err);
	if (s)
		return s;
	s = check_ready(&row, q.what, err);
	if (!s)
		s = arg_region(c, &row, &region, &given, err);
	if (!s && given && q.what == MQ_EXPORT_PREVIEW)
		s = mq_fail(err, MQ_EINVAL, "--region and --preview cannot go together");
	q.owner = c->owner;
	q.job = id;
	q.row = &row;
	q.region = given ? &region : NULL;
	q.sha256 = q.what == MQ_EXPORT_PICTURE ? row.output_sha256 : NULL;
	if (!s)
		s = explain(c, id, mq_export_begin(c->v->exports, &q, c->now_ms, &x, err), err);
	mq_job_row_clear(&row);
	return s ? s : answer_export(c, &x, err);
}

enum mq_status mq_verb_poll(struct mq_call *c, struct mq_error *err)
{
	struct mq_export_state x;
	json_int_t handle;
	int64_t job;
	bool whole;
	enum mq_status s = mq_arg_int(c, "handle", 1, INT64_MAX, &handle, err);

	if (s)
		return s;
	job = mq_export_job(c->v->exports, (uint64_t)handle, &whole); /* a failure takes the handle */
	s = explain(c, job, mq_export_poll(c->v->exports, (uint64_t)handle, c->now_ms, &x, err), err);
	return s ? s : answer_export(c, &x, err);
}

enum mq_status mq_verb_read(struct mq_call *c, struct mq_error *err)
{
	json_int_t handle, offset, length;
	int64_t job;
	void *buffer;
	bool whole;
	size_t got;
	enum mq_status s = mq_arg_int(c, "handle", 1, INT64_MAX, &handle, err);

	if (!s)
		s = mq_arg_int(c, "offset", 0, INT64_MAX, &offset, err);
	if (!s)
		s = mq_arg_int(c, "length", 1, MQ_READ_MAX, &length, err);
	if (s)
		return s;
	buffer = malloc((size_t)length);
	if (!buffer)
		return mq_verb_memory(err);
	job = mq_export_job(c->v->exports, (uint64_t)handle, &whole);
	s = mq_export_read(c->v->exports, (uint64_t)handle, (uint64_t)offset, buffer, (size_t)length,
	                   c->now_ms, &got, err);
	s = explain(c, job, s, err);
	if (s) {
		free(buffer);
		return s;
	}
	c->answer->data = buffer;
	c->answer->data_len = got;
	return mq_verb_reply(c,
	             json_pack("{s:I, s:I}", "bytes", (json_int_t)got, "crc32",
	                       (json_int_t)crc32(crc32(0, NULL, 0), buffer, (uInt)got)),
	             err);
}

/* Somebody says that a whole picture of this handle lies safe with them; they may have read it through an
 * earlier handle. False: it is another handle, or this could not be written down: the picture is only kept
 * for longer then. */
static bool note_fetched(struct mq_call *c, uint64_t handle)
{
	bool whole;
	int64_t job = mq_export_job(c->v->exports, handle, &whole);
	struct mq_job_row row;
	struct mq_error why;
	enum mq_status s;

	if (!job || !whole || mq_store_job_get(c->v->store, job, &row, &why))
		return false;
	s = row.fetched_ms ? MQ_OK : mq_store_job_fetched(c->v->store, job, mq_clock_wall_ms(), &why);
	mq_job_row_clear(&row);
	if (s)
		mq_log(MQ_LOG_WARN, "job %lld was fetched: %s", (long long)job, why.text);
	return !s;
}

enum mq_status mq_verb_close(struct mq_call *c, struct mq_error *err)
{
	json_int_t handle;
	bool kept, counts;
	enum mq_status s = mq_arg_int(c, "handle", 1, INT64_MAX, &handle, err);

	if (!s)
		s = mq_arg_bool(c, "kept", &kept, err);
	if (s)
		return s;
	counts = kept && note_fetched(c, (uint64_t)handle);
	mq_export_end(c->v->exports, (uint64_t)handle);
	return mq_verb_reply(c, kept ? json_pack("{s:b}", "kept", counts) : json_object(), err);
}

/* What the copy will hold is in these two. */
static uint64_t database_bytes(const struct mq_call *c)
{
	static const char *const names[] = {"mandelq.db", "mandelq.db-wal"};
	struct stat st;
	uint64_t sum = 0;

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (!fstatat(c->v->dir->fd, names[i], &st, AT_SYMLINK_NOFOLLOW))
			sum += (uint64_t)st.st_size;
	return sum;
}

enum mq_status mq_verb_backup(struct mq_call *c, struct mq_error *err)
{
	struct mq_export_state x;
	enum mq_status s;

	if (!mq_verb_is_operator(c))
		return mq_fail(err, MQ_EPERM, "only root and the worker's own user may copy the database");
	s = mq_exports_room(c->v->exports, database_bytes(c), "a copy of the database", err);
	if (!s)
		s = mq_copying_begin(c->v->copying, c->v->store, c->v->dir, c->v->exports, c->owner, c->now_ms,
		                     &x, err);
	return s ? s : answer_export(c, &x, err);
}
