/* place: where the state directory and the socket are, for both programs.
 *
 * The user's state directory is $MANDELQ_STATE_DIR, else $XDG_STATE_HOME/mandelq, else
 * ~/.local/state/mandelq. A state directory's own socket is STATE_DIR/mandelqd.sock; the system's is
 * /run/mandelq/mandelqd.sock. Nothing is ever in /tmp. */
#ifndef MQ_PLACE_H
#define MQ_PLACE_H

#include <stdbool.h>

#include "src/status.h"

#define MQ_SYSTEM_STATE_DIR "/var/lib/mandelq"
#define MQ_SYSTEM_ENDPOINT "ipc:///run/mandelq/mandelqd.sock"

/* A variable of the environment; NULL when it is not set, or empty. */
const char *mq_place_environment(const char *name);

/* given: the option's value or NULL. Caller frees *out. MQ_EINVAL: no home directory is known. */
enum mq_status mq_place_state_dir(const char *given, char **out, struct mq_error *err);

/* "ipc://STATE_DIR/mandelqd.sock", absolute; MQ_SYSTEM_ENDPOINT for the system's state directory.
 * MQ_EINVAL: over the 107 bytes that a socket's path may have (says so, and to use
 * --endpoint). Caller frees *out. */
enum mq_status mq_place_endpoint(const char *state_dir, char **out, struct mq_error *err);

/* Whether a worker is the system's: its state directory (given, else as above) is MQ_SYSTEM_STATE_DIR, or it
 * runs in the unit that has that one ($STATE_DIRECTORY, which systemd sets). */
bool mq_place_for_system(const char *given);

/* "$XDG_CONFIG_HOME/mandelq/NAME", else below ~/.config. Caller frees *out. */
enum mq_status mq_place_config(const char *name, char **out, struct mq_error *err);

#endif
