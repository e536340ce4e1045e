#!/usr/bin/env bats
# What is released: the tarball has the sources, all of them and nothing else, and everything that
# states a version states the same.
MQ_TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
MQ_BUILD=${MQ_BUILD:-$MQ_TOP/build/check}

version() {
	sed -n "s/^PACKAGE_VERSION = //p" "$MQ_BUILD/Makefile"
}

@test "make dist packs every file of the repository, and no other but what autoreconf makes" {
	git -C "$MQ_TOP" rev-parse --git-dir >/dev/null 2>&1 || skip "no git repository"
	cd "$MQ_BUILD"
	make -s dist distdir="$BATS_TEST_TMPDIR/dist" am__remove_distdir=: >"$BATS_TEST_TMPDIR/log" 2>&1 ||
		{ tail -n 20 "$BATS_TEST_TMPDIR/log"; return 1; }
	# The repository's own business: hidden files.
	git -C "$MQ_TOP" ls-files --cached --others --exclude-standard | grep -v '^\.' | sort >"$BATS_TEST_TMPDIR/sources"
	(cd "$BATS_TEST_TMPDIR/dist" && find . -type f -o -type l) | sed 's|^\./||' |
		grep -vxE '(build-aux/.*|Makefile\.in|aclocal\.m4|config\.h\.in|configure)' | sort >"$BATS_TEST_TMPDIR/packed"
	diff "$BATS_TEST_TMPDIR/sources" "$BATS_TEST_TMPDIR/packed"
}

@test "the Debian packages and NEWS have the version of configure.ac" {
	[ -n "$(version)" ]
	[ "$(sed -n '1s/^mandelq (\([^)]*\)).*/\1/p' "$MQ_TOP/debian/changelog")" = "$(version)" ]
	[ "$(sed -n '1s/^mandelq //p' "$MQ_TOP/NEWS")" = "$(version)" ]
	[ "$("$MQ_BUILD/mandelq" --version | head -n 1)" = "mandelq $(version)" ]
	[ "$("$MQ_BUILD/mandelqd" --version | head -n 1)" = "mandelqd $(version)" ]
}

# Both have headers to build with; libc6 comes with the compiler, libclang is for the fuzzers.
@test "what the Debian packages need to be built is what scripts/deps installs" {
	wanted=$(sed -n '/^Build-Depends:/,/^[^ ]/p' "$MQ_TOP/debian/control" | grep -oE '^ [a-z0-9.+-]+' | tr -d ' ' | grep '^lib.*-dev$' | sort)
	[ "$(wc -l <<<"$wanted")" -gt 8 ]
	there=$(sed -n '/^packages=(/,/^)/p' "$MQ_TOP/scripts/deps" | grep -oE '[a-z0-9.+-]+' | grep '^lib.*-dev$' |
		grep -vE '^(libc6|libclang)' | sort)
	diff <(echo "$wanted") <(echo "$there")
}

# installed: every file of make install, as Debian has its prefix.
installed() {
	make -s -C "$MQ_BUILD" install prefix=/usr DESTDIR="$BATS_TEST_TMPDIR/root" >"$BATS_TEST_TMPDIR/log" 2>&1 ||
		{ tail -n 20 "$BATS_TEST_TMPDIR/log"; return 1; }
	(cd "$BATS_TEST_TMPDIR/root" && find . -type f | sed 's|^\./||' | sort)
}

# packages_with FILE: the packages whose list names it, its folder or a pattern that it fits.
packages_with() {
	local package pattern
	for package in mandelq mandelqd mandelqd-cuda; do
		while read -r pattern _; do
			pattern=${pattern#debian/tmp-cuda/}
			# shellcheck disable=SC2053
			[[ $1 == $pattern || $1 == $pattern/* ]] && echo "$package"
		done <"$MQ_TOP/debian/$package.install"
	done
	return 0
}

@test "everything that is installed is in the Debian packages, once, and uninstall removes it" {
	installed >"$BATS_TEST_TMPDIR/files"
	for file in usr/bin/mandelq usr/bin/mandelqd usr/share/man/man8/mandelqd.8 \
		usr/share/bash-completion/completions/mandelq{,d} usr/share/zsh/site-functions/_mandelq{,d} \
		usr/share/fish/vendor_completions.d/mandelq{,d}.fish; do
		grep -qx "$file" "$BATS_TEST_TMPDIR/files" || { echo "not installed: $file"; return 1; }
	done
	while read -r file; do
		case $(packages_with "$file" | xargs) in
		mandelq | "mandelqd mandelqd-cuda") ;;
		*) echo "$file is in: $(packages_with "$file" | xargs)"; return 1 ;;
		esac
	done <"$BATS_TEST_TMPDIR/files"
	make -s -C "$MQ_BUILD" uninstall prefix=/usr DESTDIR="$BATS_TEST_TMPDIR/root" >"$BATS_TEST_TMPDIR/log" 2>&1
	[ -z "$(find "$BATS_TEST_TMPDIR/root" -type f)" ]
}

# purged [FILE...]: what a postrm leaves of these files, with "helper" for debhelper's part.
purged() {
	local root=$BATS_TEST_TMPDIR/purged file
	rm -rf "$root"
	for file in "$@"; do install -D /dev/null "$root/$file"; done
	sed 's/^#DEBHELPER#/echo helper/' "$MQ_TOP/debian/mandelqd.postrm" | DPKG_ROOT=$root sh -s purge
	[ ! -d "$root" ] || (cd "$root" && find . -type f | sort)
}

@test "a worker's package that is purged takes its settings along, and nothing of the other build or of users" {
	diff "$MQ_TOP/debian/mandelqd.postrm" "$MQ_TOP/debian/mandelqd-cuda.postrm"
	[ "$(purged etc/mandelq/mandelqd.conf var/cache/private/mandelq/x)" = helper ]
	[ ! -e "$BATS_TEST_TMPDIR/purged/etc/mandelq" ]
	[ "$(purged etc/mandelq/mine var/lib/private/mandelq/mandelq.db | xargs)" = \
		"mandelqd: jobs, pictures and keys are left in /var/lib/private/mandelq helper ./etc/mandelq/mine ./var/lib/private/mandelq/mandelq.db" ]
	# the other build is installed
	[ "$(purged lib/systemd/system/mandelqd.service etc/mandelq/mandelqd.conf | xargs)" = \
		"./etc/mandelq/mandelqd.conf ./lib/systemd/system/mandelqd.service" ]
	[ "$(sed 's/^#DEBHELPER#/echo helper/' "$MQ_TOP/debian/mandelqd.postrm" | DPKG_ROOT=$BATS_TEST_TMPDIR/purged sh -s remove)" = helper ]
}
