#!/usr/bin/env bats
# mandelqd.service under a real systemd: what `make install` puts there is laid over this machine's /usr
# in a container that is booted once; inside.sh does its parts in it, each is a test here. Needs root and
# systemd-nspawn; where that cannot run (inside a chroot, say) all are skipped.
MQ_TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
MQ_BUILD=${MQ_BUILD:-$MQ_TOP/build/check}

# contain OPTION...: a container of this machine's /usr with empty /etc and /var, thrown away after.
# The legacy hierarchy is the one that a container can be given on any host.
contain() {
	UNIFIED_CGROUP_HIERARCHY=no timeout 170 systemd-nspawn --quiet --register=no --keep-unit \
		--private-network --volatile=yes --link-journal=no --machine="mandelq-test-$$" \
		-D / --overlay-ro="/usr:$DEST/usr:/usr" --bind="$OUT:/out" "$@" </dev/null
}

# why_not: the reason why no container can be had; nothing when one can.
why_not() {
	if [ "$(id -u)" != 0 ]; then
		echo "not root"
	elif ! command -v systemd-nspawn >/dev/null; then
		echo "no systemd-nspawn"
	elif systemd-detect-virt --quiet --chroot; then
		echo "inside a chroot"
	elif ! contain /bin/true >"$OUT/probe" 2>&1; then
		echo "systemd-nspawn fails here: $(tail -n 1 "$OUT/probe")"
	fi
}

setup_file() {
	export DEST=$BATS_FILE_TMPDIR/dest OUT=$BATS_FILE_TMPDIR/out WHY_NOT
	mkdir "$OUT"
	make -C "$MQ_BUILD" install DESTDIR="$DEST" >"$OUT/install" 2>&1 || { tail -n 20 "$OUT/install"; return 1; }
	if [ -d "$DEST/lib" ]; then
		mkdir -p "$DEST/usr/lib"
		cp -a "$DEST/lib/." "$DEST/usr/lib/"
	fi
	WHY_NOT=$(why_not)
	[ -z "$WHY_NOT" ] || return 0
	cp "$BATS_TEST_DIRNAME/inside.sh" "$OUT/"
	cat >"$DEST/usr/lib/systemd/system/mandelq-test.service" <<-UNIT
		[Unit]
		After=multi-user.target
		SuccessAction=poweroff-force
		FailureAction=poweroff-force
		[Service]
		Type=oneshot
		ExecStart=/bin/bash /out/inside.sh
		StandardOutput=file:/out/log
		StandardError=file:/out/log
		[Install]
		WantedBy=default.target
	UNIT
	# systemd-firstboot would wait for somebody to answer it.
	contain --boot systemd.mask=systemd-firstboot.service systemd.wants=mandelq-test.service \
		>"$OUT/console" 2>&1 || true
}

# part NAME: inside.sh said that it went well.
part() {
	[ -z "$WHY_NOT" ] || skip "$WHY_NOT"
	grep -qx "ok $1" "$OUT/results" && return
	if [ -s "$OUT/log" ]; then
		awk -v part="--- $1" '/^--- /{ show = $0 == part || $0 == "--- journal" } show' "$OUT/log"
	else
		echo "the container did not come up:"
		tail -n 40 "$OUT/console"
	fi
	return 1
}

@test "the service starts, with a socket for its group and a state directory for itself" {
	part starts
}

@test "a member of the group renders a job" {
	part member
}

@test "who is not in the group is refused" {
	part stranger
}

@test "killed by SIGKILL it comes back and the job is resumed" {
	part sigkill
}

@test "a worker that misses its watchdog is ended, comes back and the job is resumed" {
	part watchdog
}

@test "the journal has fields for what a line is about" {
	part journal_fields
}

@test "a stop drains, and the next start goes on with the job" {
	part drains
}

@test "with the drop-in of mandelqd(8) it serves other machines" {
	part remote
}

@test "a wrong configuration fails the start once, and is not tried again" {
	part wrong_configuration
}
