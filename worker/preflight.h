/* preflight: whatever a start would be refused for at its end is looked at before the database is opened, so
 * that bad input migrates and recovers nothing. A look only: what happens between it and the opening is
 * refused then. Called by daemon.c once the state directory is this worker's. */
#ifndef MQ_PREFLIGHT_H
#define MQ_PREFLIGHT_H

#include "src/status.h"
#include "worker/settings.h"

/* The endpoints, and the keys for other machines. Fails as opening them would; changes nothing. */
enum mq_status mq_preflight(const struct mq_settings *settings, struct mq_error *err);

#endif
