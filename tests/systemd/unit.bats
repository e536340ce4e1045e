#!/usr/bin/env bats
# The units as `make install` puts them: what systemd-analyze says of them, which needs no running
# systemd.
MQ_TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
MQ_BUILD=${MQ_BUILD:-$MQ_TOP/build/check}

setup_file() {
	export DEST=$BATS_FILE_TMPDIR/dest
	make -C "$MQ_BUILD" install DESTDIR="$DEST" >"$BATS_FILE_TMPDIR/install.log" 2>&1 || {
		tail -n 20 "$BATS_FILE_TMPDIR/install.log"
		return 1
	}
	export SYSTEM_UNIT=$DEST$(variable systemdsystemunitdir)/mandelqd.service
	export USER_UNIT=$DEST$(variable systemduserunitdir)/mandelqd.service
}

variable() {
	sed -n "s/^$1 = //p" "$MQ_BUILD/Makefile"
}

# verify SCOPE UNIT: no word from systemd-analyze. The program and the pages are where DESTDIR put them.
verify() {
	sed "s|^ExecStart=|&$DEST|" "$2" >"$BATS_TEST_TMPDIR/mandelqd.service"
	local man=yes
	command -v man >/dev/null || man=no # then nobody can say whether the pages are there
	MANPATH=$(dirname "$(find "$DEST" -name man8)") run systemd-analyze "$1" --man=$man verify "$BATS_TEST_TMPDIR/mandelqd.service"
	[ "$status" = 0 ] && [ -z "$output" ] || { echo "exit $status: $output"; return 1; }
}

@test "systemd-analyze verify has no word to say of the system's unit" {
	verify --system "$SYSTEM_UNIT"
}

@test "systemd-analyze verify has no word to say of the user's unit" {
	export XDG_RUNTIME_DIR=$BATS_TEST_TMPDIR
	verify --user "$USER_UNIT"
}

@test "the system's unit is exposed at most 2.5" {
	run systemd-analyze security --offline=true --threshold=25 --no-pager "$SYSTEM_UNIT"
	[ "$status" = 0 ] || { echo "$output"; return 1; }
	[[ $output == *"Overall exposure level for mandelqd.service"* ]]
}

@test "the group comes from sysusers.d and is the unit's" {
	[ "$(grep -v '^#' "$DEST$(variable sysusersdir)/mandelq.conf")" = "g mandelq -" ]
	grep -qx "Group=mandelq" "$SYSTEM_UNIT"
}

@test "what make install puts there, make uninstall takes away" {
	make -C "$MQ_BUILD" install DESTDIR="$BATS_TEST_TMPDIR" >/dev/null 2>&1
	[ -n "$(find "$BATS_TEST_TMPDIR" -type f)" ]
	make -C "$MQ_BUILD" uninstall DESTDIR="$BATS_TEST_TMPDIR" >/dev/null 2>&1
	run find "$BATS_TEST_TMPDIR" -type f
	[ -z "$output" ] || { echo "$output"; return 1; }
}
