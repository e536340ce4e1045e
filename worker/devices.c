/* devices: see devices.h. */
#include "worker/devices.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/option.h"

#define INDEX_MAX 1000

static void note_add(struct mq_devices *d, const char *text)
{
	size_t n = strlen(d->note);

	snprintf(d->note + n, sizeof d->note - n, "%s%s", n ? ", " : "", text);
}

static enum mq_status take(struct mq_devices *d, struct mq_backend *b)
{
	struct mq_device_info info;
	char text[256];

	b->ops->info(b, &info);
	snprintf(text, sizeof text, "%s (%s)", info.name, info.model);
	note_add(d, text);
	d->backend[d->count++] = b;
	return MQ_OK;
}

static enum mq_status open_cpu(struct mq_devices *d, unsigned threads, struct mq_error *err)
{
	struct mq_backend *b;
	enum mq_status s = mq_cpu_open(threads, &b, err);

	return s ? s : take(d, b);
}

static enum mq_status open_cuda(struct mq_devices *d, unsigned index, struct mq_error *err)
{
	struct mq_backend *b;
	enum mq_status s = mq_cuda_open(index, &b, err);

	return s ? s : take(d, b);
}

static enum mq_status open_all_cuda(struct mq_devices *d, struct mq_error *err)
{
	char why[256] = "";
	unsigned n = mq_cuda_count(why);
	enum mq_status s = MQ_OK;

	if (!n)
		return mq_fail(err, MQ_EINVAL, "--device=cuda: %s", why);
	for (unsigned i = 0; !s && i < n && d->count < MQ_DEVICES_MAX; i++)
		s = open_cuda(d, i, err);
	return s;
}

static enum mq_status open_auto(struct mq_devices *d, unsigned threads, struct mq_error *err)
{
	char why[256] = "";
	struct mq_error first = {""};
	unsigned n = mq_cuda_count(why);

	for (unsigned i = 0; i < n && d->count < MQ_DEVICES_MAX; i++)
		if (open_cuda(d, i, &first) && !*why)
			snprintf(why, sizeof why, "%.250s", first.text);
	if (d->count)
		return MQ_OK;
	snprintf(d->note, sizeof d->note, "CPU only: %s", why);
	return open_cpu(d, threads, err);
}

/* N of "cuda:N" */
static bool read_index(const char *name, unsigned *index)
{
	unsigned long n;
	char *end;

	if (strncmp(name, "cuda:", 5) || name[5] < '0' || name[5] > '9')
		return false;
	n = strtoul(name + 5, &end, 10);
	*index = (unsigned)n;
	return !*end && n <= INDEX_MAX;
}

enum mq_status mq_devices_check_name(const char *name, struct mq_error *err)
{
	unsigned index;

	if (!strcmp(name, "auto") || !strcmp(name, "cpu") || !strcmp(name, "cuda") ||
	    read_index(name, &index) || mq_uuid_is_prefix(name))
		return MQ_OK;
	return mq_fail(err, MQ_EINVAL, "--device: '%s' is none of auto, cpu, cuda, cuda:N, GPU-UUID", name);
}

/* A device by its number or UUID. */
static enum mq_status open_one_cuda(struct mq_devices *d, const char *name, struct mq_error *err)
{
	struct mq_error cause = {""};
	char why[256] = "";
	unsigned index, n;

	if (!read_index(name, &index)) {
		enum mq_status s = mq_cuda_find(name, &index, &cause);

		return s ? mq_fail(err, s, "--device: %s", cause.text) : open_cuda(d, index, err);
	}
	n = mq_cuda_count(why);
	if (index >= n)
		return mq_fail(err, MQ_EINVAL, "--device: there is no %s: %u CUDA device%s%s%s", name, n,
		               n == 1 ? "" : "s", *why ? ", " : "", why);
	return open_cuda(d, index, err);
}

static enum mq_status open_named(struct mq_devices *d, const char *name, unsigned threads,
                                 struct mq_error *err)
{
	enum mq_status s = mq_devices_check_name(name, err);

	if (s)
		return s;
	if (d->count == MQ_DEVICES_MAX)
		return mq_fail(err, MQ_EINVAL, "--device: at most %d devices", MQ_DEVICES_MAX);
	if (!strcmp(name, "auto"))
		return open_auto(d, threads, err);
	if (!strcmp(name, "cpu"))
		return open_cpu(d, threads, err);
	if (!strcmp(name, "cuda"))
		return open_all_cuda(d, err);
	return open_one_cuda(d, name, err);
}

enum mq_status mq_devices_open(const struct mq_devices_asked *asked, unsigned threads, struct mq_devices *out,
                               struct mq_error *err)
{
	enum mq_status s = MQ_OK;

	memset(out, 0, sizeof *out);
	if (!asked->count)
		s = open_auto(out, threads, err);
	for (unsigned i = 0; !s && i < asked->count; i++)
		s = mq_option_blame(asked->origin[i], open_named(out, asked->name[i], threads, err), err);
	while (s && out->count) {
		struct mq_backend *b = out->backend[--out->count];

		b->ops->close(b);
	}
	return s;
}
