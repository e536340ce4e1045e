/* fuzz_config: any file as the worker's configuration, and its values as what each option takes. */
#include <sys/mman.h>

#include "src/option.h"
#include "tests/fuzz/fuzz.h"

static void read_values(const struct mq_options *o)
{
	struct mq_error err = {""};
	unsigned long long n = 0;

	for (int id = 0; id < MQ_OPT_COUNT; id++) {
		if (!o->count[id])
			continue;
		FUZZ_CHECK(mq_option_table[id].config && o->value[id]);
		(void)mq_option_u64(o->value[id], id, 1, 1024, &n, &err);
		(void)mq_option_bytes(o->value[id], id, &n, &err);
		(void)mq_option_seconds(o->value[id], id, &n, &err);
	}
	for (unsigned i = 0; i < o->count[MQ_OPT_DEVICE]; i++)
		fuzz_touch((const uint8_t *)o->repeated[i], strlen(o->repeated[i]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	struct mq_options options = {0};
	struct mq_error err = {""};
	char path[64];
	enum mq_status status;

	if (fd < 0)
		fd = memfd_create("config", MFD_CLOEXEC);
	FUZZ_CHECK(fd >= 0);
	fuzz_fill(fd, data, size);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	status = mq_options_read_config(&options, MQ_SCOPE_DAEMON, path, &err);
	FUZZ_CHECK(status == MQ_OK || (status == MQ_EINVAL && err.text[0]));
	read_values(&options);
	mq_options_clear(&options);
	return 0;
}
