/* fuzz_job: any JSON as a job. A job that is taken is its own canonical form: made from its text again
 * it has the same text, the same grid and the same picture's text. */
#include "src/job.h"
#include "tests/fuzz/fuzz.h"

static char *text_of(const struct mq_job *job)
{
	json_t *object = mq_job_to_json(job);
	char *text = object ? json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT) : NULL;

	FUZZ_CHECK(text);
	json_decref(object);
	return text;
}

static struct mq_job *job_of(const char *text)
{
	json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	struct mq_error err = {""};
	struct mq_job *job = NULL;

	FUZZ_CHECK(object);
	FUZZ_CHECK(mq_job_from_json(object, &job, NULL, &err) == MQ_OK);
	json_decref(object);
	return job;
}

static void check_job(const struct mq_job *job)
{
	char *text = text_of(job), *picture = mq_job_picture_text(job);
	struct mq_job *again = job_of(text);
	char *text_again = text_of(again), *picture_again = mq_job_picture_text(again);
	struct mq_grid grid, grid_again;
	struct mq_error err = {""};

	FUZZ_CHECK(picture && picture_again);
	FUZZ_CHECK(!strcmp(text, text_again) && !strcmp(picture, picture_again));
	FUZZ_CHECK(mq_job_grid(job, &grid, &err) == mq_job_grid(again, &grid_again, &err));
	free(text);
	free(picture);
	free(text_again);
	free(picture_again);
	mq_job_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_t *object = json_loadb((const char *)data, size, JSON_DECODE_ANY, NULL);
	struct mq_job_warnings warnings = {0};
	struct mq_error err = {""};
	struct mq_job *job = NULL;

	if (!object)
		return 0;
	if (mq_job_from_json(object, &job, &warnings, &err) == MQ_OK) {
		FUZZ_CHECK(warnings.count <= MQ_JOB_WARNINGS_MAX);
		check_job(job);
		mq_job_free(job);
	} else {
		FUZZ_CHECK(err.text[0] && !job);
	}
	json_decref(object);
	return 0;
}
