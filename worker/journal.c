/* journal: see journal.h. An entry that the journal does not take goes to standard error. */
#include "config.h"

#include "worker/journal.h"

#ifdef HAVE_SYSTEMD

#define SD_JOURNAL_SUPPRESS_LOCATION
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <systemd/sd-journal.h>

#include "src/log.h"

#define FIELDS 6
#define FIELD_MAX 2200 /* a line of the log and its name */

struct entry {
	struct iovec field[FIELDS];
	int count;
};

static void add(struct entry *e, char *text)
{
	e->field[e->count++] = (struct iovec){text, strlen(text)};
}

static bool send_entry(int priority, const struct mq_log_about *about, const char *text)
{
	char message[FIELD_MAX], level[16], job[40], tile[40], attempt[40], device[160];
	struct entry e = {.count = 0};

	snprintf(message, sizeof message, "MESSAGE=%s", text);
	snprintf(level, sizeof level, "PRIORITY=%d", priority);
	add(&e, message);
	add(&e, level);
	if (about->job) {
		snprintf(job, sizeof job, "MANDELQ_JOB=%" PRId64, about->job);
		add(&e, job);
	}
	if (about->tile) {
		snprintf(tile, sizeof tile, "MANDELQ_TILE=%" PRId64, about->tile);
		add(&e, tile);
	}
	if (about->attempt) {
		snprintf(attempt, sizeof attempt, "MANDELQ_ATTEMPT=%" PRId64, about->attempt);
		add(&e, attempt);
	}
	if (about->device) {
		snprintf(device, sizeof device, "MANDELQ_DEVICE=%s", about->device);
		add(&e, device);
	}
	return sd_journal_sendv(e.field, e.count) == 0;
}

void mq_journal_begin(void)
{
	if (mq_log_to_journal())
		mq_log_set_sink(send_entry);
}

#else

void mq_journal_begin(void)
{
}

#endif
