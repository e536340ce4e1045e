/* log: one line an event on standard error; "<N>" priorities when journald reads the stream.
 * Thread-safe. Log where an error is first detected, once. */
#ifndef MQ_LOG_H
#define MQ_LOG_H

enum mq_log_level { MQ_LOG_NONE = -1, MQ_LOG_ERROR, MQ_LOG_WARN, MQ_LOG_INFO, MQ_LOG_DEBUG };

/* Lines above this level are dropped (default MQ_LOG_INFO). Call before threads start. */
void mq_log_set_level(enum mq_log_level level);

void mq_log(enum mq_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
