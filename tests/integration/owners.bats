#!/usr/bin/env bats
# Whose job it is, what one may have, how long it stays; the worker's settings and copies of its database.
load helper

TINY=(--size=64 --iterations=50)

# as UID COMMAND...: as another user, who may reach the socket. The build may lie where only root looks.
as() {
	local uid=$1
	shift
	chmod 711 "$ROOT" "$MANDELQ_STATE_DIR"
	[ -e "$ROOT/bin/mandelq" ] || install -D -m 755 "$(command -v mandelq)" "$ROOT/bin/mandelq"
	chmod 666 "$MANDELQ_STATE_DIR/mandelqd.sock"
	chmod 777 "$ROOT/w"
	setpriv --reuid="$uid" --regid="$uid" --clear-groups timeout 60 "$ROOT/bin/mandelq" "$@"
}

need_root() {
	[ "$(id -u)" = 0 ] || skip "needs root, to be several users"
}

@test "another's job can be seen and fetched, not changed" {
	need_root
	start_worker
	[ "$(as 1001 submit "${TINY[@]}")" = 1 ]
	mq wait --timeout=20 1
	mq submit "${ENDLESS[@]}"
	as 1001 submit "${ENDLESS[@]}"
	[ "$(field 1 .owner) $(field 2 .owner)" = "1001 0" ]
	for command in cancel pause resume retry remove; do
		expect 8 as 1002 $command 3
		[[ $output == *"somebody else"* ]]
		expect 8 as 1001 $command 2
	done
	expect 8 as 1001 priority 2 5
	expect 8 as 1001 pause --all
	expect 8 as 1001 resume --all
	[ "$(field 2 .state) $(field 3 .state)" = "running queued" ]
	as 1002 fetch 1 -o theirs.png
	[ "$(as 1001 status --mine --json | jq -c '[.[].id]')" = "[1,3]" ]
	[ "$(as 1002 status --mine --json)" = "[]" ]
	# clean takes one's own; root may do everything
	sleep 0.1
	[ "$(as 1002 clean --older-than=0 --force --json)" = "[]" ]
	[ "$(as 1001 clean --older-than=0 --json | jq -c '[.[].id]')" = "[1]" ]
	as 1001 pause 3
	mq resume 3
	mq cancel 3
}

@test "request ids are each user's own" {
	need_root
	start_worker
	[ "$(as 1001 submit "${TINY[@]}" --request-id=a)" = 1 ]
	[ "$(as 1002 submit "${TINY[@]}" --request-id=a)" = 2 ]
	[ "$(as 1001 submit "${TINY[@]}" --request-id=a 2>/dev/null)" = 1 ]
}

@test "--max-jobs and --max-bytes limit each user" {
	need_root
	start_worker --max-jobs=2 --max-bytes=1K
	mq pause --all
	as 1001 submit "${TINY[@]}" --request-id=first
	as 1001 submit "${TINY[@]}"
	expect 1 as 1001 submit "${TINY[@]}"
	[[ $output == *--max-jobs* ]]
	[ "$(as 1001 submit "${TINY[@]}" --request-id=first 2>/dev/null)" = 1 ]
	[ "$(as 1002 submit "${TINY[@]}")" = 3 ]
	mq resume --all
	mq wait --timeout=20
	expect 1 as 1001 submit "${TINY[@]}"
	[[ $output == *--max-bytes* ]]
	as 1001 remove --force 1 2
	as 1001 submit "${TINY[@]}"
	refuses_to_start --max-jobs --max-jobs=0
}

@test "retry gets around no limit" {
	start_worker
	mq pause --all
	for _ in 1 2; do
		first=$(mq submit "${TINY[@]}")
		mq submit "${TINY[@]}" --after="$first"
		mq cancel "$first"
	done
	[ "$(mq status --json | jq -r '[.[].state] | join(" ")')" = "cancelled failed cancelled failed" ]
	stop_worker
	sqlite3 "$MANDELQ_STATE_DIR/mandelq.db" "UPDATE jobs SET after = NULL" >/dev/null # each could be tried again
	start_worker --max-jobs=2 --max-bytes=1K
	mq submit "${TINY[@]}"
	mq submit "${TINY[@]}"
	refused 1 --max-jobs mq retry 2
	[ "$(field 2 .state)" = failed ]
	mq cancel 5
	mq retry 2
	# repeated, it is no other job
	mq retry 2
	refused 1 --max-jobs mq retry 4
	refused 1 "cancelled" mq retry 5
	mq resume --all
	mq wait --timeout=20 2 6
	refused 1 --max-bytes mq retry 4
	mq remove --force 2 6
	mq retry 4
	mq wait --timeout=20 4
}

@test "--keep-for removes what was fetched, and nothing else" {
	start_worker --keep-for=1s
	for _ in 1 2 3; do submit_and_wait "${TINY[@]}" >/dev/null; done
	mq fetch 2 -o p.png
	mq submit "${ENDLESS[@]}"
	mq submit "${TINY[@]}"
	mq cancel 5
	stop_worker
	sleep 1.2
	start_worker --keep-for=1s
	until_true 10 gone 2
	until_true 10 gone 5
	[ "$(mq status --json | jq -c '[.[].id]')" = "[1,3,4]" ]
	[ ! -e "$MANDELQ_STATE_DIR/pictures/2" ]
	[ -e "$MANDELQ_STATE_DIR/pictures/1/picture.png" ]
	refuses_to_start --keep-for --keep-for=soon
	refuses_to_start "with its unit" --keep-for=7
}

gone() {
	! mq status "$1"
}

@test "--keep-size removes the oldest that were fetched" {
	start_worker
	for _ in 1 2 3 4; do submit_and_wait "${SMALL[@]}" >/dev/null; done
	for id in 2 3 4; do mq fetch $id -o $id.png; done
	one=$(mq status --json 1 | jq '.[0].output.bytes')
	stop_worker
	# room for two pictures with their previews: 2 and 3 go, 1 nobody has
	start_worker --keep-size=$((one * 5))
	until_true 10 gone 3
	[ "$(mq status --json | jq -c '[.[].id]')" = "[1,4]" ]
}

@test "--print-config says what holds and where it came from" {
	cat >c.conf <<-'END'
		# a comment
		threads = 3
		keep-for = 7d
		device = cpu
	END
	MANDELQ_ENDPOINT=ipc://$ROOT/e.sock mandelqd --config=c.conf --threads=2 --keep-size=5G --print-config >out
	grep -qx "state-dir = $MANDELQ_STATE_DIR ; MANDELQ_STATE_DIR" out
	grep -qx "endpoint = ipc://$ROOT/e.sock ; MANDELQ_ENDPOINT" out
	grep -qx "threads = 2 ; command line" out
	grep -qx "keep-for = 7d ; c.conf:3" out
	grep -qx "device = cpu ; c.conf:4" out
	grep -qx "keep-size = 5G ; command line" out
	grep -qx "idle-release = 60 ; default" out
	grep -qx "; max-jobs is not set" out
	[ ! -e "$MANDELQ_STATE_DIR" ]
	# it is a configuration file, that gives the same again
	mandelqd --config=out --print-config | sed 's/ ; .*//' >again
	sed 's/ ; .*//' out | diff - again
	refuses_to_start "keep-for" --keep-for=7y --print-config
}

@test "--version says what it was built with" {
	for program in mandelq mandelqd; do
		$program --version >out
		[ "$(head -n 1 out)" = "$program 0.1.0" ]
		grep -qE '^built with:.* libzmq-[0-9.]+' out
	done
}

@test "--backup copies the database of a running and of a stopped worker" {
	refuses_to_start "holds no state" --backup=b.db
	start_worker
	submit_and_wait "${SMALL[@]}" >/dev/null
	mq submit "${ENDLESS[@]}"
	[ "$(mandelqd --backup=b.db)" = "$MANDELQ_STATE_DIR/mandelq.db is copied to b.db" ]
	[ "$(stat -c %a b.db)" = 600 ]
	[ "$(sqlite3 b.db 'PRAGMA integrity_check; SELECT group_concat(state) FROM jobs')" = "$(printf 'ok\ndone,running')" ]
	kill_worker
	[ "$(mandelqd --backup=b.db)" = "$MANDELQ_STATE_DIR/mandelq.db is copied to b.db" ]
	[ "$(sqlite3 b.db 'SELECT count(*) FROM jobs')" = 2 ]
	[ "$(ls -A "$MANDELQ_STATE_DIR/work")" = 2 ]
	# going back to a copy
	cp b.db "$MANDELQ_STATE_DIR/mandelq.db"
	rm -f "$MANDELQ_STATE_DIR/mandelq.db-wal"
	start_worker
	[ "$(field 1 .state)" = done ]
	mq cancel 2
	run mandelqd --backup="$ROOT/none/b.db"
	[ "$status" = 1 ]
	[ -z "$(compgen -G ".mandelqd-*")" ]
}

@test "a copy is for who runs the worker" {
	need_root
	start_worker
	chmod 711 "$ROOT" "$MANDELQ_STATE_DIR"
	chmod 666 "$MANDELQ_STATE_DIR/mandelqd.sock" "$MANDELQ_STATE_DIR/lock"
	chmod 777 "$ROOT/w"
	run setpriv --reuid=1001 --regid=1001 --clear-groups mandelqd --backup=b.db
	[ "$status" = 1 ]
	[[ $output == *"own user"* ]]
	[ ! -e b.db ]
}

@test "downloads that nobody ends keep nobody else from one" {
	start_worker
	submit_and_wait "${SMALL[@]}" >/dev/null
	chmod 711 "$ROOT" "$MANDELQ_STATE_DIR"
	WORKER=$WORKER timeout 60 "$PYTHON" -c "
import sys
sys.path.insert(0, '$BATS_TEST_DIRNAME')
from hostile import *
begun = time.time()
handles = [call('open', id=1, what='picture')['result']['handle'] for n in range(64)]
# after 5 s the first of them is taken for forgotten
if time.time() - begun < 4:
    assert call('open', id=1, what='picture')['status'] == 'busy'
os._exit(0)"
	# another user is served at once, and the first one when the others have been forgotten
	as 1001 fetch 1 -o theirs.png
	pngcheck -q theirs.png
	until_true 10 mq fetch 1 -o ours.png
}
