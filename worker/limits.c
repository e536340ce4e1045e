/* limits: see limits.h. */
#include "worker/limits.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "src/log.h"

/* cgroup v2's cpu.max of this process's group and of those above it: "QUOTA PERIOD" or "max PERIOD". */
static unsigned quota_of(const char *path)
{
	unsigned long long quota, period;
	FILE *f = fopen(path, "re");
	unsigned n = 0;

	if (!f)
		return 0;
	if (fscanf(f, "%llu %llu", &quota, &period) == 2 && period)
		n = (unsigned)((quota + period - 1) / period);
	fclose(f);
	return n;
}

static unsigned quota_v1(void)
{
	long long quota = -1, period = 0;
	FILE *f = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "re");

	if (f) {
		if (fscanf(f, "%lld", &quota) != 1)
			quota = -1;
		fclose(f);
	}
	f = fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "re");
	if (f) {
		if (fscanf(f, "%lld", &period) != 1)
			period = 0;
		fclose(f);
	}
	return quota > 0 && period > 0 ? (unsigned)((quota + period - 1) / period) : 0;
}

static unsigned cgroup_quota(void)
{
	char line[4096], path[4200];
	FILE *f = fopen("/proc/self/cgroup", "re");
	unsigned least = quota_v1();

	while (f && fgets(line, sizeof line, f)) {
		if (strncmp(line, "0::", 3))
			continue;
		line[strcspn(line, "\n")] = '\0';
		for (char *group = line + 3; *group;) {
			char *slash;
			unsigned n;

			snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.max", group);
			n = quota_of(path);
			if (n && (!least || n < least))
				least = n;
			slash = strrchr(group, '/');
			if (!slash || (slash == group && !slash[1]))
				break;
			slash[slash == group] = '\0';
		}
	}
	if (f)
		fclose(f);
	return least;
}

unsigned mq_limits_threads(void)
{
	cpu_set_t set;
	unsigned n = 1, quota = cgroup_quota();

	if (!sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) > 0)
		n = (unsigned)CPU_COUNT(&set);
	return quota && quota < n ? quota : n;
}

void mq_limits_raise_files(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return;
	r.rlim_cur = r.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &r))
		mq_log(MQ_LOG_WARN, "cannot raise the limit of open files to %llu",
		       (unsigned long long)r.rlim_max);
}
