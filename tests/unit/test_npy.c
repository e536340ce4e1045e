/* test_npy: the header against NumPy's format description (NEP 1). */
#include "tests/unit/image_util.h"

#include "src/image/npy.h"

static void check(bool is_float, uint32_t height, uint32_t width, const char *dict)
{
	char out[MQ_NPY_HEADER_MAX];
	size_t bytes, length, i;

	memset(out, 'x', sizeof out);
	bytes = mq_npy_header(out, is_float, height, width);
	assert_true(bytes % 64 == 0 && bytes <= MQ_NPY_HEADER_MAX);
	assert_memory_equal(out, "\x93NUMPY\x01\x00", 8);
	length = (uint8_t)out[8] | (size_t)(uint8_t)out[9] << 8;
	assert_int_equal(length, bytes - 10);
	assert_memory_equal(out + 10, dict, strlen(dict));
	for (i = 10 + strlen(dict); i < bytes - 1; i++)
		assert_int_equal(out[i], ' ');
	assert_int_equal(out[bytes - 1], '\n');
}

static void test_headers(void **state)
{
	(void)state;
	check(false, 1, 1, "{'descr': '<u4', 'fortran_order': False, 'shape': (1, 1), }");
	check(true, 1080, 1920,
	      "{'descr': '<f4', 'fortran_order': False, 'shape': (1080, 1920), }");
	check(false, 16777216, 16777215,
	      "{'descr': '<u4', 'fortran_order': False, 'shape': (16777216, 16777215), }");
	check(true, UINT32_MAX, UINT32_MAX,
	      "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967295, 4294967295), }");
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_headers) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
