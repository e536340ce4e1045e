/* cmd_keygen: mandelq keygen: makes the keys that tcp endpoints need, or tells those that are there. Talks
 * to no worker. */
#include "config.h" /* explicit_bzero */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/command.h"
#include "client/remote.h"
#include "client/say.h"

enum mq_status mq_cmd_keygen(const struct mq_options *options, struct mq_error *err)
{
	struct mq_keypair keys;
	char *path = NULL;
	bool made = false;
	enum mq_status status = options->operands
					? mq_fail(err, MQ_EINVAL, "keygen takes no operands: --key=FILE says where")
					: mq_remote_key_path(options, &path, err);

	if (status == MQ_OK)
		status = mq_keyfile_ensure(path, options->count[MQ_OPT_FORCE], &keys, &made, err);
	if (status == MQ_OK) {
		printf("%s\n", keys.public_key);
		mq_tell("%s %s; the worker's authorized_clients needs a line: %s USER", path,
			made ? "is made" : "was there and is left alone (--force replaces it)", keys.public_key);
		explicit_bzero(&keys, sizeof(keys));
		status = mq_say_flush_stdout(err);
	}
	free(path);
	return status;
}
