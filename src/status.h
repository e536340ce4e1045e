/* status: the one result type of the project, and the text that goes with a failure.
 *
 * Every function that can fail returns enum mq_status; MQ_OK is 0. A function that takes a
 * `struct mq_error *` fills it with one line (no newline) that names the cause and, where there is
 * one, the remedy; it leaves it alone on success. `err` may be NULL. */
#ifndef MQ_STATUS_H
#define MQ_STATUS_H

enum mq_status {
	MQ_OK = 0,
	MQ_EINVAL,        /* input from outside is malformed or over a limit; nothing was changed */
	MQ_ENOENT,        /* no such job (or file) */
	MQ_ECONFLICT,     /* the request id belongs to a different job */
	MQ_EPERM,         /* the job belongs to somebody else, or the worker does not know the key */
	MQ_ESTATE,        /* legal, but not in the job's present state */
	MQ_EUNREACH,      /* no worker answers */
	MQ_ETIMEOUT,      /* the time given ran out */
	MQ_ESTOPPED,      /* stopped on request; can be resumed */
	MQ_EBUSY,         /* somebody else holds it (state directory, endpoint) */
	MQ_EIO,           /* reading or writing failed; may be tried again */
	MQ_ESYNC,         /* a sync failed: what the disk holds is not known; never tried again */
	MQ_ENOSPC,        /* disk or quota full */
	MQ_ENOMEM_HOST,   /* host memory: the text says how much was asked and how much was free */
	MQ_ENOMEM_DEVICE, /* device memory: likewise */
	MQ_EDEVICE,       /* the device's context is unusable; the process must end */
	MQ_ECORRUPT,      /* stored data does not match its checksum or its format */
	MQ_ECANCELLED,    /* given up because the job was cancelled or the worker stops */
	MQ_ESTALE,        /* the attempt has been superseded; its result must be dropped */
	MQ_EPROTO,        /* a message that is not ours */
	MQ_EVERSION,      /* a newer protocol, schema or file format */
	MQ_EINTERNAL,     /* a broken invariant of our own */
	MQ_STATUS_COUNT
};

struct mq_error {
	char text[512];
};

/* Fills err (if not NULL) from the printf-like text and returns status, so that a failure is one
 * statement. A text that does not fit is cut. */
enum mq_status mq_fail(struct mq_error *err, enum mq_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* As mq_fail, with ": strerror(errnum)" behind the text; the status follows from errnum: ENOSPC and
 * EDQUOT give MQ_ENOSPC, ENOMEM MQ_ENOMEM_HOST, ENOENT MQ_ENOENT, everything else MQ_EIO. */
enum mq_status mq_fail_errno(struct mq_error *err, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The stable lower-case name used on the wire ("ok", "invalid", "no-such-job", ...). */
const char *mq_status_name(enum mq_status status);

/* The status of a wire name; MQ_EPROTO for a name that is not known. */
enum mq_status mq_status_from_name(const char *name);

/* The client's exit code for a status, as mandelq(1) lists them. */
int mq_status_exit_code(enum mq_status status);

#endif
