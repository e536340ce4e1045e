/* settings: see settings.h. */
#include "worker/settings.h"

#include <stdlib.h>
#include <string.h>

#include "src/place.h"
#include "worker/devices.h"
#include "worker/limits.h"
#include "worker/listener.h"
#include "worker/tcp.h"

#define DEVICE_MEMORY (256ull << 20)
#define DEVICE_MEMORY_MIN (1ull << 20)
#define CLIENT_MEMORY (512ull << 20)
#define CLIENT_MEMORY_MIN (64ull << 20)
#define IDLE_RELEASE_MS 60000
#define STUCK_MS 300000

/* One option, if it is given. */
static enum mq_status read_with(const struct mq_options *o, enum mq_option_id id,
                                enum mq_status (*read)(const char *text, enum mq_option_id id,
                                                       unsigned long long *out, struct mq_error *err),
                                uint64_t *out, struct mq_error *err)
{
	unsigned long long n;
	enum mq_status s;

	if (!o->count[id])
		return MQ_OK;
	s = read(o->value[id], id, &n, err);
	if (!s && n == 0)
		s = mq_fail(err, MQ_EINVAL, "--%s: 0 would mean nothing; leave it away for no limit",
		            mq_option_table[id].name);
	*out = s ? 0 : n;
	return mq_option_blame(o->origin[id], s, err);
}

static enum mq_status read_count(const char *text, enum mq_option_id id, unsigned long long *out,
                                 struct mq_error *err)
{
	return mq_option_u64(text, id, 0, 1000000000, out, err);
}

/* What users may have, and how long it is kept: without limit unless set. */
static enum mq_status read_limits(const struct mq_options *o, struct mq_settings *set,
                                  struct mq_error *err)
{
	enum mq_status s = read_with(o, MQ_OPT_MAX_JOBS, read_count, &set->limits.jobs, err);

	if (!s)
		s = read_with(o, MQ_OPT_MAX_BYTES, mq_option_bytes, &set->limits.bytes, err);
	if (!s)
		s = read_with(o, MQ_OPT_KEEP_FOR, mq_option_age, &set->keep_for_ms, err);
	if (!s)
		s = read_with(o, MQ_OPT_KEEP_SIZE, mq_option_bytes, &set->keep_bytes, err);
	return s;
}

/* A size, at least min; left alone when it is not given. */
static enum mq_status read_size(const struct mq_options *o, enum mq_option_id id, uint64_t min,
                                uint64_t *out, struct mq_error *err)
{
	unsigned long long n;
	enum mq_status s;

	if (!o->count[id])
		return MQ_OK;
	s = mq_option_bytes(o->value[id], id, &n, err);
	if (!s && n < min)
		s = mq_fail(err, MQ_EINVAL, "--%s: at least %lluM", mq_option_table[id].name,
		            (unsigned long long)(min >> 20));
	if (!s)
		*out = n;
	return mq_option_blame(o->origin[id], s, err);
}

static enum mq_status read_seconds(const struct mq_options *o, enum mq_option_id id, uint64_t *ms,
                                   struct mq_error *err)
{
	unsigned long long n;
	enum mq_status s;

	if (!o->count[id])
		return MQ_OK;
	s = mq_option_seconds(o->value[id], id, &n, err);
	if (!s)
		*ms = n;
	return mq_option_blame(o->origin[id], s, err);
}

static enum mq_status read_threads(const struct mq_options *o, unsigned *out, struct mq_error *err)
{
	unsigned long long n;
	enum mq_status s;

	*out = mq_limits_threads();
	if (!o->count[MQ_OPT_THREADS])
		return MQ_OK;
	s = mq_option_u64(o->value[MQ_OPT_THREADS], MQ_OPT_THREADS, 1, 1024, &n, err);
	if (!s)
		*out = (unsigned)n;
	return mq_option_blame(o->origin[MQ_OPT_THREADS], s, err);
}

/* Whether there are such devices shows when they are opened. */
static enum mq_status check_devices(const struct mq_options *o, struct mq_error *err)
{
	enum mq_status s = MQ_OK;

	for (unsigned i = 0; !s && i < o->count[MQ_OPT_DEVICE]; i++)
		s = mq_option_blame(o->repeated_origin[i], mq_devices_check_name(o->repeated[i], err), err);
	return s;
}

enum mq_status mq_settings_state_dir(const struct mq_options *o, char **out, struct mq_error *err)
{
	const char *given = o->count[MQ_OPT_STATE_DIR] ? o->value[MQ_OPT_STATE_DIR] : NULL;

	return mq_option_blame(o->origin[MQ_OPT_STATE_DIR], mq_place_state_dir(given, out, err), err);
}

/* The socket that a state directory has by itself. */
static enum mq_status own_endpoint(struct mq_settings *set, struct mq_error *err)
{
	set->endpoint_origin = set->state_dir_origin;
	return mq_option_blame(set->endpoint_origin,
	                       mq_place_endpoint(set->state_dir, &set->endpoint, err), err);
}

static enum mq_status read_places(const struct mq_options *o, struct mq_settings *set,
                                  struct mq_error *err)
{
	const char *endpoint = o->count[MQ_OPT_ENDPOINT] ? o->value[MQ_OPT_ENDPOINT]
	                                                 : getenv("MANDELQ_ENDPOINT");
	const char *origin = o->origin[MQ_OPT_ENDPOINT];
	bool remote = endpoint && !strncmp(endpoint, MQ_TCP_SCHEME, strlen(MQ_TCP_SCHEME));
	enum mq_status s = mq_settings_state_dir(o, &set->state_dir, err);

	set->state_dir_origin = o->origin[MQ_OPT_STATE_DIR];
	if (s)
		return s;
	if (!endpoint || !*endpoint)
		return own_endpoint(set, err);
	s = mq_option_blame(origin, remote ? mq_tcp_check(endpoint, err) : mq_listener_check(endpoint, err),
	                    err);
	if (s)
		return s;
	*(remote ? &set->remote : &set->endpoint) = strdup(endpoint);
	*(remote ? &set->remote_origin : &set->endpoint_origin) = origin;
	if (!set->remote && !set->endpoint)
		return mq_fail(err, MQ_ENOMEM_HOST, "no memory for an endpoint");
	return remote ? own_endpoint(set, err) : MQ_OK;
}

enum mq_status mq_settings_read(const struct mq_options *o, struct mq_settings *set,
                                struct mq_error *err)
{
	enum mq_status s;

	memset(set, 0, sizeof *set);
	set->device_memory = DEVICE_MEMORY;
	set->client_memory = CLIENT_MEMORY;
	set->idle_release_ms = IDLE_RELEASE_MS;
	set->stuck_ms = STUCK_MS;
	s = read_threads(o, &set->threads, err);
	if (!s)
		s = check_devices(o, err);
	if (!s)
		s = read_size(o, MQ_OPT_DEVICE_MEMORY, DEVICE_MEMORY_MIN, &set->device_memory, err);
	if (!s)
		s = read_size(o, MQ_OPT_CLIENT_MEMORY, CLIENT_MEMORY_MIN, &set->client_memory, err);
	if (!s)
		s = read_seconds(o, MQ_OPT_IDLE_RELEASE, &set->idle_release_ms, err);
	if (!s)
		s = read_seconds(o, MQ_OPT_STUCK_TIMEOUT, &set->stuck_ms, err);
	if (!s)
		s = read_limits(o, set, err);
	return s ? s : read_places(o, set, err);
}

void mq_settings_clear(struct mq_settings *set)
{
	free(set->state_dir);
	free(set->endpoint);
	free(set->remote);
	memset(set, 0, sizeof *set);
}
