/* guard: see guard.h. */
#include "worker/guard.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/log.h"

/* An encoder's work memory, and what pictures being joined may take beside. */
#define THREAD_BYTES (32ull << 20)
#define ASSEMBLY_BYTES (128ull << 20)
#define LOOK_MS 250
#define PEERS_MAX 16384u
#define MIB(bytes) ((unsigned long long)((bytes) >> 20))

/* Resident memory that is no file's; 0 when it cannot be told. */
static uint64_t resident(const struct mq_guard *g)
{
	unsigned long long all, shared;
	char text[128];
	ssize_t n = pread(g->fd, text, sizeof text - 1, 0);

	if (n <= 0)
		return 0;
	text[n] = '\0';
	if (sscanf(text, "%*u %llu %llu", &all, &shared) != 2 || shared > all)
		return 0;
	return (all - shared) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Buffers count twice: the tiles in them are encoded before they are free again. */
static uint64_t limit(const struct mq_guard *g, uint64_t held)
{
	return g->base + 2 * held + g->allowed;
}

enum mq_status mq_guard_open(struct mq_guard *g, uint64_t allowed, unsigned threads,
                             struct mq_error *err)
{
	struct rlimit files;

	*g = (struct mq_guard){.allowed = allowed, .peers_max = PEERS_MAX};
	g->fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (g->fd < 0)
		return mq_fail(err, MQ_EIO, "cannot open /proc/self/statm: is /proc mounted?");
	g->base = resident(g) + threads * THREAD_BYTES + ASSEMBLY_BYTES;
	/* libzmq ends the process when it accepts a connection and has no descriptor for it. */
	if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur / 2 < g->peers_max)
		g->peers_max = (unsigned)(files.rlim_cur / 2);
	return MQ_OK;
}

void mq_guard_close(struct mq_guard *g)
{
	close(g->fd);
}

int mq_guard_due(const struct mq_guard *g, unsigned peers)
{
	return peers || g->owed ? LOOK_MS : -1;
}

bool mq_guard_exceeded(struct mq_guard *g, unsigned peers, uint64_t held, int64_t now_ms)
{
	uint64_t now;

	if (peers > g->peers_max) {
		mq_log(MQ_LOG_WARN, "%u connections, more than %u", peers, g->peers_max);
		return true;
	}
	g->owed = now_ms < g->next_ms;
	if (g->owed)
		return false;
	g->next_ms = now_ms + LOOK_MS;
	now = resident(g);
	/* One may have come, filled it and gone since the last look. Cheap: large buffers are mapped apart. */
	if (peers == 0)
		malloc_trim(0);
	if (peers == 0 || now <= limit(g, held))
		return false;
	mq_log(MQ_LOG_WARN,
	       "%llu MiB of memory are in use where the settings explain %llu, and %u connections may "
	       "hold %llu",
	       MIB(now), MIB(limit(g, held) - g->allowed), peers, MIB(g->allowed));
	return true;
}

bool mq_guard_enough(struct mq_guard *g, unsigned peers, uint64_t held)
{
	uint64_t now;

	malloc_trim(0);
	now = resident(g);
	if (peers > g->peers_max || now > limit(g, held))
		return false;
	mq_log(MQ_LOG_WARN, "the connections of other machines are closed; %llu MiB are in use without them",
	       MIB(now));
	return true;
}

void mq_guard_settle(struct mq_guard *g, uint64_t held)
{
	uint64_t now;

	malloc_trim(0);
	now = resident(g);
	mq_log(MQ_LOG_WARN, "all connections are closed; %llu MiB are in use without them", MIB(now));
	if (now > limit(g, held))
		g->base += now - limit(g, held);
}
