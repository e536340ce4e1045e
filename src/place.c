/* place: paths made absolute, so that both programs, started anywhere, mean the same socket. Called
 * once at the start of each program; touches nothing on disk. */
#include "config.h" /* asprintf */

#include "src/place.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET_NAME "mandelqd.sock"

static enum mq_status no_memory(struct mq_error *err)
{
	return mq_fail(err, MQ_ENOMEM_HOST, "no memory for a path");
}

static char *join(const char *a, const char *b)
{
	bool slash = *a && a[strlen(a) - 1] == '/';
	char *text = NULL;

	return asprintf(&text, "%s%s%s", a, slash ? "" : "/", b) < 0 ? NULL : text;
}

/* base with the components of rest behind it, without "." and empty ones. NULL: memory is out. */
static char *append(char *base, char *rest)
{
	char *save = NULL;

	for (char *part = strtok_r(rest, "/", &save); part && base;
	     part = strtok_r(NULL, "/", &save)) {
		if (!strcmp(part, "."))
			continue;
		char *longer = join(base, part);
		free(base);
		base = longer;
	}
	return base;
}

/* path resolved as far as it exists, and the rest as it is. NULL: memory is out. */
static char *resolve(const char *path)
{
	char *copy = strdup(path);
	char *resolved = NULL;

	if (!copy)
		return NULL;
	for (size_t cut = strlen(copy);; cut--) {
		if (cut == 0) {
			resolved = append(strdup("/"), copy);
			break;
		}
		if (copy[cut] && copy[cut] != '/')
			continue;
		char kept = copy[cut];
		copy[cut] = '\0';
		resolved = realpath(copy, NULL);
		copy[cut] = kept;
		if (resolved) {
			resolved = append(resolved, copy + cut);
			break;
		}
	}
	free(copy);
	return resolved;
}

static enum mq_status make_absolute(const char *path, char **out, struct mq_error *err)
{
	enum mq_status status = MQ_OK;
	char *full = NULL;

	if (path[0] == '/') {
		full = strdup(path);
	} else {
		char *here = getcwd(NULL, 0);
		if (!here)
			return mq_fail(err, MQ_EINVAL,
			               "--state-dir: \"%s\" is relative, and the working "
			               "directory is gone: give an absolute path",
			               path);
		full = join(here, path);
		free(here);
	}
	char *resolved = full ? resolve(full) : NULL;
	if (resolved)
		*out = resolved;
	else
		status = no_memory(err);
	free(full);
	return status;
}

const char *mq_place_environment(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static const char *home(void)
{
	const char *dir = mq_place_environment("HOME");

	if (dir)
		return dir[0] == '/' ? dir : NULL;
	const struct passwd *user = getpwuid(getuid());
	return user && user->pw_dir && user->pw_dir[0] == '/' ? user->pw_dir : NULL;
}

enum mq_status mq_place_state_dir(const char *given, char **out, struct mq_error *err)
{
	char *path;

	if (given && !*given)
		return mq_fail(err, MQ_EINVAL,
		               "--state-dir: a directory is needed, not an empty text");
	if (!given)
		given = mq_place_environment("MANDELQ_STATE_DIR");
	if (given)
		return make_absolute(given, out, err);

	const char *base = mq_place_environment("XDG_STATE_HOME");
	if (base && base[0] == '/') { /* a relative one must be ignored, says its specification */
		path = join(base, "mandelq");
	} else {
		base = home();
		if (!base)
			return mq_fail(err, MQ_EINVAL,
			               "no home directory is known: use --state-dir=DIR or "
			               "set MANDELQ_STATE_DIR");
		path = join(base, ".local/state/mandelq");
	}
	if (!path)
		return no_memory(err);
	enum mq_status status = make_absolute(path, out, err);
	free(path);
	return status;
}

/* The system's state directory may be a link (DynamicUser=yes makes it one). */
static bool is_system(const char *state_dir)
{
	char *resolved = realpath(MQ_SYSTEM_STATE_DIR, NULL);
	bool same = !strcmp(state_dir, MQ_SYSTEM_STATE_DIR) ||
	            (resolved && !strcmp(state_dir, resolved));

	free(resolved);
	return same;
}

/* systemd gives a list when a unit has more than one. */
static bool unit_is_system(void)
{
	const char *list = mq_place_environment("STATE_DIRECTORY");
	char *copy = list ? strdup(list) : NULL, *save = NULL;
	bool is = false;

	for (char *dir = copy ? strtok_r(copy, ":", &save) : NULL; dir && !is; dir = strtok_r(NULL, ":", &save))
		is = is_system(dir);
	free(copy);
	return is;
}

bool mq_place_for_system(const char *given)
{
	struct mq_error ignored;
	char *dir = NULL;
	bool is = unit_is_system();

	if (!is && !mq_place_state_dir(given, &dir, &ignored))
		is = is_system(dir);
	free(dir);
	return is;
}

enum mq_status mq_place_endpoint(const char *state_dir, char **out, struct mq_error *err)
{
	const size_t max = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
	char *dir = NULL, *path = NULL, *endpoint = NULL;

	enum mq_status status = make_absolute(state_dir, &dir, err);
	if (status)
		return status;
	if (is_system(dir)) {
		endpoint = strdup(MQ_SYSTEM_ENDPOINT);
	} else {
		path = join(dir, SOCKET_NAME);
		if (path && strlen(path) > max) {
			status = mq_fail(
				err, MQ_EINVAL,
				"--state-dir: the socket's path in it would have %zu bytes, the "
				"limit is %zu: use --endpoint=ipc://PATH with a shorter one",
				strlen(path), max);
			goto out;
		}
		if (path && asprintf(&endpoint, "ipc://%s", path) < 0)
			endpoint = NULL;
	}
	if (endpoint)
		*out = endpoint;
	else
		status = no_memory(err);
out:
	free(path);
	free(dir);
	return status;
}

enum mq_status mq_place_config(const char *name, char **out, struct mq_error *err)
{
	const char *base = mq_place_environment("XDG_CONFIG_HOME"), *folder = "/mandelq/";
	char *path = NULL;

	if (!base || base[0] != '/') {
		base = home();
		folder = "/.config/mandelq/";
	}
	if (!base)
		return mq_fail(err, MQ_EINVAL, "no home directory is known: name the file");
	if (asprintf(&path, "%s%s%s", base, folder, name) < 0)
		return no_memory(err);
	*out = path;
	return MQ_OK;
}
