#!/usr/bin/env bats
# Two workers, stale files, damaged state: what is wrong is refused or set aside, and nothing else suffers.
load helper

MANY=(--size=1024x4096 --view=-0.75000015,-0.75000005,0.0004998,0.0005002
	--iterations=20000 --palette=gray)

# sql STATEMENT: on the database of a stopped worker.
sql() {
	sqlite3 "$MANDELQ_STATE_DIR/mandelq.db" "PRAGMA ignore_check_constraints=ON; $1"
}

# flip FILE OFFSET: changes one byte, counted from the end if negative.
flip() {
	"$PYTHON" -c '
import sys
f = open(sys.argv[1], "r+b"); n = int(sys.argv[2])
f.seek(n, 2 if n < 0 else 0); b = f.read(1)
f.seek(-1, 1); f.write(bytes([b[0] ^ 1]))' "$1" "$2"
}

# What a directory holds, to the byte, but for the lock's process id.
contents() {
	(cd "$MANDELQ_STATE_DIR" && find . -type f ! -name lock -print0 | sort -z | xargs -0 sha256sum)
	(cd "$MANDELQ_STATE_DIR" && find . ! -type f ! -type s | sort)
}

@test "a second worker on the same endpoint is refused, and the first goes on" {
	start_worker
	first=$WORKER
	endpoint=ipc://$MANDELQ_STATE_DIR/mandelqd.sock
	refuses_to_start "a worker answers at" --state-dir="$ROOT/other" --endpoint="$endpoint"
	refuses_to_start "in use by another mandelqd (process $first)" --endpoint="ipc://$ROOT/other.sock"
	still_runs "$first"
	[ "$(submit_and_wait "${SMALL[@]}")" = 1 ]
	[ ! -e "$ROOT/other.sock" ]
	stop_worker
	# The refused one has given its own directory back.
	start_worker --state-dir="$ROOT/other" --endpoint="$endpoint"
	stop_worker
}

@test "stale locks, sockets and temporary files do not keep a worker from starting" {
	undisturbed "${MANY[@]}"
	start_worker
	mq submit "${MANY[@]}"
	mq submit "${MANY[@]}"
	mq cancel 2
	mq remove 2
	until_true 60 tiles_done_at_least 1 1
	kill_worker
	[ -S "$MANDELQ_STATE_DIR/mandelqd.sock" ]
	# Left by workers long gone: a process id of something else, files half written, folders of no job.
	echo 1 >"$MANDELQ_STATE_DIR/lock"
	echo half >"$MANDELQ_STATE_DIR/work/1/.tile-0-1-99.mqt.tmp"
	mkdir -p "$MANDELQ_STATE_DIR/work/2" "$MANDELQ_STATE_DIR/pictures/1"
	echo half >"$MANDELQ_STATE_DIR/work/2/tile-0-1-1.mqt"
	echo half >"$MANDELQ_STATE_DIR/pictures/1/.picture.png.tmp"
	echo half >"$MANDELQ_STATE_DIR/pictures/1/picture.png"
	start_worker
	mq wait --timeout=80 1
	[ "$(field 1 .output.sha256)" = "$expected" ]
	[ "$(sha "$MANDELQ_STATE_DIR/pictures/1/picture.png")" = "$expected" ]
	[ -z "$(find "$MANDELQ_STATE_DIR" -name '*.tmp' -o -name '*.mqt')" ]
}

@test "what is in the way of the socket is not removed" {
	mkdir -m 700 "$MANDELQ_STATE_DIR"
	for kind in file folder link pipe; do
		rm -rf "$ROOT/there"
		case $kind in
		file) echo mine >"$ROOT/there" ;;
		folder) mkdir "$ROOT/there" ;;
		link) echo mine >"$ROOT/target" && ln -s target "$ROOT/there" ;;
		pipe) mkfifo "$ROOT/there" ;;
		esac
		before=$(stat -c '%i %f %s' "$ROOT/there")
		refuses_to_start "left alone" --endpoint="ipc://$ROOT/there"
		[ "$(stat -c '%i %f %s' "$ROOT/there")" = "$before" ]
	done
	[ "$(cat "$ROOT/target")" = mine ]
}

@test "tile files that are cut, flipped, empty or missing are rendered again" {
	undisturbed "${MANY[@]}"
	start_worker
	mq submit "${MANY[@]}"
	# in order, so that there are still some to come when the worker dies
	until_true 60 tiles_done_at_least 1 2
	kill_worker
	mapfile -t tiles < <(find "$MANDELQ_STATE_DIR/work/1" -name '*.mqt')
	[ "${#tiles[@]}" -ge 2 ]
	flip "${tiles[0]}" -100
	truncate -s -1 "${tiles[1]}"
	[ -z "${tiles[2]:-}" ] || rm "${tiles[2]}"
	run mandelqd --check
	[ "$status" = 1 ]
	for tile in "${tiles[@]:0:2}"; do
		[[ $output == *"work/1/${tile##*/}"*"rendered again"* ]]
	done
	start_worker
	mq wait --timeout=80 1
	[ "$(field 1 .output.sha256)" = "$expected" ]
	grep -q "damaged tiles are rendered again" "$LOG"
	[ -z "$(find "$MANDELQ_STATE_DIR" -name '*.mqt')" ]
}

# Five jobs in the queue of a worker that is stopped: 1 is done, the rest wait.
five_jobs() {
	start_worker
	submit_and_wait "${SMALL[@]}" >/dev/null
	mq submit "${ENDLESS[@]}"
	for i in 3 4 5; do mq submit "${SMALL[@]}" --name="job $i"; done
	stop_worker
	sql "UPDATE jobs SET state = 'cancelled' WHERE id = 2" >/dev/null
}

@test "a malformed job is set aside and reported, and the others go on" {
	five_jobs
	good=$MANDELQ_STATE_DIR
	n=0
	while read -r change; do
		n=$((n + 1))
		export MANDELQ_STATE_DIR=$ROOT/d$n
		cp -a "$good" "$MANDELQ_STATE_DIR"
		sql "$change" >/dev/null || { echo "sqlite3 refuses: $change"; return 1; }
		run mandelqd --check
		[ "$status" = 1 ] && [[ $output == *"job 3"* ]] || { echo "$change: $output"; return 1; }
		start_worker
		mq wait --timeout=60 5
		mq wait --timeout=60 4
		until_true 5 state_is 3 failed || { echo "$change: $(field 3 .state)"; return 1; }
		[ "$(field 3 .error)" != null ]
		grep -q "job 3.* set aside" "$LOG" || { echo "not in the log: $change"; return 1; }
		: >"$LOG"
		[ "$(mq status --json | jq -r '[.[].state] | join(" ")')" = "done cancelled failed done done" ] ||
			{ echo "$change"; mq status; return 1; }
		mq status >/dev/null
		stop_worker
		# What was set aside is no finding any more.
		mandelqd --check || { echo "after: $change"; return 1; }
	done <<-'END'
		UPDATE jobs SET spec = 'garbage' WHERE id = 3
		UPDATE jobs SET spec = '[1]' WHERE id = 3
		UPDATE jobs SET spec = '{"width":1e300}' WHERE id = 3
		UPDATE jobs SET spec = '' WHERE id = 3
		UPDATE jobs SET spec = replace(spec, '"height":200', '"height":100000') WHERE id = 3
		UPDATE jobs SET width = 4000000000 WHERE id = 3
		UPDATE jobs SET width = 301 WHERE id = 3
		UPDATE jobs SET state = 'nonsense' WHERE id = 3
		UPDATE jobs SET strips_total = 5 WHERE id = 3
		UPDATE jobs SET strips_done = -1 WHERE id = 3
		UPDATE tiles SET strip_first = 16777216 WHERE job = 3
		UPDATE tiles SET state = 'running' WHERE job = 3
		UPDATE tiles SET state = 'failed' WHERE job = 3
		UPDATE tiles SET strip_count = strip_count + 1 WHERE job = 3
		UPDATE jobs SET strips_done = 1 WHERE id = 3
		DELETE FROM tiles WHERE job = 3
		INSERT INTO tiles (job, strip_first, strip_count) VALUES (3, 0, 1), (3, 0, 9e18), (3, 0, 9e18)
	END
}

@test "a tile that lies outside its picture fails its job, not the worker" {
	five_jobs
	sql "UPDATE tiles SET strip_first = 40 WHERE job = 3" >/dev/null
	start_worker
	mq wait --timeout=60 5
	state_is 3 failed
	[[ $(field 3 .error) == *damaged* ]]
	[ "$(grep -c serves "$LOG")" = 2 ]
}

@test "a name that is not UTF-8 does not hide the other jobs" {
	five_jobs
	sql "UPDATE jobs SET name = CAST(x'ff61' AS TEXT) WHERE id = 3" >/dev/null
	start_worker
	mq wait --timeout=60 3
	[ "$(mq status --json | jq length)" = 5 ]
	[ "$(field 3 .name)" = '?a' ]
	mq status
}

@test "a database of another program, or none at all, is refused and stays as it was" {
	mkdir -m 700 "$MANDELQ_STATE_DIR"
	: >"$MANDELQ_STATE_DIR/lock" # a worker has been here
	db=$MANDELQ_STATE_DIR/mandelq.db
	for kind in text noise sqlite marked newer cut; do
		rm -f "$db"*
		case $kind in
		text) echo "dear diary" >"$db" ;;
		noise) head -c 100000 /dev/urandom >"$db" ;;
		sqlite) sqlite3 "$db" "CREATE TABLE mine (x); INSERT INTO mine VALUES (1)" ;;
		marked) sqlite3 "$db" "PRAGMA application_id=7; PRAGMA user_version=1; CREATE TABLE mine (x)" ;;
		newer)
			start_worker && stop_worker
			sqlite3 "$db" "PRAGMA user_version=999" ;;
		cut)
			rm -rf "$MANDELQ_STATE_DIR"
			start_worker
			submit_and_wait "${SMALL[@]}"
			stop_worker
			truncate -s 20000 "$db" ;;
		esac
		before=$(contents)
		refuses_to_start mandelq.db
		[ "$(contents)" = "$before" ] || { echo "$kind"; contents; return 1; }
		run mandelqd --check
		[ "$status" = 1 ] || { echo "$kind: $output"; return 1; }
		[[ $output == *"mandelq.db"* ]]
	done
}

@test "an empty file, and an empty database of no program, are new databases" {
	mkdir -m 700 "$MANDELQ_STATE_DIR"
	: >"$MANDELQ_STATE_DIR/mandelq.db"
	start_worker
	[ "$(submit_and_wait "${SMALL[@]}")" = 1 ]
	stop_worker
	rm "$MANDELQ_STATE_DIR/mandelq.db"*
	sqlite3 "$MANDELQ_STATE_DIR/mandelq.db" "VACUUM"
	start_worker
	expect 3 mq status 1
	# the picture of the job before it stays, and its id
	[ "$(submit_and_wait "${SMALL[@]}")" = 2 ]
}

@test "a picture that is missing or damaged is not handed out as if it were whole" {
	start_worker
	for id in 1 2 3 4; do submit_and_wait "${SMALL[@]}" --keep-counts >/dev/null; done
	rm "$MANDELQ_STATE_DIR/pictures/1/picture.png"
	flip "$MANDELQ_STATE_DIR/pictures/2/picture.png" -1000
	truncate -s -100 "$MANDELQ_STATE_DIR/pictures/3/picture.png"
	flip "$MANDELQ_STATE_DIR/pictures/3/counts.mqc" -1000
	for id in 1 2 3; do
		run mq fetch "$id" -o p.png
		[ "$status" != 0 ] && [[ $output == *"job $id"* ]] && [ ! -e p.png ] || { echo "$id: $output"; return 1; }
	done
	run mq fetch 2 --region=0,0,300,200 -o p.png
	[ "$status" != 0 ] && [ ! -e p.png ]
	run mq fetch 3 --smooth -o c.npy
	[ "$status" != 0 ] && [ ! -e c.npy ]
	mq fetch 4 -o p.png
	# what the error tells to do helps
	run mq fetch 2 -o q.png
	[ "$(mq $(grep -o 'submit --like=.*' <<<"$output") --wait 2>err)" = 5 ]
	mq fetch 5 -o q.png
	cmp p.png q.png
	mq remove 5
	stop_worker
	before=$(contents)
	run mandelqd --check
	[ "$status" = 1 ]
	for id in 1 2 3; do [[ $output == *"job $id: pictures/$id/picture.png"* ]]; done
	[[ $output != *"job 4"* ]]
	[[ ${lines[-1]} == "4 findings, 0 leftovers; looked at 4 jobs, 4 pictures, 0 tiles" ]]
	[ "$(contents)" = "$before" ]
}

@test "settings of a finished job that speak of another picture end no worker" {
	start_worker
	submit_and_wait --size=64x64 --iterations=50 --keep-counts >/dev/null
	stop_worker
	sql "UPDATE jobs SET spec = replace(replace(spec, '\"width\":64', '\"width\":4096'), '\"height\":64', '\"height\":1')" >/dev/null
	start_worker
	for what in "--counts --region=0,0,64,64" "--region=0,0,64,64" --counts; do
		run mq fetch 1 $what -o c.npy
		[ "$status" = 1 ] && [[ $output == *"its row is of 64 x 64"* ]] && [ ! -e c.npy ] || { echo "$what: $status $output"; return 1; }
	done
	still_runs "$WORKER"
}

@test "a pipe in the place of a picture stops neither the worker nor --check" {
	start_worker
	submit_and_wait "${SMALL[@]}" --keep-counts >/dev/null
	for name in picture.png preview.png counts.mqc; do
		rm "$MANDELQ_STATE_DIR/pictures/1/$name"
		mkfifo "$MANDELQ_STATE_DIR/pictures/1/$name"
	done
	for what in "" --preview --counts --region=1,1,9,9; do
		run timeout 20 mandelq fetch 1 $what -o p.png
		[ "$status" = 1 ] && [ ! -e p.png ] || { echo "$what: $status $output"; return 1; }
	done
	still_runs "$WORKER"
	stop_worker
	run timeout 20 mandelqd --check
	[ "$status" = 1 ]
}

@test "--check finds nothing in a sound directory, changes nothing, and waits for no worker" {
	run mandelqd --check
	[ "$status" = 2 ]
	[ ! -e "$MANDELQ_STATE_DIR" ]
	start_worker
	run mandelqd --check
	[ "$status" = 2 ]
	[[ $output == *"in use by mandelqd (process $WORKER)"* ]]
	submit_and_wait "${SMALL[@]}" >/dev/null
	mq submit "${MANY[@]}"
	until_true 60 tiles_done_at_least 2 1
	kill_worker
	echo half >"$MANDELQ_STATE_DIR/work/2/.tile-3-1-9.mqt.tmp"
	before=$(contents)
	TMPDIR=$ROOT/w run mandelqd --check
	[ "$status" = 0 ]
	[[ $output == *"leftover: work/2/.tile-3-1-9.mqt.tmp"* ]]
	[[ ${lines[-1]} == "0 findings, "*" leftover"*"; looked at 2 jobs, 1 picture, "*" tile"* ]]
	[ "$(contents)" = "$before" ]
	[ -z "$(ls -A "$ROOT/w")" ]
	start_worker
	mq wait --timeout=80 2
}

@test "tiles that finish after their job was cancelled change nothing" {
	# Sixteen tiles of some 0.2 s each: those in flight finish before the device would give them up.
	start_worker
	mq submit --size=1024x16384 --view=-0.7500006,-0.7500002,0.0016,0.0048 --iterations=20000 --palette=gray
	until_true 60 tiles_done_at_least 1 2
	mq cancel 1
	done=$(field 1 .tiles_done)
	[ "$done" -lt 16 ]
	until_true 10 test ! -e "$MANDELQ_STATE_DIR/work/1"
	submit_and_wait "${SMALL[@]}" >/dev/null
	state_is 1 cancelled
	[ "$(field 1 .tiles_done)" = "$done" ]
	stop_worker
	[ ! -e "$MANDELQ_STATE_DIR/work/1" ] && [ ! -e "$MANDELQ_STATE_DIR/pictures/1" ]
	[ "$(sql "SELECT count(*) FROM tiles WHERE job = 1 AND state = 'done'")" = "$done" ]
	[ "$(sql "SELECT count(*) FROM attempts WHERE job = 1 AND outcome = 'dropped'")" -ge 1 ]
	[ "$(sql "SELECT count(*) FROM attempts WHERE job = 1 AND outcome NOT IN ('done', 'dropped')")" = 0 ]
	mandelqd --check
}

@test "a row that only shows its damage when it is read hides no other job" {
	five_jobs
	# 64 characters, as the check at start wants, and 128 bytes
	sql "UPDATE jobs SET output_sha256 = replace(hex(zeroblob(32)), '0', 'é') WHERE id IN (1, 3)" >/dev/null
	start_worker
	mq wait --timeout=60 5
	[ "$(mq status --json 2>err | jq -c '[.[].id]')" = "[2,4,5]" ]
	mq status 2>err
	grep -q "job 1: its row in the database is damaged" err
	grep -q "job 3.* set aside" "$LOG"
	expect 1 mq fetch 1 -o p.png
	run mandelqd --check
	[ "$status" = 2 ]
	stop_worker
	run mandelqd --check
	[ "$status" = 1 ]
	[[ $output == *"job 1"* ]]
}
