/* failpoint: the table made from MANDELQ_FAILPOINTS, looked through at every passage. Called from
 * any thread of both programs; the table is made once and only its counters change. */
#include "config.h"

#include "src/failpoint.h"

#ifdef MQ_FAILPOINTS

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define POINTS_MAX 32
#define KILL (-1)
#define HANG (-2)
#define TRACE (-3)

struct point {
	const char *name;
	unsigned long at; /* 0: every passage */
	int action;       /* KILL, HANG, TRACE, or what mq_failpoint returns */
	atomic_ulong passed;
};

static struct point points[POINTS_MAX];
static unsigned point_count;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct {
	const char *name;
	int action;
} actions[] = {
	{ "kill", KILL },     { "hang", HANG },     { "eio", EIO },          { "enospc", ENOSPC },
	{ "edquot", EDQUOT }, { "enomem", ENOMEM }, { "oom", MQ_FAULT_OOM },
	{ "trace", TRACE },
};

static bool parse_point(char *entry, struct point *out)
{
	char *rest = NULL, *end = NULL;
	const char *name = strtok_r(entry, ":", &rest);
	const char *at = strtok_r(NULL, ":", &rest);
	const char *action = strtok_r(NULL, ":", &rest);

	if (!name || !at || !action || strtok_r(NULL, ":", &rest))
		return false;
	out->name = name;
	if (!strcmp(at, "*")) {
		out->at = 0;
	} else {
		errno = 0;
		out->at = strtoul(at, &end, 10);
		if (at[0] < '0' || at[0] > '9' || *end || errno || out->at == 0)
			return false;
	}
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (!strcmp(action, actions[i].name)) {
			out->action = actions[i].action;
			return true;
		}
	}
	return false;
}

static void load(void)
{
	const char *value = getenv("MANDELQ_FAILPOINTS");
	char *rest = NULL;

	if (!value || !*value)
		return;
	char *copy = strdup(value); /* kept: the names point into it */
	if (!copy)
		abort();
	for (char *entry = strtok_r(copy, ",", &rest); entry; entry = strtok_r(NULL, ",", &rest)) {
		if (point_count == POINTS_MAX || !parse_point(entry, &points[point_count])) {
			fprintf(stderr,
			        "MANDELQ_FAILPOINTS: \"%s\" is not name:n:action, comma "
			        "separated\n",
			        value);
			_exit(2);
		}
		point_count++;
	}
}

int mq_failpoint(const char *name)
{
	int result = 0;

	pthread_once(&once, load);
	for (unsigned i = 0; i < point_count; i++) {
		struct point *p = &points[i];

		if (strcmp(p->name, name) && strcmp(p->name, "*"))
			continue;
		unsigned long n = atomic_fetch_add(&p->passed, 1) + 1;
		if (p->at && p->at != n)
			continue;
		if (p->action == TRACE) {
			dprintf(STDERR_FILENO, "failpoint %s\n", name);
			continue;
		}
		if (p->action == KILL)
			kill(getpid(), SIGKILL);
		while (p->action < 0)
			pause();
		if (!result)
			result = p->action;
	}
	return result;
}

void mq_failpoint_poison(int64_t job, uint32_t first, uint32_t count)
{
	char name[64];

	pthread_once(&once, load);
	for (uint32_t i = 0; point_count && i < count; i++) {
		snprintf(name, sizeof name, "poison-%" PRId64 "-%" PRIu32, job, first + i);
		(void)mq_failpoint(name);
	}
}

void mq_failpoint_assembly(int64_t job)
{
	char name[64];

	snprintf(name, sizeof name, "poison-%" PRId64 "-assembly", job);
	(void)mq_failpoint(name);
}

#endif
