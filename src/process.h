/* process: what both programs see to before they do anything else. */
#ifndef MQ_PROCESS_H
#define MQ_PROCESS_H

/* Called first in main, by its only thread. Takes the descriptors 0 to 2 where they are closed, so that
 * no file or socket that is opened later becomes a standard stream; reading and writing there fail as
 * they did, but for messages, which go nowhere. And has the umask leave the owner's own permissions: with
 * 0777 even a directory that was just made could not be entered. A file that must not grow (ulimit -f) is
 * a write that fails. */
void mq_process_begin(void);

#endif
