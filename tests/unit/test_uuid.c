/* The UUIDs of GPUs as text, and which device a UUID or its beginning means. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "kernels/uuid.h"

static const char devices[][MQ_UUID_SIZE] = {
	"GPU-1a2b3c4d-0000-1111-2222-333344445555",
	"GPU-1a2b9999-0000-1111-2222-333344445555",
	"GPU-ffffffff-eeee-dddd-cccc-bbbbbbbbbbbb",
};
static struct mq_error error;

static enum mq_status find(const char *wanted, unsigned count, unsigned *index)
{
	memset(&error, 0, sizeof(error));
	return mq_uuid_find(wanted, devices, count, index, &error);
}

static void bytes_become_text(void **state)
{
	static const unsigned char bytes[16] = { 0x5f, 0x01, 0xa2, 0xff, 0x00, 0x10, 0x80, 0x0b,
						 0xc3, 0x3c, 0xde, 0xad, 0xbe, 0xef, 0x12, 0x34 };
	char text[MQ_UUID_SIZE];

	(void)state;
	mq_uuid_format(bytes, text);
	assert_string_equal(text, "GPU-5f01a2ff-0010-800b-c33c-deadbeef1234");
	assert_int_equal(strlen(text), MQ_UUID_SIZE - 1);
	assert_true(mq_uuid_is_prefix(text));
}

static void beginnings_are_told_from_other_texts(void **state)
{
	static const char *const good[] = {
		"GPU-1", "gpu-1A2B", "GPU-1a2b3c4d", "GPU-1a2b3c4d-", "GPU-1a2b3c4d-0",
		"GPU-FFFFFFFF-EEEE-DDDD-CCCC-BBBBBBBBBBBB",
	};
	static const char *const bad[] = {
		"", "GPU", "GPU-", "GPU--", "GPU-x", "1a2b3c4d", "MIG-1a2b3c4d", "GPU:1a2b3c4d",
		"GPU-1a2b3c4d0", "GPU-1a2b3c4-0000", "GPU-1a2b3c4d-0000-1111-2222-333344445555-",
		"GPU-1a2b3c4d-0000-1111-2222-3333444455556", "GPU-1a2b3c4d 0000", " GPU-1a2b3c4d",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!mq_uuid_is_prefix(good[i]))
			fail_msg("'%s' was refused", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (mq_uuid_is_prefix(bad[i]))
			fail_msg("'%s' was taken", bad[i]);
}

static void what_fits_one_device_is_found(void **state)
{
	unsigned index = 99;

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(find(devices[i], 3, &index), MQ_OK);
		assert_int_equal(index, i);
	}
	assert_int_equal(find("gpu-FFFF", 3, &index), MQ_OK);
	assert_int_equal(index, 2);
	assert_int_equal(find("GPU-1A2B9", 3, &index), MQ_OK);
	assert_int_equal(index, 1);
}

static void what_fits_none_or_several_is_refused_with_a_list(void **state)
{
	unsigned index = 99;

	(void)state;
	assert_int_equal(find("GPU-1a2b", 3, &index), MQ_EINVAL);
	assert_string_equal(error.text, "GPU-1a2b is more than one device: "
					"cuda:0 GPU-1a2b3c4d-0000-1111-2222-333344445555, "
					"cuda:1 GPU-1a2b9999-0000-1111-2222-333344445555");
	assert_int_equal(find("GPU-2", 2, &index), MQ_EINVAL);
	assert_string_equal(error.text, "there is no GPU-2: there is "
					"cuda:0 GPU-1a2b3c4d-0000-1111-2222-333344445555, "
					"cuda:1 GPU-1a2b9999-0000-1111-2222-333344445555");
	assert_int_equal(find("GPU-2", 0, &index), MQ_EINVAL);
	assert_string_equal(error.text, "there is no GPU-2: there is no CUDA device");
	assert_int_equal(index, 99);
}

static void a_list_of_many_devices_stays_one_line(void **state)
{
	char many[64][MQ_UUID_SIZE];
	unsigned index;

	(void)state;
	for (unsigned i = 0; i < 64; i++)
		memcpy(many[i], devices[0], MQ_UUID_SIZE);
	assert_int_equal(mq_uuid_find("GPU-1", (const char(*)[MQ_UUID_SIZE])many, 64, &index, &error),
			 MQ_EINVAL);
	assert_true(strlen(error.text) > 300 && strlen(error.text) < sizeof(error.text));
	assert_null(strchr(error.text, '\n'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_become_text),
		cmocka_unit_test(beginnings_are_told_from_other_texts),
		cmocka_unit_test(what_fits_one_device_is_found),
		cmocka_unit_test(what_fits_none_or_several_is_refused_with_a_list),
		cmocka_unit_test(a_list_of_many_devices_stays_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
