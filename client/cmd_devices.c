/* cmd_devices: mandelq devices and mandelq metrics: what the worker says of itself. */
#include <stdio.h>
#include <string.h>

#include "client/command.h"
#include "client/rows.h"
#include "client/say.h"
#include "client/table.h"
#include "src/bytes.h"

static const char *const titles[] = {
	"DEVICE", "STATE", "FREE", "MEMORY", "BUFFERS", "TILE", "THREADS", "SPEED", "UUID", "MODEL",
};
static const bool right[] = { false, false, true, true, true, true, true, true, false, false };
#define COLUMNS (sizeof(titles) / sizeof(titles[0]))

static const struct mq_table table = { titles, right, COLUMNS, -1 };

static char *amount(const json_t *device, const char *key, char out[32])
{
	double bytes = mq_row_number(device, key, -1);

	if (bytes > 0)
		return mq_bytes_text(bytes, out);
	return strcpy(out, bytes == 0 ? "none" : "-");
}

static json_t *line(const json_t *d)
{
	char free_[32], total[32], held[32], tile[32], threads[32], speed[40], uuid[64], model[400];
	double rate = mq_row_number(d, "pixels_per_second", 0);
	double bytes = mq_row_number(d, "tile_bytes", 0) * mq_row_number(d, "slots", 0);

	snprintf(threads, sizeof(threads), "%.0f", mq_row_number(d, "threads", 0));
	snprintf(speed, sizeof(speed), rate > 0 ? "%.1f Mpx/s" : "-", rate / 1e6);
	const char *failure = mq_row_text(d, "error", NULL);

	snprintf(model, sizeof(model), "%s%s%s", mq_row_text(d, "model", ""), failure ? ": " : "",
	         failure ? failure : "");
	mq_say_clean(model);
	snprintf(uuid, sizeof(uuid), "%s", mq_row_text(d, "uuid", "-"));
	mq_say_clean(uuid);
	return json_pack("[s,s,s,s,s,s,s,s,s,s]", mq_row_text(d, "name", "?"),
			 failure                                    ? "failed"
			 : json_is_true(json_object_get(d, "busy")) ? "busy"
								    : "idle",
			 amount(d, "memory_free", free_), amount(d, "memory_total", total),
			 bytes > 0 ? mq_bytes_text(bytes, held) : "none", amount(d, "tile_bytes", tile),
			 threads, speed, uuid, model);
}

static enum mq_status print_devices(const json_t *devices, struct mq_error *err)
{
	json_t *lines = json_array();
	enum mq_status status = MQ_OK;

	for (size_t i = 0; i < json_array_size(devices); i++)
		if (json_array_append_new(lines, line(json_array_get(devices, i))) != 0)
			status = mq_fail(err, MQ_ENOMEM_HOST, "no memory for a table");
	if (status == MQ_OK) {
		mq_table_print(&table, lines, 0, 0);
		status = mq_say_flush_stdout(err);
	}
	json_decref(lines);
	return status;
}

enum mq_status mq_cmd_devices(const struct mq_options *options, struct mq_error *err)
{
	struct mq_client *client = NULL;
	json_t *hello = NULL, *devices;
	enum mq_status status = MQ_OK;

	if (options->operands)
		return mq_fail(err, MQ_EINVAL, "devices takes no operands");
	status = mq_client_open(options, &client, err);
	if (status == MQ_OK)
		status = mq_client_call(client, "hello", json_object(), &hello, err);
	devices = json_object_get(hello, "devices");
	if (status == MQ_OK && !json_is_array(devices))
		status = mq_fail(err, MQ_EPROTO, "the worker sent no proper answer to \"hello\"");
	if (status == MQ_OK && options->count[MQ_OPT_JSON]) {
		status = mq_command_print_json(devices, err);
	} else if (status == MQ_OK) {
		status = print_devices(devices, err);
		mq_tell("worker: %s", mq_row_text(hello, "note", ""));
	}
	json_decref(hello);
	mq_client_close(client);
	return status;
}

enum mq_status mq_cmd_metrics(const struct mq_options *options, struct mq_error *err)
{
	struct mq_client *client = NULL;
	json_t *result = NULL;
	const char *text;
	enum mq_status status = MQ_OK;

	if (options->operands)
		return mq_fail(err, MQ_EINVAL, "metrics takes no operands");
	status = mq_client_open(options, &client, err);
	if (status == MQ_OK)
		status = mq_client_call(client, "metrics", json_object(), &result, err);
	text = mq_row_text(result, "text", NULL);
	if (status == MQ_OK && !text)
		status = mq_fail(err, MQ_EPROTO, "the worker sent no proper answer to \"metrics\"");
	if (status == MQ_OK) {
		fputs(text, stdout);
		status = mq_say_flush_stdout(err);
	}
	json_decref(result);
	mq_client_close(client);
	return status;
}
