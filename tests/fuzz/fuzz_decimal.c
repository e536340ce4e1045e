/* fuzz_decimal: any text as a number. The canonical text is its own, and has the same value. */
#include "src/decimal.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *once = NULL, *twice = NULL;
	struct mq_error err = {""};
	mpq_t value, again;
	enum mq_status status;

	mpq_init(value);
	mpq_init(again);
	status = mq_decimal_parse(value, text, "--view", &err);
	if (status) {
		FUZZ_CHECK(status == MQ_EINVAL && err.text[0]);
		FUZZ_CHECK(mq_decimal_canonical(text, "--view", &once, &err) == MQ_EINVAL && !once);
	} else {
		FUZZ_CHECK(mq_decimal_canonical(text, "--view", &once, &err) == MQ_OK);
		FUZZ_CHECK(mq_decimal_canonical(once, "--view", &twice, &err) == MQ_OK);
		FUZZ_CHECK(!strcmp(once, twice));
		FUZZ_CHECK(mq_decimal_parse(again, once, "--view", &err) == MQ_OK);
		FUZZ_CHECK(mpq_equal(value, again));
		(void)mq_rational_to_double(value);
	}
	mpq_clear(value);
	mpq_clear(again);
	free(once);
	free(twice);
	free(text);
	return 0;
}
