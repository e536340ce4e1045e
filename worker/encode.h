/* encode: a rendered tile to a durable tile file, strip by strip on the pool.
 *
 * Called by a device's thread. Strips are encoded side by side; the slot is given back when the last
 * one is through; then the tile file is written and the task's event posted. */
#ifndef MQ_ENCODE_H
#define MQ_ENCODE_H

#include "worker/device.h"

/* On success the task and its slot belong to the pool until its event. On failure (MQ_ENOMEM_HOST, with
 * t->error) nothing has been started. */
enum mq_status mq_encode_task(struct mq_task *task, struct mq_pool *pool, struct mq_events *events);

#endif
