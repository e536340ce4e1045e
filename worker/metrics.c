/* metrics: see metrics.h. Names and units follow Prometheus' conventions; a label's values are few and
 * our own, so that nothing needs quoting. */
#include "config.h"

#include "worker/metrics.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/clock.h"
#include "worker/devices.h"
#include "worker/space.h"

static const char *const outcomes[] = {"done", "oom", "cancelled", "io", "error", "stale"};
static const char *const reasons[] = {"size", "oom", "time", "suspect"};
#define OUTCOMES (sizeof outcomes / sizeof outcomes[0])
#define REASONS (sizeof reasons / sizeof reasons[0])

/* Upper bounds of the commits' buckets, in seconds. */
static const double bounds[] = {0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5};
#define BOUNDS (sizeof bounds / sizeof bounds[0])

static uint64_t attempts[OUTCOMES], splits[REASONS], pixels, bytes, requests, commits[BOUNDS + 1];
static double commit_seconds;
static int64_t began_wall_ms;
static struct {
	char name[96];
	double seconds;
} devices[MQ_DEVICES_MAX];
static unsigned device_count;

/* The sum goes through every job's row: once in a while is enough. */
#define LOOK_MS 60000
static struct {
	bool known;
	int64_t at_ms;
	uint64_t bytes;
} pictures;

static void count(const char *const *names, size_t n, const char *name, uint64_t *counters)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(names[i], name))
			counters[i]++;
}

void mq_metrics_begin(void)
{
	began_wall_ms = mq_clock_wall_ms();
}

void mq_metrics_request(void)
{
	requests++;
}

void mq_metrics_attempt(const char *outcome)
{
	count(outcomes, OUTCOMES, outcome, attempts);
}

void mq_metrics_split(const char *reason)
{
	count(reasons, REASONS, reason, splits);
}

void mq_metrics_rendered(const char *device, uint64_t tile_pixels, uint64_t tile_bytes, double seconds)
{
	unsigned i = 0;

	pixels += tile_pixels;
	bytes += tile_bytes;
	while (i < device_count && strcmp(devices[i].name, device))
		i++;
	if (i == MQ_DEVICES_MAX)
		return;
	if (i == device_count) {
		snprintf(devices[i].name, sizeof devices[i].name, "%s", device);
		device_count++;
	}
	devices[i].seconds += seconds;
}

void mq_metrics_commit(double seconds)
{
	size_t i = 0;

	while (i < BOUNDS && seconds > bounds[i])
		i++;
	commits[i]++;
	commit_seconds += seconds;
}

static void head(FILE *f, const char *name, const char *type, const char *help)
{
	fprintf(f, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(FILE *f, const char *name, const char *type, const char *help, double value)
{
	head(f, name, type, help);
	fprintf(f, "%s %.17g\n", name, value);
}

static void labelled(FILE *f, const char *name, const char *label, const char *help,
                     const char *const *values, const uint64_t *counters, size_t n)
{
	head(f, name, "counter", help);
	for (size_t i = 0; i < n; i++)
		fprintf(f, "%s{%s=\"%s\"} %llu\n", name, label, values[i], (unsigned long long)counters[i]);
}

static void write_commits(FILE *f)
{
	static const char name[] = "mandelq_commit_seconds";
	uint64_t sum = 0;

	head(f, name, "histogram", "Time of a database commit that wrote something, its fsync included.");
	for (size_t i = 0; i < BOUNDS; i++) {
		sum += commits[i];
		fprintf(f, "%s_bucket{le=\"%g\"} %llu\n", name, bounds[i], (unsigned long long)sum);
	}
	sum += commits[BOUNDS];
	fprintf(f, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.17g\n%s_count %llu\n", name,
	        (unsigned long long)sum, name, commit_seconds, name, (unsigned long long)sum);
}

/* What is said of a device. One that was asked for twice is opened twice, but is one device here: no sample
 * may come twice. */
struct device_row {
	char name[sizeof devices[0].name];
	double size, free, held, busy, seconds;
};

static double seconds_of(const char *name)
{
	for (unsigned i = 0; i < device_count; i++)
		if (!strcmp(devices[i].name, name))
			return devices[i].seconds;
	return 0;
}

static unsigned device_rows(const struct mq_schedule *s, struct device_row row[MQ_DEVICES_MAX])
{
	struct mq_device_report d;
	unsigned count = 0;

	for (unsigned i = 0; i < mq_schedule_devices(s); i++) {
		unsigned k = 0;

		mq_schedule_device(s, i, &d);
		while (k < count && strcmp(row[k].name, d.info.name))
			k++;
		if (k == MQ_DEVICES_MAX)
			break;
		if (k == count) {
			memset(&row[count++], 0, sizeof row[k]);
			snprintf(row[k].name, sizeof row[k].name, "%s", d.info.name);
			row[k].seconds = seconds_of(row[k].name);
		}
		row[k].size = (double)d.info.memory_total;
		row[k].free = (double)d.info.memory_free;
		row[k].held += (double)d.tile_bytes * d.slots;
		row[k].busy = d.busy ? 1 : row[k].busy;
	}
	return count;
}

static void write_devices(FILE *f, const struct mq_schedule *s)
{
	static const struct {
		const char *name, *type, *help;
		size_t offset;
	} families[] = {
		{"mandelq_device_memory_size_bytes", "gauge", "Memory of a device (of the host for a CPU).",
		 offsetof(struct device_row, size)},
		{"mandelq_device_memory_free_bytes", "gauge", "What is free of it.",
		 offsetof(struct device_row, free)},
		{"mandelq_device_memory_held_bytes", "gauge", "What the worker's buffers hold of it.",
		 offsetof(struct device_row, held)},
		{"mandelq_device_busy", "gauge", "1 while tiles are in flight on the device.",
		 offsetof(struct device_row, busy)},
		{"mandelq_device_seconds_total", "counter",
		 "Time that devices worked on tiles (core-seconds for a CPU).",
		 offsetof(struct device_row, seconds)},
	};
	struct device_row row[MQ_DEVICES_MAX];
	unsigned count = device_rows(s, row);

	for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
		head(f, families[i].name, families[i].type, families[i].help);
		for (unsigned k = 0; k < count; k++)
			fprintf(f, "%s{device=\"%s\"} %.17g\n", families[i].name, row[k].name,
			        *(const double *)((const char *)&row[k] + families[i].offset));
	}
}

/* 0 when it cannot be told. */
static double resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	unsigned long long size, resident = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%llu %llu", &size, &resident) != 2)
		resident = 0;
	fclose(f);
	return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static void write_disk(FILE *f, const struct mq_statedir *dir)
{
	struct mq_error why = {""};
	uint64_t available = 0;

	one(f, "mandelq_pictures_bytes", "gauge", "What pictures, previews and counts hold; by the minute.",
	    (double)pictures.bytes);
	/* No sample is better than a wrong one. */
	if (!mq_space_free(dir, &available, &why))
		one(f, "mandelq_state_free_bytes", "gauge", "Free on the state directory's file system.",
		    (double)available);
}

static void write_all(FILE *f, const struct mq_metrics_source *s,
                      const uint64_t jobs[MQ_JOB_STATE_COUNT])
{
	head(f, "mandelq_build_info", "gauge", "The version, as a label.");
	fprintf(f, "mandelq_build_info{version=\"%s\"} 1\n", PACKAGE_VERSION);
	one(f, "process_start_time_seconds", "gauge", "When the worker began, in seconds since 1970.",
	    (double)began_wall_ms / 1e3);
	one(f, "process_resident_memory_bytes", "gauge", "Resident memory of the worker.",
	    resident_bytes());
	one(f, "mandelq_requests_total", "counter", "Requests of clients, this one too.", (double)requests);
	head(f, "mandelq_jobs", "gauge", "Jobs by state.");
	for (int i = 0; i < MQ_JOB_STATE_COUNT; i++)
		fprintf(f, "mandelq_jobs{state=\"%s\"} %llu\n", mq_job_state_name((enum mq_job_state)i),
		        (unsigned long long)jobs[i]);
	one(f, "mandelq_queue_paused", "gauge", "1 while the whole queue is paused.",
	    mq_schedule_paused(s->schedule));
	labelled(f, "mandelq_attempts_total", "outcome", "Attempts at tiles by how they ended.", outcomes,
	         attempts, OUTCOMES);
	labelled(f, "mandelq_splits_total", "reason", "Tiles that were halved.", reasons, splits, REASONS);
	one(f, "mandelq_pixels_total", "counter", "Pixels of finished tiles.", (double)pixels);
	one(f, "mandelq_encoded_bytes_total", "counter", "Bytes of finished tiles, as compressed.",
	    (double)bytes);
	write_devices(f, s->schedule);
	write_commits(f);
	one(f, "mandelq_watchdog_ends_total", "counter",
	    "Workers that the watchdog has ended on this state directory.", (double)s->watchdog_ends);
	write_disk(f, s->dir);
}

static enum mq_status look_at_pictures(const struct mq_metrics_source *source, struct mq_error *err)
{
	enum mq_status s;

	if (pictures.known && source->now_ms < pictures.at_ms + LOOK_MS)
		return MQ_OK;
	s = mq_store_jobs_bytes(source->store, true, 0, &pictures.bytes, err);
	if (s)
		return s;
	pictures.known = true;
	pictures.at_ms = source->now_ms;
	return MQ_OK;
}

enum mq_status mq_metrics_text(const struct mq_metrics_source *source, char **text, struct mq_error *err)
{
	uint64_t jobs[MQ_JOB_STATE_COUNT];
	size_t len;
	FILE *f;
	enum mq_status s = mq_store_jobs_count(source->store, jobs, err);

	if (!s)
		s = look_at_pictures(source, err);
	if (s)
		return s;
	*text = NULL;
	f = open_memstream(text, &len);
	if (!f)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for the metrics");
	write_all(f, source, jobs);
	if (fclose(f) || !*text) {
		free(*text);
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for the metrics");
	}
	return MQ_OK;
}
