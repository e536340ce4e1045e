/* bytes: amounts as people read them. For what both programs print. */
#ifndef MQ_BYTES_H
#define MQ_BYTES_H

/* "1.5 MB", decimal units as tools for disks have them; out is returned. */
char *mq_bytes_text(double bytes, char out[32]);

#endif
