#!/usr/bin/env bats
# Waiting, cancelling, and the exit codes of mandelq(1).
load helper

@test "exit 0 and 1: wait tells done from cancelled" {
	start_worker
	mq submit "${SMALL[@]}"
	expect 0 mq wait 1
	expect 0 mq wait
	mq submit "${ENDLESS[@]}"
	until_true 10 state_is 2 running
	expect 0 mq cancel 2
	[ "$(field 2 .state)" = cancelled ]
	[ "$(field 2 '.finished | type')" = string ]
	expect 1 mq wait 2
	expect 1 mq wait 1 2
}

@test "a cancelled job leaves the worker free at once, and stays cancelled" {
	start_worker
	mq submit "${ENDLESS[@]}"
	mq submit "${SMALL[@]}"
	until_true 10 state_is 1 running
	mq cancel 1
	expect 0 mq wait --timeout=10 2
	expect 0 mq cancel 1
	expect 1 mq cancel 2
	[[ $output == *done* ]]
	[ "$(field 2 .state)" = done ]
}

@test "a cancelled or failed job gives its request id up" {
	start_worker
	mq submit "${ENDLESS[@]}" --request-id=again
	mq cancel 1
	[ "$(mq submit "${SMALL[@]}" --request-id=again 2>/dev/null)" = 2 ]
}

@test "a queued job can be cancelled before it starts" {
	start_worker
	mq submit "${ENDLESS[@]}"
	mq submit "${SMALL[@]}"
	mq cancel 2
	mq status --json 2 | jq -e '.[0] | .state == "cancelled" and .started == null'
}

@test "exit 3: no such job" {
	start_worker
	expect 3 mq status 17
	[[ $output == *17* ]]
	expect 3 mq wait 17
	expect 3 mq cancel 17
	expect 3 mq fetch 17 -o x.png
}

@test "exit 4: no worker; the error lists what was tried and what to type" {
	unset MANDELQ_STATE_DIR
	[ ! -e /run/mandelq/mandelqd.sock ] || skip "the system's worker runs here"
	SECONDS=0
	refused 4 "$HOME/.local/state/mandelq/mandelqd.sock" mq status
	grep -qF /run/mandelq/mandelqd.sock "$ROOT/err"
	grep -qE 'start one: mandelqd' "$ROOT/err"
	export MANDELQ_STATE_DIR=$ROOT/s
	refused 4 "$ROOT/s/mandelqd.sock" mq submit "${SMALL[@]}"
	refused 4 nobody.sock mq status --endpoint="ipc://$ROOT/nobody.sock"
	[ "$SECONDS" -le 18 ]
}

@test "exit 4: a worker that does not answer is given up after 5 s" {
	start_worker
	kill -STOP "$WORKER"
	SECONDS=0
	expect 4 mq status
	[ "$SECONDS" -ge 4 ]
	[ "$SECONDS" -le 8 ]
	kill -CONT "$WORKER"
	expect 0 mq status
}

@test "the worker is found by --endpoint and by MANDELQ_ENDPOINT" {
	start_worker
	socket=ipc://$MANDELQ_STATE_DIR/mandelqd.sock
	export MANDELQ_STATE_DIR=$ROOT/elsewhere
	expect 0 mq status --endpoint="$socket"
	MANDELQ_ENDPOINT=$socket expect 0 mq status
	# the option is asked first
	MANDELQ_ENDPOINT=$socket expect 4 mq status --endpoint="ipc://$ROOT/nobody.sock"
}

@test "exit 6: the time given to wait ran out" {
	start_worker
	mq submit "${ENDLESS[@]}"
	SECONDS=0
	expect 6 mq wait --timeout=0.5
	expect 6 mq wait --timeout=1 1
	[ "$SECONDS" -le 5 ]
	[ "$(field 1 .state)" = running ]
}

# within MS CODE COMMAND...: as expect, and it takes no longer.
within() {
	local ms=$1 begun took
	shift
	begun=$(date +%s%3N)
	expect "$@"
	took=$(($(date +%s%3N) - begun))
	[ "$took" -le "$ms" ] || { echo "$took ms instead of at most $ms"; return 1; }
}

@test "exit 6: the time given bounds every request to a worker that stands still" {
	start_worker
	[ "$(submit_and_wait "${SMALL[@]}")" = 1 ]
	mq submit "${ENDLESS[@]}" 2>/dev/null
	until_true 10 state_is 2 running
	# a moment is left in which a worker that is well answers
	within 2000 0 mq wait --timeout=0 1
	within 2000 6 mq wait --timeout=0 2
	[[ $output == *"job 2 is running"* ]]
	# it stops while somebody waits, and has told events before
	mandelq wait --timeout=3 2 >out 2>&1 3>&- 4>&- &
	begun=$(date +%s%3N)
	sleep 1
	kill -STOP "$WORKER"
	rc=0
	wait $! || rc=$?
	[ "$rc" = 6 ]
	[ $(($(date +%s%3N) - begun)) -le 4800 ]
	for ids in "" 2; do
		# shellcheck disable=SC2086
		within 3800 6 mq wait --timeout=2 $ids
		[[ $output == *"the worker at "*" does not answer" ]]
	done
	within 3500 6 mq submit "${SMALL[@]}" --wait --timeout=1
	within 3500 6 mq submit --like=1 --wait --timeout=1
	within 3500 7 mq render "${SMALL[@]}" --stop-after=1 -o x.png
	[[ $output == *"stopped by --stop-after"* ]]
	# longer than a request lasts: it is tried again until then
	begun=$(date +%s%3N)
	within 7500 6 mq wait --timeout=6.5 2
	[ $(($(date +%s%3N) - begun)) -ge 6400 ]
	kill -CONT "$WORKER"
	expect 0 mq status
}

@test "wait outlives a restart of the worker" {
	start_worker
	mq submit "${LONG[@]}"
	mq wait 1 3>&- 4>&- &
	waiter=$!
	until_true 20 state_is 1 running
	stop_worker
	sleep 1
	still_runs "$waiter"
	start_worker
	wait "$waiter"
	[ "$(field 1 .state)" = done ]
}

@test "the state directory and the socket are closed to others" {
	start_worker
	[ "$(stat -c %a "$MANDELQ_STATE_DIR")" = 700 ]
	[ -S "$MANDELQ_STATE_DIR/mandelqd.sock" ]
	[[ $(stat -c %a "$MANDELQ_STATE_DIR/mandelqd.sock") == 6?0 ]]
}
