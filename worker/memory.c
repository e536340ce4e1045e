/* memory: how large tiles and buffers may be on each device.
 *
 * A device reserves its slots once, for the largest tile it has been given, and uses them for every
 * tile. When memory is out, the size asked for is halved and tiles that are larger are split; at one
 * strip the number of slots is halved; with one slot of one strip there is a back-off, and at last a
 * clear failure. So the same size is never asked for twice in a row. Once tiles go well again the cap
 * doubles, each time after twice as many of them. What has been split stays split. */
#include "worker/schedule_private.h"

#include "src/log.h"

#define SLOTS_CPU 4
#define SLOTS_GPU 6
#define GROW_AFTER 32
#define GROW_AFTER_MAX 4096
#define FLOOR_TRIES 6
#define BACKOFF_MS 1000

static unsigned slots_max(const struct mq_unit *u)
{
	return u->info.threads ? SLOTS_CPU : SLOTS_GPU;
}

void mq_memory_init(struct mq_schedule *s, struct mq_unit *u)
{
	u->slots_cap = slots_max(u);
	u->cap = s->c.device_memory / 2;
	u->grow_after = GROW_AFTER;
}

static void ask(struct mq_schedule *s, struct mq_unit *u, uint64_t bytes)
{
	uint64_t slots = bytes ? s->c.device_memory / bytes : 0;

	u->reserving = true;
	u->asked_bytes = bytes;
	mq_device_reserve(u->device, slots > u->slots_cap ? u->slots_cap : (unsigned)slots, bytes);
}

enum mq_fit mq_memory_fit(struct mq_schedule *s, struct mq_unit *u, const struct mq_layout *layout,
                          struct mq_span span, int64_t now_ms)
{
	uint64_t want = mq_span_bytes(layout, span), bytes = want;

	u->floor_bytes = mq_span_bytes(layout, (struct mq_span){span.first, 1});
	if (want > u->cap && span.count > 1)
		return u->memory_short ? MQ_FIT_SPLIT_OOM : MQ_FIT_SPLIT_SIZE;
	if (want > s->c.device_memory) {
		mq_fail(&u->memory_error, MQ_EINVAL,
		        "one strip of this picture needs %llu MiB of buffer, and --device-memory allows %llu MiB",
		        (unsigned long long)(want >> 20) + 1,
		        (unsigned long long)(s->c.device_memory >> 20));
		return MQ_FIT_NEVER;
	}
	if (u->floor_tries >= FLOOR_TRIES) {
		u->floor_tries = 0; /* the next job is given a chance of its own */
		u->retry_ms = 0;
		return MQ_FIT_NEVER;
	}
	if (u->reserving || now_ms < u->retry_ms)
		return MQ_FIT_LATER;
	if (want <= u->bytes)
		return MQ_FIT;
	if (u->in_flight)
		return MQ_FIT_LATER;
	/* At least the usual tile, so that the next job need not ask again. */
	if (bytes < MQ_TILE_BYTES && bytes < u->cap)
		bytes = u->cap < MQ_TILE_BYTES ? u->cap : MQ_TILE_BYTES;
	ask(s, u, bytes);
	return MQ_FIT_LATER;
}

void mq_memory_short(struct mq_unit *u, uint64_t bytes, int64_t now_ms, const struct mq_error *why)
{
	u->memory_error = *why;
	u->memory_short = true;
	u->good = 0;
	u->bytes = 0; /* what is held is given back with the next, smaller request */
	if (bytes > u->floor_bytes) {
		u->cap = bytes / 2 > u->floor_bytes ? bytes / 2 : u->floor_bytes;
		mq_log_device(MQ_LOG_WARN, u->info.name,
		              "%s: %s; tiles are halved to %llu KiB", u->info.name, why->text,
		       (unsigned long long)(u->cap >> 10));
	} else if (u->slots_cap > 1) {
		u->slots_cap /= 2;
		mq_log_device(MQ_LOG_WARN, u->info.name,
		              "%s: %s; trying with %u buffers", u->info.name, why->text, u->slots_cap);
	} else {
		u->retry_ms = now_ms + ((int64_t)BACKOFF_MS << u->floor_tries);
		u->floor_tries++;
		mq_log_device(MQ_LOG_WARN, u->info.name,
		              "%s: %s; at the smallest size, trying again in %lld s", u->info.name,
		       why->text, (long long)(u->retry_ms - now_ms) / 1000);
	}
}

void mq_memory_answer(struct mq_schedule *s, struct mq_unit *u, int64_t now_ms)
{
	struct mq_error err = {""};
	enum mq_status status = mq_device_reserved(u->device, &u->slots, &u->bytes, &err);

	u->reserving = false;
	s->look = true;
	if (status == MQ_EDEVICE)
		mq_outcome_broken(s, u, &err);
	else if (status)
		mq_memory_short(u, u->asked_bytes, now_ms, &err);
}

void mq_memory_good(struct mq_schedule *s, struct mq_unit *u)
{
	u->floor_tries = 0;
	if (!u->memory_short || ++u->good < u->grow_after)
		return;
	u->good = 0;
	if (u->grow_after < GROW_AFTER_MAX)
		u->grow_after *= 2;
	u->cap *= 2;
	u->slots_cap *= 2;
	if (u->slots_cap > slots_max(u))
		u->slots_cap = slots_max(u);
	if (u->cap >= s->c.device_memory / 2) {
		u->cap = s->c.device_memory / 2;
		u->memory_short = u->slots_cap < slots_max(u);
	}
}

void mq_memory_idle(struct mq_schedule *s, int64_t now_ms)
{
	bool all = s->in_flight == 0 && s->assembling == 0;

	for (unsigned i = 0; i < s->count; i++) {
		struct mq_unit *u = &s->unit[i];

		if (u->failed)
			continue;
		if (u->in_flight || u->reserving || now_ms - u->idle_ms < s->c.idle_release_ms) {
			all = false;
		} else if (u->bytes) {
			mq_log_device(MQ_LOG_INFO, u->info.name,
			              "%s is idle: its buffers are given back", u->info.name);
			ask(s, u, 0);
			if (all)
				mq_pool_trim(s->c.pool);
		}
	}
}
