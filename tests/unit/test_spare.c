/* test_spare: with an address space that is nearly used up, what asks for a spare is refused where malloc is
 * not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "src/spare.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHADOWED 1 /* their shadow is address space too */
#else
#define SHADOWED 0
#endif

static size_t address_space(void)
{
	unsigned long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void refused_before_malloc_is(void **state)
{
	struct rlimit before, limit;
	const size_t room = 8 * MQ_SPARE_BYTES, fits = 6 * MQ_SPARE_BYTES, tight = room - MQ_SPARE_BYTES / 2;
	void *plain, *large, *refused;
	bool left, none;

	(void)state;
	if (SHADOWED)
		skip();
	assert_true(mq_spare_left());
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	limit = before;
	limit.rlim_cur = address_space() + room;
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
	large = mq_spare_malloc(fits);
	left = mq_spare_left();
	free(large);
	refused = mq_spare_malloc(tight);
	plain = malloc(tight);
	none = !mq_spare_left();
	free(plain);
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_non_null(large);
	assert_true(left);
	assert_null(refused);
	assert_non_null(plain);
	assert_true(none);
}

static void of_nothing(void **state)
{
	void *p = mq_spare_malloc(0);

	(void)state;
	assert_non_null(p);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(refused_before_malloc_is), cmocka_unit_test(of_nothing)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
