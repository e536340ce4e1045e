#!/usr/bin/env bats
# Promise 7: a worker in which something hangs ends by itself, is started again and finishes the job.
load helper

bats_require_minimum_version 1.5.0

# 31 million steps a pixel, in one strip: progress must be seen inside a tile.
ONE_STRIP=(--size=64x64 --view=-0.75000000015,-0.75000000005,0.00000009996,0.00000010004
	--iterations=100000000 --palette=gray)

# ends_stuck TEXT: the worker aborts, having said what stood still.
ends_stuck() {
	until_true 20 ended "$WORKER"
	run -134 wait "$WORKER"
	grep -q "error: .*$1.* made no progress" "$LOG"
}

# hang POINT TEXT OPTION...: hangs at the failpoint, ends, starts again, finishes.
hang() {
	local point=$1 text=$2 id
	shift 2
	MANDELQ_FAILPOINTS=$point:hang start_worker --stuck-timeout=1
	timeout 5 mandelq submit "$@" || [ $? = 124 ]
	ends_stuck "$text"
	[ "$(wc -l <"$MANDELQ_STATE_DIR/stuck.log")" = 1 ]
	start_worker --stuck-timeout=1
	mq wait --timeout=60 1
	[ "$(field 1 .output.sha256)" = "$expected" ]
	[ "$(grep -c "$MANDELQ_STATE_DIR/stuck.log: the watchdog has ended a worker here 1 times" "$LOG")" = 1 ]
	stop_worker
}

@test "a hanging device thread, encoder, disk or assembly ends the worker, and the job finishes" {
	undisturbed "${SMALL[@]}"
	while read -r point text; do
		export MANDELQ_STATE_DIR=$ROOT/${point%:*}
		hang "$point" "$text" "${SMALL[@]}"
	done <<-END
		cpu-reserve:1 cpu
		cpu-chunk:2 cpu
		strip-alloc:1 an encoder thread
		tile-fsync:1 an encoder thread
		picture-fsync:1 an assembly thread
	END
}

@test "a hanging main loop ends the worker" {
	undisturbed "${SMALL[@]}"
	# 1 is recovery's, 2 the submit's, whose answer never comes
	MANDELQ_FAILPOINTS=store-commit:3:hang start_worker --stuck-timeout=1
	mq submit "${SMALL[@]}"
	ends_stuck "the main loop"
	start_worker
	mq wait --timeout=60 1
	[ "$(field 1 .output.sha256)" = "$expected" ]
}

@test "what takes long and gets on is left alone" {
	for isa in scalar best; do
		export MANDELQ_STATE_DIR=$ROOT/$isa
		[ "$isa" = best ] || export MANDELQ_CPU_ISA=$isa
		start_worker --stuck-timeout=0.5
		mq submit "${ONE_STRIP[@]}"
		until_true 10 state_is 1 running
		sleep 3
		still_runs "$WORKER"
		state_is 1 running
		stop_worker
		unset MANDELQ_CPU_ISA
	done
}

@test "a worker that was stopped for longer than the set time goes on" {
	start_worker --stuck-timeout=1
	mq submit "${ENDLESS[@]}"
	until_true 10 state_is 1 running
	kill -STOP "$WORKER"
	sleep 3
	kill -CONT "$WORKER"
	sleep 0.5
	still_runs "$WORKER"
	state_is 1 running
}

@test "an idle worker's watchdog sleeps" {
	! grep -q __tsan_init "$MQ_BUILD/mandelqd" || skip "the thread sanitizer has a thread that does not sleep"
	start_worker --stuck-timeout=0.2 --idle-release=0
	submit_and_wait "${SMALL[@]}"
	sleep 1
	switches() { cat /proc/"$WORKER"/task/*/status | awk '/^voluntary/ { n += $2 } END { print n }'; }
	before=$(switches)
	sleep 2
	[ "$(switches)" = "$before" ]
}

@test "--stuck-timeout=0 never ends the worker" {
	MANDELQ_FAILPOINTS=cpu-chunk:1:hang start_worker --stuck-timeout=0
	mq submit "${SMALL[@]}"
	sleep 2
	still_runs "$WORKER"
}

# Writes what comes to the service manager's socket to a file, a line each.
notes() {
	"$PYTHON" -c '
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    with open(sys.argv[2], "a") as f: f.write(s.recv(4096).decode() + "\n")' "$ROOT/n" "$ROOT/notes" 3>&- 4>&- &
	until_true 5 test -S "$ROOT/n"
}

@test "the service manager is told that all is well, as long as it is" {
	ldd "$MQ_BUILD/mandelqd" | grep -q libsystemd || skip "built without systemd"
	notes
	export NOTIFY_SOCKET=$ROOT/n WATCHDOG_USEC=400000
	start_worker
	sleep 1.5
	[ "$(grep -c '^WATCHDOG=1' "$ROOT/notes")" -ge 4 ]
	grep -q '^READY=1' "$ROOT/notes"
	stop_worker
	MANDELQ_FAILPOINTS=store-commit:2:hang start_worker --stuck-timeout=60
	timeout 2 mandelq submit "${SMALL[@]}" || true
	: >"$ROOT/notes"
	sleep 1
	[ ! -s "$ROOT/notes" ]
	still_runs "$WORKER"
}
