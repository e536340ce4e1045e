/* table: what status, watch and devices print for people. */
#ifndef MQ_CLIENT_TABLE_H
#define MQ_CLIENT_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct mq_table {
	const char *const *titles;
	const bool *right; /* flush right; a column each */
	size_t columns;
	int state;         /* the column that has a job's state, to colour; -1: none */
};

/* lines: an array of arrays of strings. On standard output, at most `max` lines of them (0: all), each cut
 * at `width` terminal columns (0: not). */
void mq_table_print(const struct mq_table *table, const json_t *lines, size_t max, size_t width);

/* The table of jobs. */
extern const struct mq_table mq_table_jobs;
/* rows (rows.h) to its lines, a new reference; NULL when memory is out. */
json_t *mq_table_job_lines(const json_t *rows);

/* What a person may want to know about a job that is done: "" or one sentence. */
char *mq_table_hint(const json_t *row, char out[160]);

#endif
