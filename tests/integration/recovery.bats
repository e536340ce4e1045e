#!/usr/bin/env bats
# Promises 2, 3, 5 and 7: killed, stopped and out of memory, and yet the same file.
load helper

# No temporary file and no tile is left of jobs that are done.
tidy() {
	local left
	left=$(find "$MANDELQ_STATE_DIR" \( -name '*.tmp*' -o -name '*.mqt' \) | head -n 3)
	[ -z "$left" ] || { echo "left behind: $left"; return 1; }
}

@test "a second worker on the same state directory is refused, the first goes on" {
	start_worker
	first=$WORKER
	refuses_to_start "$MANDELQ_STATE_DIR"
	still_runs "$first"
	[ "$(submit_and_wait "${SMALL[@]}")" = 1 ]
}

@test "a job is kept from the moment that submit has printed its id" {
	start_worker
	mq submit "${SMALL[@]}" --name=kept
	kill_worker
	start_worker
	[ "$(field 1 .name)" = kept ]
	mq wait --timeout=60 1
	[ "$(mq submit "${SMALL[@]}")" = 2 ]
}

@test "killed in the middle of a job: the file is that of an uninterrupted one" {
	undisturbed "${LONG[@]}"
	start_worker
	mq submit "${LONG[@]}"
	until_true 60 tiles_done_at_least 1 1
	kill_worker
	start_worker
	[ "$(field 1 .tiles_done)" -ge 1 ]
	mq wait --timeout=80 1
	[ "$(field 1 .output.sha256)" = "$expected" ]
	[ "$(field 1 .error)" = null ]
	mq fetch 1 --counts -o c.npy
	tidy
}

@test "killed at each step of writing a tile" {
	job=(--size=1024x2048 --view=-0.512,0.512,-1.024,1.024 --iterations=50 --palette=gray --keep-counts)
	undisturbed "${job[@]}"
	for step in tile-write tile-fsync tile-rename tile-dirsync; do
		export MANDELQ_STATE_DIR=$ROOT/$step
		MANDELQ_FAILPOINTS=$step:2:kill start_worker
		mq submit "${job[@]}" --request-id="$step"
		until_true 20 ended "$WORKER"
		wait "$WORKER" 2>/dev/null || [ $? = 137 ]
		start_worker
		mq wait --timeout=60 1
		[ "$(field 1 .output.sha256)" = "$expected" ]
		tidy
		stop_worker
	done
}

@test "a tile that was damaged on disk is rendered again" {
	undisturbed "${LONG[@]}"
	start_worker
	mq submit "${LONG[@]}"
	until_true 60 tiles_done_at_least 1 1
	kill_worker
	tile=$(find "$MANDELQ_STATE_DIR/work/1" -name '*.mqt' | head -n 1)
	"$PYTHON" -c "
import sys
f = open(sys.argv[1], 'r+b'); f.seek(-100, 2); b = f.read(1); f.seek(-100, 2); f.write(bytes([b[0] ^ 1]))" "$tile"
	start_worker
	mq wait --timeout=80 1
	[ "$(field 1 .output.sha256)" = "$expected" ]
}

@test "SIGTERM ends the worker within 10 s, and the job goes on afterwards" {
	start_worker
	mq submit "${ENDLESS[@]}"
	mq submit "${SMALL[@]}"
	until_true 10 state_is 1 running
	stop_worker
	start_worker
	mq cancel 1
	mq wait --timeout=60 2
}

@test "out of device memory halves the tile, and the file is the same" {
	# Sixteen tiles of 2.2 MiB; the first request is for 4 MiB a buffer, the second for 2.
	job=(--size=6000 --view=-2,0,-1.25,1.25 --iterations=100 --palette=gray)
	undisturbed "${job[@]}"
	MANDELQ_FAILPOINTS=cpu-reserve:1:oom start_worker --device-memory=8M
	submit_and_wait "${job[@]}"
	[ "$(field 1 .tiles_split)" -ge 1 ]
	[ "$(field 1 .tiles_total)" -ge 17 ]
	[ "$(field 1 .output.sha256)" = "$expected" ]
}

@test "a full disk while a tile is written does not end the job" {
	undisturbed "${SMALL[@]}"
	MANDELQ_FAILPOINTS=tile-write:1:enospc start_worker
	mq submit "${SMALL[@]}"
	mq wait --timeout=60 1
	[ "$(field 1 .output.sha256)" = "$expected" ]
}

@test "a socket file left behind does not keep the worker from starting" {
	start_worker
	kill_worker
	[ -S "$MANDELQ_STATE_DIR/mandelqd.sock" ]
	start_worker
	mq status
}

@test "a plain file where the socket belongs is not removed" {
	mkdir -m 700 "$MANDELQ_STATE_DIR"
	echo mine >"$MANDELQ_STATE_DIR/mandelqd.sock"
	refuses_to_start mandelqd.sock
	[ "$(cat "$MANDELQ_STATE_DIR/mandelqd.sock")" = mine ]
}

@test "a database of a newer version is refused and left alone" {
	start_worker
	mq submit "${SMALL[@]}"
	stop_worker
	sqlite3 "$MANDELQ_STATE_DIR/mandelq.db" 'PRAGMA user_version=999' >/dev/null
	before=$(sha "$MANDELQ_STATE_DIR/mandelq.db")
	refuses_to_start mandelq.db
	[ "$(sha "$MANDELQ_STATE_DIR/mandelq.db")" = "$before" ]
}
