/* preflight: see preflight.h. */
#include "worker/preflight.h"

#include <stdlib.h>
#include <unistd.h>

#include "worker/listener.h"
#include "worker/publish.h"
#include "worker/remote.h"
#include "worker/tcp.h"

/* By listening: whether an address is this machine's, and a port free, cannot be told otherwise. */
static enum mq_status check_tcp(const char *endpoint, struct mq_error *err)
{
	char *bound = NULL;
	int fd;
	enum mq_status s = mq_tcp_listen(endpoint, &fd, &bound, err);

	if (s)
		return s;
	close(fd);
	free(bound);
	return MQ_OK;
}

enum mq_status mq_preflight(const struct mq_settings *set, struct mq_error *err)
{
	enum mq_status s = mq_listener_probe(set->endpoint, err);

	if (!s)
		s = mq_publish_probe(set->endpoint, err);
	if (s || !set->remote)
		return mq_option_blame(set->endpoint_origin, s, err);
	s = mq_remote_probe(set->state_dir, err);
	if (!s)
		s = check_tcp(set->remote, err);
	return mq_option_blame(set->remote_origin, s, err);
}
