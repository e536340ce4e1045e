/* cmd_render: mandelq render: submit, wait and fetch in one, with the running worker or a private one.
 * The request id follows from the picture's path and the job, so that the same command run again finds
 * its job, with either worker. What does not decide the picture (name, priority) may differ then. */
#include "config.h"

#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/command.h"
#include "client/download.h"
#include "client/interrupt.h"
#include "client/jobargs.h"
#include "client/private.h"
#include "client/rows.h"
#include "client/say.h"
#include "client/target.h"
#include "client/waiting.h"
#include "src/job.h"

#define REQUEST_ID_SIZE 96
#define AGAIN_MAX 100

struct render {
	const struct mq_options *options;
	char *path;
	json_t *job;
	char request_id[REQUEST_ID_SIZE];
	int64_t until, id;
	struct mq_client *client;
	struct mq_private *own; /* NULL: a worker that was running */
};

static enum mq_status check_output(struct render *r, struct mq_error *err)
{
	const char *file = r->options->value[MQ_OPT_OUTPUT];
	struct stat st;
	enum mq_status status;

	if (!file)
		return mq_fail(err, MQ_EINVAL, "render needs -o FILE");
	if (strcmp(file, "-") == 0)
		return mq_fail(err, MQ_EINVAL,
			       "-o -: render needs a file, so that it can be continued");
	status = mq_target_check(file, r->options->count[MQ_OPT_FORCE], &r->path, err);
	if (status == MQ_OK && stat(r->path, &st) == 0 && !S_ISREG(st.st_mode))
		status = mq_fail(err, MQ_EINVAL,
				 "-o %s: render needs a plain file, so that it can be continued",
				 file);
	if (status == MQ_OK)
		mq_command_warn_name(file, false);
	return status;
}

/* --- the worker --- */

static enum mq_status use_private(struct render *r, struct mq_error *err)
{
	enum mq_status status = mq_private_open(r->path, r->options, &r->own, err);

	if (status == MQ_OK && r->options->count[MQ_OPT_KEEP_COUNTS])
		mq_say("warning: --keep-counts has no effect: a private worker ends with the "
		       "picture; start one to keep counts: mandelqd &");
	if (status == MQ_OK)
		status = mq_private_start(r->own, err);
	if (status == MQ_OK)
		status = mq_client_open_at(mq_private_uri(r->own), &r->client, err);
	return status;
}

static void warn_unused(const struct mq_options *options, const char *uri)
{
	static const enum mq_option_id ids[] = {
		MQ_OPT_DEVICE,
		MQ_OPT_THREADS,
		MQ_OPT_DEVICE_MEMORY,
	};

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		if (options->count[ids[i]])
			mq_say("warning: --%s has no effect: the worker at %s is used",
			       mq_option_table[ids[i]].name, uri);
}

/* The private one if it has been begun, else a running one, else a private one. A worker that was named
 * on the command line must answer. */
static enum mq_status choose_worker(struct render *r, struct mq_error *err)
{
	bool named = r->options->count[MQ_OPT_ENDPOINT] || r->options->count[MQ_OPT_STATE_DIR] ||
		     mq_jobargs_need_worker(r->options);
	enum mq_status status;

	if (!named && mq_private_exists(r->path))
		return use_private(r, err);
	status = mq_client_open(r->options, &r->client, err);
	if (status == MQ_EUNREACH && !named)
		return use_private(r, err);
	if (status == MQ_OK) {
		/* One of our own is at hand: what it takes to come up is not to cost it the job. */
		mq_client_until(r->client, r->until);
		warn_unused(r->options, mq_client_uri(r->client));
	}
	return status;
}

/* --- the job --- */

/* Checks the job here, before a worker is started for it, and derives the request id. */
static enum mq_status name_request(struct render *r, struct mq_error *err)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	struct mq_job *job = NULL;
	json_t *canonical = NULL;
	char *text = NULL, *all = NULL;
	unsigned len = 0;
	int n = -1;
	enum mq_status status = mq_job_from_json(r->job, &job, NULL, err);

	if (status != MQ_OK)
		return status;
	canonical = mq_job_to_json(job);
	text = canonical ? json_dumps(canonical, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	if (text)
		n = asprintf(&all, "%s\n%s", r->path, text);
	if (n < 0) {
		all = NULL;
		status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for a job");
	} else if (EVP_Digest(all, (size_t)n, digest, &len, EVP_sha256(), NULL) != 1 || len < 16) {
		status = mq_fail(err, MQ_EINTERNAL, "libcrypto cannot compute SHA-256");
	} else {
		strcpy(r->request_id, "render-");
		for (unsigned i = 0; i < 16; i++)
			snprintf(r->request_id + 7 + 2 * i, 3, "%02x", digest[i]);
	}
	free(all);
	free(text);
	json_decref(canonical);
	mq_job_free(job);
	return status;
}

static bool is_over(const json_t *row)
{
	enum mq_job_state state = mq_row_state(row);

	return state == MQ_JOB_FAILED || state == MQ_JOB_CANCELLED;
}

/* A private worker may hold the picture, unfinished or never fetched, of a command with other settings:
 * hours of work, perhaps, that are not ours to throw away. */
static enum mq_status refuse_others(const struct render *r, struct mq_error *err)
{
	json_t *rows = NULL;
	enum mq_status status = mq_rows_fetch(r->client, NULL, 0, &rows, NULL, err);

	for (size_t i = 0; status == MQ_OK && i < json_array_size(rows); i++) {
		const json_t *row = json_array_get(rows, i);

		if (is_over(row) || strncmp(mq_row_text(row, "request_id", ""), r->request_id,
					    strlen(r->request_id)) == 0)
			continue;
		status = mq_fail(err, MQ_ESTATE,
				 "%s holds a picture with other settings, %.0f %% of it done: give its "
				 "settings to go on with it, or drop it: rm -r %s",
				 mq_private_dir(r->own), 100 * mq_row_number(row, "progress", 0),
				 mq_private_dir(r->own));
	}
	json_decref(rows);
	return status;
}

/* The job with this request id, which was submitted with another name or priority. */
static enum mq_status find_request(const struct render *r, const char *request_id,
				   struct mq_submitted *out, struct mq_error *err)
{
	struct mq_rows_filter mine = { .mine = true };
	struct mq_rows_list list = { 0 };
	enum mq_status status = mq_rows_list(r->client, &mine, &list, err);

	*out = (struct mq_submitted){ .existing = true };
	for (size_t i = 0; status == MQ_OK && i < json_array_size(list.rows); i++) {
		const json_t *row = json_array_get(list.rows, i);

		if (strcmp(mq_row_text(row, "request_id", ""), request_id) == 0)
			out->id = mq_row_id(row);
	}
	if (status == MQ_OK && !out->id)
		status = mq_fail(err, MQ_ESTATE, "the job of an earlier run has gone meanwhile: run the "
						 "same command again");
	if (status == MQ_OK)
		mq_say("job %lld of an earlier run is this picture; it keeps its name and priority",
		       (long long)out->id);
	mq_rows_list_clear(&list);
	return status;
}

/* Submits; a job of an earlier run that has failed or was cancelled gets a successor, whose request id
 * follows from it, so that a third run finds the successor. */
static enum mq_status submit(struct render *r, struct mq_error *err)
{
	char request_id[REQUEST_ID_SIZE + 32];
	struct mq_submitted submitted;
	json_t *rows = NULL;

	snprintf(request_id, sizeof(request_id), "%s", r->request_id);
	for (int i = 0; i < AGAIN_MAX; i++) {
		enum mq_status status = mq_command_submit(r->client, r->options, r->job, request_id,
							  &submitted, err);
		bool over = false;

		if (status == MQ_ECONFLICT)
			status = find_request(r, request_id, &submitted, err);
		if (status == MQ_OK && submitted.existing)
			status = mq_rows_fetch(r->client, &submitted.id, 1, &rows, NULL, err);
		if (status != MQ_OK)
			return status;
		r->id = submitted.id;
		if (submitted.existing)
			over = is_over(json_array_get(rows, 0));
		json_decref(rows);
		rows = NULL;
		if (!over) {
			if (submitted.existing && r->own)
				mq_say("continuing what %s holds", mq_private_dir(r->own));
			return MQ_OK;
		}
		snprintf(request_id, sizeof(request_id), "%s-%lld", r->request_id,
			 (long long)submitted.id);
	}
	return mq_fail(err, MQ_ESTATE, "this picture has failed %d times; see mandelq status",
		       AGAIN_MAX);
}

static enum mq_status wait_and_fetch(struct render *r, struct mq_error *err)
{
	struct mq_waiting waiting = {
		.ids = &r->id,
		.count = 1,
		.until_ms = r->until,
		.quiet = r->options->count[MQ_OPT_QUIET],
		.watch = r->own ? mq_private_revive : NULL,
		.user = r->own,
	};
	struct mq_download download = {
		.id = r->id,
		.what = "picture",
		.path = r->path,
		.force = r->options->count[MQ_OPT_FORCE],
		.quiet = waiting.quiet,
	};
	json_t *rows = NULL;
	enum mq_status status = mq_wait_jobs(r->client, &waiting, &rows, err);

	if (status == MQ_OK && mq_row_state(json_array_get(rows, 0)) != MQ_JOB_DONE)
		status = mq_wait_report(rows, waiting.quiet, err);
	if (status == MQ_OK)
		status = mq_download(r->client, &download, err);
	if (status == MQ_OK && !waiting.quiet)
		mq_say("%s is done: %.0f x %.0f pixels", r->path,
		       mq_row_number(json_array_get(rows, 0), "width", 0),
		       mq_row_number(json_array_get(rows, 0), "height", 0));
	json_decref(rows);
	return status;
}

/* Ends the private worker, and says how to go on if this was not the end. */
static void finish(struct render *r, enum mq_status status, struct mq_error *err)
{
	struct mq_error why = *err;

	mq_client_close(r->client);
	r->client = NULL;
	if (!r->own) {
		if (status == MQ_ESTOPPED && r->id)
			mq_fail(err, status,
				"%s; job %lld goes on with the running worker; run the same "
				"command again to fetch it",
				why.text, (long long)r->id);
		return;
	}
	mq_private_stop(r->own);
	if (status == MQ_OK)
		mq_private_remove(r->own);
	else if (!r->id)
		mq_private_remove_new(r->own); /* nothing has been begun in it */
	else if (status == MQ_ESTOPPED)
		mq_fail(err, status, "%s; run the same command again to continue (%s)", why.text,
			mq_private_dir(r->own));
	else
		mq_say("what was done, and the worker's log, is in %s", mq_private_dir(r->own));
	mq_private_close(r->own);
}

enum mq_status mq_cmd_render(const struct mq_options *options, struct mq_error *err)
{
	struct render r = { .options = options };
	bool from_worker = mq_jobargs_need_worker(options);
	struct mq_error why = { "" };
	enum mq_status status = mq_command_until(options, MQ_OPT_STOP_AFTER, &r.until, &why);

	if (status == MQ_OK)
		status = mq_jobargs_check(options, "render", &why);
	if (status == MQ_OK)
		status = check_output(&r, &why);
	if (status == MQ_OK && !from_worker)
		status = mq_jobargs_build(options, NULL, &r.job, &why);
	if (status == MQ_OK && !from_worker)
		status = name_request(&r, &why);
	if (status == MQ_OK)
		status = choose_worker(&r, &why);
	if (status == MQ_OK && from_worker)
		status = mq_jobargs_build(options, r.client, &r.job, &why);
	if (status == MQ_OK && from_worker)
		status = name_request(&r, &why);
	if (status == MQ_OK && r.own)
		status = refuse_others(&r, &why);
	if (status == MQ_OK)
		status = submit(&r, &why);
	if (status == MQ_OK)
		status = wait_and_fetch(&r, &why);
	if (status == MQ_ETIMEOUT)
		status = mq_fail(&why, MQ_ESTOPPED, "stopped by --stop-after");
	finish(&r, status, &why);
	if (status != MQ_OK)
		mq_fail(err, status, "%s", why.text);
	json_decref(r.job);
	free(r.path);
	return status;
}
