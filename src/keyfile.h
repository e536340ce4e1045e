/* keyfile: CURVE key pairs on disk, for both programs. A key is 40 characters of Z85 (ZeroMQ RFC 32).
 *
 * A key file is the user's alone (0600) and has two lines, "public-key KEY" and "secret-key KEY". */
#ifndef MQ_KEYFILE_H
#define MQ_KEYFILE_H

#include <stdbool.h>

#include "src/status.h"

#define MQ_KEY_SIZE 41 /* with its NUL */

struct mq_keypair {
	char public_key[MQ_KEY_SIZE], secret_key[MQ_KEY_SIZE];
};

/* 40 characters of Z85, no more. */
bool mq_key_valid(const char *text);

/* MQ_ENOENT: no such file; MQ_EINVAL: no key pair in it, or others may read it (the text says what to
 * do). */
enum mq_status mq_keyfile_read(const char *path, struct mq_keypair *out, struct mq_error *err);

/* Makes a key pair and its file, and the directories above it (0700). Made by root, the file goes to its
 * directory's owner. MQ_EBUSY: the file is there and force is not; MQ_EINVAL: what is there is no file
 * of keys: it is left alone. A file appears whole or not at all. */
enum mq_status mq_keyfile_make(const char *path, bool force, struct mq_keypair *out,
                               struct mq_error *err);

/* The keygen commands: the pair that is there, or, if there is none or with force, a new one (*made). */
enum mq_status mq_keyfile_ensure(const char *path, bool force, struct mq_keypair *out, bool *made,
                                 struct mq_error *err);

#endif
