#!/usr/bin/env bats
# /etc/mandelq/mandelqd.conf is read by every worker of the machine: what it says of places is for the
# system's alone. Tests have an /etc of their own, in a mount namespace.
load helper

# Programs that see $ROOT/etc as /etc, before those of the build.
test_setup() {
	local options=-m program
	[ "$(id -u)" = 0 ] || options=-rm
	unshare $options true 2>/dev/null || skip "no mount namespace can be had"
	mkdir -p "$ROOT/bin" "$ROOT/etc/mandelq"
	cp -aL /etc/{passwd,group,nsswitch.conf,ld.so.cache} "$ROOT/etc/"
	for program in mandelq mandelqd; do
		printf '#!/bin/sh\nexec unshare %s sh -c '"'"'mount --bind %s /etc && exec "$@"'"'"' sh %s "$@"\n' \
			$options "$ROOT/etc" "$MQ_BUILD/$program" >"$ROOT/bin/$program"
		chmod +x "$ROOT/bin/$program"
	done
	PATH=$ROOT/bin:$PATH
	CONF=/etc/mandelq/mandelqd.conf
}

conf() {
	printf '%s\n' "$@" >"$ROOT/etc/mandelq/mandelqd.conf"
}

@test "a user's worker takes no place from the system's file, and all else" {
	conf "endpoint = tcp://*:5555" "state-dir = $ROOT/system" "threads = 1"
	unset MANDELQ_STATE_DIR
	mandelqd --print-config >out
	grep -qx "; state-dir = $ROOT/system ; $CONF:2, not for this worker" out
	grep -qx "state-dir = $HOME/.local/state/mandelq ; default" out
	grep -qx "; endpoint = tcp://\*:5555 ; $CONF:1, not for this worker" out
	grep -qx "endpoint = ipc://$HOME/.local/state/mandelq/mandelqd.sock ; default" out
	grep -qx "threads = 1 ; $CONF:3" out
	start_worker
	[ "$(submit_and_wait "${SMALL[@]}")" = 1 ]
	stop_worker
	[ ! -e "$ROOT/system" ]
	[ -e "$HOME/.local/state/mandelq/mandelq.db" ]
	# one that is made for a single picture is no system's worker either
	mq render "${SMALL[@]}" -o x.png
	# places by the environment and the command line hold, and take no blame
	MANDELQ_STATE_DIR=$ROOT/s MANDELQ_ENDPOINT=ipc://$ROOT/e.sock mandelqd --print-config >out
	grep -qx "state-dir = $ROOT/s ; MANDELQ_STATE_DIR" out
	grep -qx "endpoint = ipc://$ROOT/e.sock ; MANDELQ_ENDPOINT" out
	MANDELQ_ENDPOINT=nowhere refused 2 "mandelqd: --endpoint: nowhere" mandelqd
	mandelqd --endpoint="ipc://$ROOT/f.sock" --print-config | grep '^[^;]*endpoint' >out
	[ "$(cat out)" = "endpoint = ipc://$ROOT/f.sock ; command line" ]
	# the file holds whole for who names it
	mandelqd --config=$CONF --print-config >out
	grep -qx "endpoint = tcp://\*:5555 ; $CONF:1" out
	grep -qx "state-dir = $ROOT/system ; $CONF:2" out
	# and has no mistake for anybody
	conf "nosuch = 1"
	refused 2 "$CONF:1: unknown option nosuch" mandelqd
}

@test "the system's worker takes its places from the system's file" {
	conf "endpoint = tcp://127.0.0.1:5555"
	for given in STATE_DIRECTORY=/var/lib/mandelq STATE_DIRECTORY=/x:/var/lib/mandelq MANDELQ_STATE_DIR=/var/lib/mandelq; do
		env "$given" mandelqd --print-config | grep -qx "endpoint = tcp://127.0.0.1:5555 ; $CONF:1"
	done
	mandelqd --state-dir=/var/lib/mandelq --print-config | grep -qx "endpoint = tcp://127.0.0.1:5555 ; $CONF:1"
	STATE_DIRECTORY=/var/lib/other mandelqd --print-config | grep "^; endpoint"
	# it is served, wherever the unit's worker keeps its state
	export STATE_DIRECTORY=/var/lib/mandelq
	refused 2 "$CONF:1: --endpoint: tcp:// is served with CURVE keys only" mandelqd
	mandelqd keygen >/dev/null 2>&1
	conf "endpoint = tcp://127.0.0.1:0"
	start_worker
	grep -q "other machines are served at tcp://127.0.0.1:" "$LOG"
	stop_worker
}

@test "a place that cannot be used is blamed on the line of the file that names it" {
	echo mine >"$ROOT/file"
	long=$ROOT/$(printf '%090d' 0)
	while IFS='|' read -r line text; do
		printf '# one wrong\n%s\n' "$line" >bad.conf
		for what in "" --check --backup=b.db; do
			[[ $line == state-dir* ]] || [ -z "$what" ] || continue
			echo "$line: $what"
			run timeout 20 mandelqd --config=bad.conf $what
			[[ $status =~ ^[12]$ ]]
			[[ ${lines[-1]} == "mandelqd: bad.conf:2: "*$text* ]] || { echo "$output"; return 1; }
		done
	done <<-END
		state-dir = $ROOT/file/s|$ROOT/file
		state-dir = /proc/nowhere|/proc/nowhere
		endpoint = ipc://$ROOT/file|is no socket
		endpoint = ipc://$ROOT/nowhere/sock|cannot bind
		endpoint = tcp://192.0.2.1:0|mandelqd keygen
		device = cuda:999|there is no cuda:999
	END
	printf 'state-dir = %s\n' "$long" >bad.conf
	refused 2 "bad.conf:1: --state-dir: the socket's path" mandelqd --config=bad.conf
}

@test "one thing at a time, in place of serving" {
	while read -r first second; do
		refused 2 "do not go together" mandelqd $first $second
		[ -z "$(ls -A)" ]
	done <<-'END'
		--check --backup=b.db
		--backup=b.db --print-config
		--print-config --check
		keygen --check
		keygen --backup=b.db
	END
	refused 2 "--backup needs the name of a file" mandelqd --backup=
	[ ! -e "$MANDELQ_STATE_DIR" ]
}
