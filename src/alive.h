/* alive: how a thread that works long says that it gets on. Any layer calls mq_alive() once per piece
 * of work (some milliseconds to some seconds); the worker's watchdog sees the counter grow. A thread
 * without a counter, or a program without a watchdog, loses nothing by it.
 *
 * Work that is handed to other threads counts for whoever waits for it: the one takes
 * mq_alive_counter along with the work, the others set it as theirs while they do it. */
#ifndef MQ_ALIVE_H
#define MQ_ALIVE_H

#include <stdatomic.h>
#include <stddef.h>

/* This thread's counter, or NULL. It must outlive the work. */
extern _Thread_local atomic_ullong *mq_alive_counter;

static inline void mq_alive_for(atomic_ullong *counter)
{
	if (counter)
		atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static inline void mq_alive(void)
{
	mq_alive_for(mq_alive_counter);
}

#endif
