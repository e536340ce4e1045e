/* cpu_host: what this host has: memory, the CPU's name, its instruction sets. Called by cpu.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/escape_cpu.h"

uint64_t mq_host_memory(const char *key)
{
	FILE *f = fopen("/proc/meminfo", "re");
	char line[256];
	uint64_t kib = 0;
	size_t len = strlen(key);

	if (!f)
		return 0;
	while (fgets(line, sizeof line, f)) {
		if (strncmp(line, key, len) == 0 && line[len] == ':') {
			kib = strtoull(line + len + 1, NULL, 10);
			break;
		}
	}
	fclose(f);
	return kib * 1024;
}

void mq_host_model(char *out, size_t size)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256];

	snprintf(out, size, "CPU");
	if (!f)
		return;
	while (fgets(line, sizeof line, f)) {
		char *value = strchr(line, ':');

		if (strncmp(line, "model name", 10) == 0 && value) {
			value += 1 + strspn(value + 1, " \t");
			value[strcspn(value, "\n")] = '\0';
			snprintf(out, size, "%s", value);
			break;
		}
	}
	fclose(f);
}

/* The instruction sets of this CPU, best first, into list[4]; how many. */
static unsigned list_isas(const struct mq_isa *list[4])
{
	bool fma = __builtin_cpu_supports("fma");
	unsigned n = 0;

	if (fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
	    __builtin_cpu_supports("avx512vl"))
		list[n++] = &mq_isa_avx512;
	if (fma && __builtin_cpu_supports("avx2"))
		list[n++] = &mq_isa_avx2;
	list[n++] = fma ? &mq_isa_scalar_fma : &mq_isa_scalar;
	return n;
}

enum mq_status mq_isa_pick(const struct mq_isa **out, struct mq_error *err)
{
	const char *wanted = getenv("MANDELQ_CPU_ISA");
	const struct mq_isa *list[4];
	char names[64] = "";
	unsigned n = list_isas(list), i;

	for (i = 0; i < n; i++) {
		size_t used = strlen(names);

		if (!wanted || !*wanted || strcmp(wanted, list[i]->name) == 0) {
			*out = list[i];
			return MQ_OK;
		}
		snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", list[i]->name);
	}
	return mq_fail(err, MQ_EINVAL, "MANDELQ_CPU_ISA=%s: this CPU has %s", wanted, names);
}
