/* device: one device, its thread, and the tiles on their way through it.
 *
 * The scheduler (main thread) gives a device memory and tasks; the device's thread renders each into a
 * slot of its backend, hands the slot's strips to the encoder pool, and takes the slot again when they
 * are encoded. A task comes back to the main thread as an event, whatever became of it. */
#ifndef MQ_DEVICE_H
#define MQ_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/backend.h"
#include "src/status.h"
#include "src/store/store.h"
#include "worker/active.h"
#include "worker/event.h"
#include "worker/pool.h"

struct mq_device;

/* A tile that a task makes, with the token of this attempt and, in the end, its file. */
struct mq_task_tile {
	int64_t tile, attempt;
	struct mq_span span;
	struct mq_tile_file file;
};

/* One attempt at a tile, and perhaps at the tile that is its mirror image: that is not rendered but
 * encoded from the same rows, upside down. Made by the scheduler, who frees it when its event has come
 * back. */
struct mq_task {
	struct mq_event event;
	struct mq_task *next;     /* in whatever list it is */
	struct mq_device *device;
	struct mq_active *job;    /* held */
	struct mq_task_tile tile[2]; /* the first is rendered */
	unsigned tiles;           /* 1, or 2 with its mirror image */
	bool alone;               /* a suspect: nothing else is in flight */
	int64_t begun_ms;
	/* the result */
	enum mq_status status;
	struct mq_error error;
	double seconds;           /* that the device worked */
	uint64_t inside;
	/* while it is rendered and encoded */
	unsigned slot;
	struct mq_rendered rendered;
	struct mq_encoding *encoding;
};

/* The thread starts with nothing reserved. The device owns the backend from here on. */
enum mq_status mq_device_open(struct mq_backend *backend, struct mq_pool *pool,
                              struct mq_events *events, struct mq_device **out,
                              struct mq_error *err);
/* Stops: gives up what is under way and ends the thread. Events of those tasks are posted. */
void mq_device_close(struct mq_device *device);

void mq_device_info(struct mq_device *device, struct mq_device_info *out);

/* Asks for slots of so many bytes (0 bytes: give everything back). Nothing may be in flight. The
 * answer comes as MQ_EVENT_RESERVED; then mq_device_reserved tells it. */
void mq_device_reserve(struct mq_device *device, unsigned slots, uint64_t bytes);
enum mq_status mq_device_reserved(struct mq_device *device, unsigned *slots, uint64_t *bytes,
                                  struct mq_error *err);

/* Queues a task whose tile fits the slots. */
void mq_device_add(struct mq_device *device, struct mq_task *task);

/* Tasks in flight end soon with MQ_ECANCELLED, and new ones at once, until off. */
void mq_device_cancel(struct mq_device *device, bool on);

/* The encoder: the slot's planes are not needed any more. Any thread. */
void mq_device_slot_free(struct mq_device *device, unsigned slot);

#endif
