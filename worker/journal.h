/* journal: the log as structured entries of systemd's journal. Used by main.c. */
#ifndef MQ_JOURNAL_H
#define MQ_JOURNAL_H

/* When standard error is the journal's stream (and the worker was built with systemd), lines go to the
 * journal with the fields MANDELQ_JOB, MANDELQ_TILE, MANDELQ_ATTEMPT and MANDELQ_DEVICE, as far as they
 * are about one; else they stay on standard error. Before threads start. */
void mq_journal_begin(void);

#endif
