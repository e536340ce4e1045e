/* log: one line an event on standard error; "<N>" priorities when journald reads the stream.
 * Thread-safe. Log where an error is first detected, once. */
#ifndef MQ_LOG_H
#define MQ_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum mq_log_level { MQ_LOG_NONE = -1, MQ_LOG_ERROR, MQ_LOG_WARN, MQ_LOG_INFO, MQ_LOG_DEBUG };

/* Lines above this level are dropped (default MQ_LOG_INFO). Call before threads start. */
void mq_log_set_level(enum mq_log_level level);

void mq_log(enum mq_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What a line is about, for a sink that keeps more than text; 0 or NULL: nothing of that kind. */
struct mq_log_about {
	int64_t job, tile, attempt;
	const char *device;
};
void mq_log_about(enum mq_log_level level, struct mq_log_about about, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
#define mq_log_job(level, id, ...) mq_log_about(level, (struct mq_log_about){ .job = (id) }, __VA_ARGS__)
#define mq_log_device(level, name, ...) \
	mq_log_about(level, (struct mq_log_about){ .device = (name) }, __VA_ARGS__)

/* Takes a line in place of standard error: text without control characters, priority syslog's. False:
 * it did not, and the line goes to standard error. From any thread. */
typedef bool mq_log_sink(int priority, const struct mq_log_about *about, const char *text);
/* Call before threads start. NULL: standard error alone. */
void mq_log_set_sink(mq_log_sink *sink);
/* Is standard error the journal's stream? */
bool mq_log_to_journal(void);

#endif
