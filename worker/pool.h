/* pool: threads that do short pieces of work (encode a strip, check a strip) in the order given. Each
 * thread has work memory of its own that grows to the largest piece and is reused. */
#ifndef MQ_POOL_H
#define MQ_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "src/status.h"

struct mq_strip_encoder;

/* What a piece of work may use while it runs; belongs to the thread. */
struct mq_pool_worker;

/* Buffers of a thread, by use; each keeps its contents until it is asked for again. */
enum mq_pool_use { MQ_POOL_OUT, MQ_POOL_ROWS, MQ_POOL_USES };

/* The encoder for strips of up to so many filtered bytes, and a buffer of at least `bytes` bytes.
 * MQ_ENOMEM_HOST: says how much was asked; what was there before is given back. */
enum mq_status mq_pool_encoder(struct mq_pool_worker *worker, size_t filtered,
                               struct mq_strip_encoder **out, struct mq_error *err);
enum mq_status mq_pool_buffer(struct mq_pool_worker *worker, enum mq_pool_use use, size_t bytes,
                              uint8_t **out, struct mq_error *err);

/* Part of what it is about; run must not touch it after it has given it on. */
struct mq_work {
	void (*run)(struct mq_work *work, struct mq_pool_worker *worker);
	void *subject;
	uint32_t index;
	struct mq_work *next; /* private */
};

struct mq_pool;
enum mq_status mq_pool_open(unsigned threads, struct mq_pool **out, struct mq_error *err);
/* Ends when the work that is running has returned; queued work is dropped: the caller sees to it that
 * none is left. */
void mq_pool_close(struct mq_pool *pool);
/* Any thread. works[0 .. count-1] are queued behind what waits. */
void mq_pool_add(struct mq_pool *pool, struct mq_work *works, size_t count);
/* Gives back the buffers of threads that are idle (the daemon is idle). */
void mq_pool_trim(struct mq_pool *pool);

#endif
