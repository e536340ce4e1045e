#!/usr/bin/env bats
# Steering the queue: pause, resume, retry, priority, jobs after others, removal; lists and what they say.
load helper

TINY=(--size=64 --iterations=50)

# The ids that status lists, in its order.
ids() {
	mq status --json "$@" | jq -r '[.[].id] | join(" ")'
}

# Makes a stopped worker's job 1 a failed one: what was not rendered has failed.
fail_job_1() {
	sqlite3 "$MANDELQ_STATE_DIR/mandelq.db" "
		UPDATE tiles SET state = 'failed', suspect = 0 WHERE job = 1 AND state = 'pending';
		UPDATE jobs SET state = 'failed', error = 'as a test', finished_ms = 1 WHERE id = 1;" >/dev/null
}

@test "status filters by state, name and number" {
	start_worker
	for name in alpha beta alphabet; do submit_and_wait "${TINY[@]}" --name=$name >/dev/null; done
	mq pause --all
	mq submit "${TINY[@]}" --name=gamma
	mq submit "${TINY[@]}"
	mq cancel 5
	[ "$(ids)" = "1 2 3 4 5" ]
	[ "$(ids --state=done)" = "1 2 3" ]
	[ "$(ids --state=queued,cancelled)" = "4 5" ]
	[ "$(ids --name=alpha)" = "1 3" ]
	[ "$(ids --limit=2)" = "4 5" ]
	[ "$(ids --limit=2 --state=done)" = "2 3" ]
	[ "$(ids --limit=1 --name=alpha)" = 3 ]
	[ "$(ids --mine)" = "1 2 3 4 5" ]
	[ "$(ids --state=failed)" = "" ]
	refused 2 "--state=finished" mq status --state=finished
	refused 2 "not both" mq status --mine 1
	mq status --state=failed 2>err
	grep -q 'no jobs' err
}

@test "a list of more than one page, whole and filtered" {
	start_worker
	mq pause --all
	for i in $(seq 450); do echo "{\"width\":8,\"height\":8,\"iterations\":$i,\"name\":\"n$((i % 3))\"}"; done |
		mq submit - --quiet >out
	[ "$(wc -l <out)" = 450 ]
	[ "$(mq status --json | jq length)" = 450 ]
	[ "$(mq status --json --name=n1 | jq length)" = 150 ]
	[ "$(mq status --json --limit=300 | jq -r '"\(length) \(.[0].id) \(.[-1].id)"')" = "300 151 450" ]
	[ "$(mq status --json --limit=100 --name=n1 | jq -r '"\(length) \(.[0].id) \(.[-1].id)"')" = "100 151 448" ]
}

@test "a paused job begins nothing, and goes on where it was" {
	start_worker
	mq submit "${LONG[@]}"
	until_true 30 tiles_done_at_least 1 1
	mq pause 1
	[ "$(field 1 .state)" = paused ]
	[ "$(field 1 .reason)" = "by hand" ]
	# others have the worker for themselves
	submit_and_wait "${SMALL[@]}" >/dev/null
	until_true 20 nothing_in_flight
	before=$(field 1 .tiles_done)
	sleep 0.5
	[ "$(field 1 .tiles_done)" = "$before" ]
	stop_worker
	start_worker
	[ "$(field 1 .state)" = paused ]
	mq resume 1
	mq wait --timeout=80 1
	expect 1 mq pause 1
	expect 1 mq resume 2
}

@test "a pause while the picture is put together loses no work" {
	start_worker
	WORKER=$WORKER timeout 90 "$PYTHON" -c "
import sys
sys.path.insert(0, '$BATS_TEST_DIRNAME')
from hostile import *

def put_together(verb):
    n = call('submit', job={'width': 10000, 'height': 10000, 'iterations': 30, 'palette': 'gray'})['result']['id']
    call('submit', job={'width': 16, 'height': 16}, after=n)
    while True:
        state = call('status', ids=[n])['result']['jobs'][0]['state']
        assert state in ('queued', 'running', 'assembling'), state
        if state == 'assembling':
            break
        time.sleep(0.002)
    print(n, call(verb, id=n)['result']['state'], flush=True)
put_together('pause')
put_together('cancel')
os._exit(0)" >out
	[ "$(cat out)" = "$(printf '1 paused\n3 cancelled')" ]
	mq wait --timeout=60 2
	[ "$(field 1 .state)" = done ]
	[ "$(field 1 .reason)" = null ]
	mq fetch 1 -o p.png
	until_true 20 nothing_in_flight
	sleep 0.5
	[ "$(field 3 .state)" = cancelled ]
	[ "$(field 4 .state)" = failed ]
	[ ! -e "$MANDELQ_STATE_DIR/pictures/3" ]
}

nothing_in_flight() {
	mq metrics | grep -q '^mandelq_device_busy{device="cpu"} 0'
}

@test "the whole queue stays paused over a restart" {
	start_worker
	mq pause --all
	mq submit "${TINY[@]}"
	kill_worker
	start_worker
	sleep 0.5
	[ "$(field 1 .state)" = queued ]
	[ "$(field 1 .reason)" = "the queue is paused" ]
	mq status 2>&1 | grep -q 'mandelq resume --all'
	mq resume --all
	mq wait --timeout=20 1
	[ "$(field 1 .reason)" = null ]
}

@test "retry renders only what is missing, and the file is the same" {
	start_worker
	submit_and_wait "${LONG[@]}" >/dev/null
	expected=$(field 1 .output.sha256)
	stop_worker
	export MANDELQ_STATE_DIR=$ROOT/t
	start_worker
	mq submit "${LONG[@]}"
	until_true 60 tiles_done_at_least 1 1
	stop_worker
	fail_job_1
	start_worker
	[ "$(field 1 .state)" = failed ]
	done_before=$(field 1 .tiles_done)
	[ "$(find "$MANDELQ_STATE_DIR/work/1" -name '*.mqt' | wc -l)" -ge "$done_before" ]
	mq retry 1
	mq retry 1
	mq wait --timeout=80 1
	[ "$(field 1 .output.sha256)" = "$expected" ]
	[ "$(mq info 1 --json | jq "[.attempts[] | select(.outcome == \"done\")] | length")" = 4 ]
	[ ! -e "$MANDELQ_STATE_DIR/work/1" ]
	expect 1 mq retry 1
	[[ $output == *done* ]]
}

@test "compute time adds up over restarts" {
	start_worker
	mq submit "${LONG[@]}"
	until_true 60 tiles_done_at_least 1 1
	kill_worker
	start_worker
	first=$(field 1 .compute_seconds)
	mq wait --timeout=80 1
	mq status --json 1 | jq -e --argjson first "$first" '$first > 0 and .[0].compute_seconds > 1.5 * $first'
}

@test "the time left that status tells is about right" {
	start_worker
	mq submit --size=1024x16384 --view=-0.75000015,-0.75000005,0.0004998,0.0005006 --iterations=20000 \
		--palette=gray --keep-counts
	until_true 80 tiles_done_at_least 1 4
	row=$(mq status --json 1)
	begin=$EPOCHREALTIME
	mq wait --timeout=80 1
	end=$EPOCHREALTIME
	# a third to three times, and a second for the assembly: the machine is shared
	jq -en --argjson row "$row" --argjson took "$("$PYTHON" -c "print($end - $begin)")" '
		$row[0].eta_seconds as $eta | [$eta, $took] | debug | $eta > 0 and
		$took < 3 * $eta + 2 and $eta < 3 * $took + 1'
}

@test "priority changes whose turn it is" {
	start_worker
	mq pause --all
	for _ in 1 2 3; do mq submit "${TINY[@]}" >/dev/null; done
	mq priority 3 10
	mq priority 1 -5
	[ "$(field 3 .priority)" = 10 ]
	mq resume --all
	mq wait --timeout=20
	[ "$(mq info 3 --json | jq '.attempts[0].id')" = 1 ]
	[ "$(mq info 1 --json | jq '.attempts[0].id')" = 3 ]
	expect 1 mq priority 1 7
	refused 2 "priority high: a whole number" mq priority 1 high
}

@test "a job waits for another, and fails with it" {
	start_worker
	mq pause --all
	mq submit "${TINY[@]}"
	mq submit "${TINY[@]}" --after=1
	mq submit "${TINY[@]}" --after=2 --name=third
	[ "$(field 2 .state)" = waiting ]
	[ "$(field 2 .reason)" = "for job 1" ]
	[ "$(field 3 .after)" = 2 ]
	mq resume --all
	mq wait --timeout=20 3
	[ "$(mq info 3 --json | jq '.attempts[0].id')" = 3 ]
	mq submit "${ENDLESS[@]}"
	mq submit "${TINY[@]}" --after=4
	mq submit "${TINY[@]}" --after=5
	kill_worker
	start_worker
	[ "$(field 5 .state)" = waiting ]
	mq cancel 4
	[ "$(field 5 .state)" = failed ]
	[[ $(field 5 .error) == *"job 4"*cancelled* ]]
	[[ $(field 6 .error) == *"job 5"*failed* ]]
	# nothing but a done one lets it run, also when that one is gone
	refused 1 "job 4, which is cancelled: submit it again without --after" mq retry 5
	mq remove 4
	refused 1 "job 4, which it waited for, was cancelled, and has been removed" mq retry 5
	refused 1 "job 5, which is failed: retry that first" mq retry 6
	state_is 5 failed
	mq submit --like=5 --wait --quiet
	mq submit "${ENDLESS[@]}"
	mq cancel 8
	refused 3 "no job 99" mq submit "${TINY[@]}" --after=99
	refused 1 "job 8 is cancelled" mq submit "${TINY[@]}" --after=8
	refused 2 "--after" mq submit "${TINY[@]}" --after=soon
}

@test "remove forgets ended jobs and their files, but no picture that nobody has" {
	start_worker
	for _ in 1 2 3; do submit_and_wait "${TINY[@]}" >/dev/null; done
	mq submit "${ENDLESS[@]}"
	expect 1 mq remove 4
	[[ $output == *"cancel it first"* ]]
	refused 1 "nobody has fetched" mq remove 1
	mq fetch 1 --preview -o small.png
	mq fetch 1 --region=0,0,5,5 -o part.png
	expect 1 mq remove 1
	mq fetch 1 -o p.png
	[ "$(field 1 '.fetched | type')" = string ]
	mq remove 1
	mq remove --force 2
	expect 3 mq status 1
	mq cancel 4
	mq remove 4
	until_true 10 test ! -e "$MANDELQ_STATE_DIR/work/4"
	[ "$(ls "$MANDELQ_STATE_DIR/pictures")" = 3 ]
	[ "$(ids)" = 3 ]
	# numbers are not used again
	[ "$(mq submit "${TINY[@]}")" = 5 ]
	kill_worker
	start_worker
	[ "$(ls "$MANDELQ_STATE_DIR/pictures")" = "$(printf '3\n5')" ] || mq wait --timeout=20 5
}

@test "files of a removal that was cut short go at the next start" {
	start_worker
	for _ in 1 2 3; do submit_and_wait "${TINY[@]}" >/dev/null; done
	mq remove 2 3 --force
	stop_worker
	mkdir "$MANDELQ_STATE_DIR/pictures/2" "$MANDELQ_STATE_DIR/work/3"
	touch "$MANDELQ_STATE_DIR/pictures/2/picture.png"
	start_worker
	until_true 5 test ! -e "$MANDELQ_STATE_DIR/pictures/2"
	until_true 5 test ! -e "$MANDELQ_STATE_DIR/work/3"
	[ "$(ls "$MANDELQ_STATE_DIR/pictures")" = 1 ]
}

@test "clean removes by age" {
	start_worker
	for _ in 1 2; do submit_and_wait "${TINY[@]}" >/dev/null; done
	mq submit "${ENDLESS[@]}"
	mq submit "${TINY[@]}"
	mq cancel 4
	mq fetch 2 -o p.png
	[ "$(mq clean --older-than=1h --json | jq length)" = 0 ]
	sleep 0.1
	[ "$(mq clean --older-than=0s --json | jq -c '[.[].id]')" = "[2,4]" ]
	[ "$(ids)" = "1 3" ]
	[ "$(mq clean --older-than=0 --force --json | jq -c .)" = '[{"id":1,"removed":true}]' ]
	[ "$(field 3 .state)" = running ]
	refused 2 "--older-than" mq clean
	refused 2 "7d" mq clean --older-than=soon
	refused 2 "--older-than=7: an age with its unit" mq clean --older-than=7
}

@test "many jobs at once, from files and from standard input" {
	start_worker
	cat >jobs.json <<-'END'
		[ { "width": 32, "height": 16, "iterations": 20, "name": "one" },
		  { "width": 16, "height": 32, "iterations": 20, "priority": 3, "request_id": "two" } ]
	END
	[ "$(mq submit jobs.json)" = "$(printf '1\n2')" ]
	[ "$(field 1 .name)" = one ]
	[ "$(field 2 .priority)" = 3 ]
	# the one with a request id is the same job, the other is new
	[ "$(mq submit jobs.json 2>/dev/null)" = "$(printf '3\n2')" ]
	printf '{"width":8,"height":8,"iterations":5}\n\n{"width":8,"height":8,"iterations":6,"after":3}' |
		mq submit - --palette=ocean --name=both --json --wait >out
	jq -e 'map(.id) == [4, 5] and (map(.existing) | any | not)' out
	[ "$(field 5 .settings.palette)" = ocean ]
	[ "$(field 5 .name)" = both ]
	[ "$(field 5 .state)" = done ]
	# what is wrong is found before anything is submitted
	printf '{"width":8,"height":8}\n{"width":8,"heigth":8}\n' >bad.json
	refused 2 "bad.json, job 2" mq submit bad.json
	printf '{"width":8,\n"height":}' >bad.json
	refused 2 "bad.json:2" mq submit bad.json
	printf '[1]' >bad.json
	refused 2 "object" mq submit bad.json
	: >bad.json
	refused 2 "no job" mq submit bad.json
	refused 2 "cannot read" mq submit none.json
	[ "$(ids)" = "1 2 3 4 5" ]
}

@test "what is wrong with any job of a file is found before the first is queued" {
	start_worker
	local long label good='{"width":8,"height":8,"iterations":5'
	long=$(printf 'x%.0s' {1..201})
	for label in '"priority":1000001' '"priority":-1000001' '"priority":1.5' '"priority":"1"' \
		"\"name\":\"$long\"" '"name":"a\u0001b"' '"name":7' "\"request_id\":\"$long\"" \
		'"request_id":"a\u0001b"' '"request_id":7' '"after":0' '"after":-1' '"after":"1"' \
		'"after":9007199254740993' '"width":0' '"width":16777217' '"zoom":"x"'; do
		printf '%s}\n%s,%s}\n' "$good" "$good" "$label" >bad.json
		sed -i 's/"width":8,\(.*"width"\)/\1/' bad.json
		refused 2 "bad.json, job 2: " mq submit bad.json
	done
	# one id for two jobs, also in two files
	printf '%s,"request_id":"r"}\n' "$good" >one.json
	printf '%s,"request_id":"r","name":"other"}\n' "$good" >two.json
	refused 2 "two.json, job 1: \"request_id\" r" mq submit one.json two.json
	[ -z "$(ids)" ]
	# the ends of the ranges are within
	printf '%s,"priority":%s,"name":"%s","request_id":"%s"}\n' "$good" 1000000 "${long%x}" "${long%x}" \
		"$good" -1000000 "" "" >good.json
	[ "$(mq submit good.json)" = "$(printf '1\n2')" ]
	[ "$(mq submit one.json one.json 2>/dev/null)" = "$(printf '3\n3')" ]
	# an empty request id is none: a random one stands in for it
	[ "$(field 2 '.request_id | length > 0')" = true ]
	[ "$(field 2 .name)" = "" ]
}

@test "info tells settings, tiles, attempts and times" {
	start_worker
	submit_and_wait "${SMALL[@]}" --name=poster --keep-counts >/dev/null
	mq info 1 >out
	for word in poster done 'priority' '300 x 200' attempts sha256 settings; do grep -q "$word" out; done
	mq info 1 --log >log
	head -n 1 log | grep -qE '^20[0-9-]+T[0-9:.]+Z submitted$'
	grep -qE 'attempt 1 at strips 0 to [0-9]+ on cpu' log
	tail -n 1 log | grep -q done
	sort -c -s -k1,1 log
	# independently: the counts say how many pixels reached the limit
	mq fetch 1 --counts -o c.npy
	mq info 1 --json >info.json
	python '
import json
row, counts = json.load(open("info.json")), np.load("c.npy")
assert abs(row["inside"] - (counts == 500).mean()) < 1e-12, row["inside"]
assert 0.1 < row["inside"] < 0.5 and row["one_colour"] is False
assert sum(t["strips"] for t in row["tiles"] if t["state"] == "done") > 0
assert row["attempts"][0]["outcome"] == "done" and row["attempts"][0]["device"] == "cpu"'
	expect 3 mq info 7
}

@test "hints where people give up" {
	start_worker
	# a view in Seahorse Valley with far too few iterations
	mq submit --size=100 --center=-0.7453,0.1127 --zoom=300 --iterations=60 --wait 2>err
	grep -q 'reached the limit' err
	mq status | grep -q 'of the pixels reached the limit'
	mq submit --size=50 --center=-0.2,0 --zoom=50 --wait 2>err
	grep -q 'one colour: every pixel' err
	mq submit --size=50 --center=3,3 --zoom=50 --wait --palette=gray 2>err
	grep -q 'one colour: the view' err
	mq submit "${SMALL[@]}" --wait 2>err
	run grep -E 'one colour|reached' err
	[ "$status" = 1 ]
	[ "$(field 3 .one_colour) $(field 3 .inside)" = "true 0" ]
	# a view that lies in the set for the most part: more iterations than auto gives change little
	mq submit --size=50 --center=-0.2,0 --zoom=4 --wait 2>err
	jq -e '.inside > 0.6 and .one_colour == false' <(mq info 5 --json)
	run grep reached err
	[ "$status" = 1 ]
	mq submit --size=50 --center=-0.2,0 --zoom=4 --wait --iterations=999 2>err
	grep -q 'of the pixels reached the limit' err
}

@test "a job has a time from its first tile on, and none before" {
	start_worker
	mq submit --size=4000 --center=-0.2,0 --zoom=4 --iterations=4000000000 >/dev/null
	mq submit "${TINY[@]}" >/dev/null
	until_true 10 state_is 1 running
	until_true 10 time_of 1 '[1-9]*'
	time_of 2 -
	mq cancel 1
	until_true 10 state_is 2 done
	time_of 2 '[0-9]*'
}

time_of() {
	# shellcheck disable=SC2053
	[[ $(mq status "$1" | awk 'NR == 2 { print $7 }') == $2 ]]
}

@test "watch prints a line a change, and ends with its jobs" {
	start_worker
	mq pause --all
	mq submit "${TINY[@]}"
	mq watch 1 >out 3>&- 4>&- &
	watcher=$!
	until_true 10 grep -q queued out
	mq resume --all
	wait "$watcher"
	[ "$(tail -n 1 out)" = "job 1 done" ]
	[ "$(sort out | uniq -d | wc -l)" = 0 ]
	# without ids a signal ends it, in good order
	mq submit "${ENDLESS[@]}"
	mandelq watch >out2 3>&- 4>&- &
	watcher=$!
	until_true 10 grep -q 'job 2 running' out2
	mq cancel 2
	until_true 10 grep -q 'job 2 cancelled' out2
	kill -INT "$watcher" || kill -TERM "$watcher"
	kill -TERM "$watcher" 2>/dev/null || true
	wait "$watcher"
}

@test "watch says that there is nothing to see" {
	start_worker
	watched() {
		timeout --preserve-status -s INT 2 mandelq watch "$@" >out 2>err 3>&- 4>&-
	}
	watched
	[ ! -s out ]
	[ "$(cat err)" = "mandelq: no job is under way" ]
	mq pause --all
	watched
	[ "$(cat err)" = "mandelq: no job is under way; the queue is paused" ]
	watched --state=failed
	grep -q 'no job that the options let through' err
	watched --quiet
	[ ! -s err ]
	mq submit "${TINY[@]}" >/dev/null
	watched
	[ "$(cat out)" = 'job 1 queued: the queue is paused' ]
	[ ! -s err ]
	mq cancel 1
	# on a terminal in the table, and with a newline behind it for the shell's prompt
	script -qc "timeout --foreground -s INT 2 mandelq watch" /dev/null >tty </dev/null
	tr -d '\r' <tty | grep -qx 'no job is under way'
	[ "$(tail -n 2 <(tr -d '\r' <tty) | head -n 1)" = "the queue is paused" ]
	[ -z "$(tail -n 1 tty | tr -d '\r')" ]
}

@test "devices and metrics tell what goes on" {
	start_worker
	submit_and_wait "${SMALL[@]}" >/dev/null
	mq devices --json | jq -e '.[0] | .name == "cpu" and .memory_total > .memory_free and .memory_free > 0 and
		.tile_bytes > 0 and .pixels_per_second > 0 and .busy == false'
	mq devices | grep -q '^cpu *idle'
	mq metrics >m
	grep -qx 'mandelq_jobs{state="done"} 1' m
	grep -qx 'mandelq_pixels_total 60000' m
	grep -qx 'mandelq_attempts_total{outcome="done"} 1' m
	grep -qx "mandelq_pictures_bytes $(cat "$MANDELQ_STATE_DIR"/pictures/1/*.png | wc -c)" m
	grep -qx 'mandelq_watchdog_ends_total 0' m
	grep -q '^mandelq_state_free_bytes [1-9]' m
	now=$(date +%s)
	awk -v now="$now" '$1 == "process_start_time_seconds" && $2 > now - 60 && $2 <= now + 1 { found = 1 }
		END { exit !found }' m
	# every line is a comment or a sample, every sample is of a family that is described
	python '
import re
families = set()
for line in open("m"):
    if line.startswith("# TYPE "):
        families.add(line.split()[2])
    elif not line.startswith("#"):
        m = re.fullmatch(r"([a-z_:]+)(\{([a-z]+=\"[^\"]*\",?)*\})? [0-9.e+-]+\n", line)
        assert m, line
        name = re.sub("_(bucket|sum|count)$", "", m[1]) if m[1].startswith("mandelq_commit") else m[1]
        assert name in families, line
assert len(families) > 10'
}

# samples FILE: each sample's name and labels.
samples() {
	grep -v '^#' "$1" | sed 's/ [^ ]*$//' | sort
}

@test "every sample is there from the start, once, and has its meaning in mandelqd(8)" {
	start_worker
	mq metrics >m
	grep -qx 'mandelq_device_seconds_total{device="cpu"} 0' m
	submit_and_wait "${SMALL[@]}" >/dev/null
	mq metrics >m2
	samples m >before
	samples m2 | diff before -
	grep -q '^mandelq_device_seconds_total{device="cpu"} 0*[.0]*[1-9]' m2
	grep -q '^mandelq_device_memory_held_bytes{device="cpu"} [1-9]' m2
	sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' m | sort >families
	sed -n '/^\.Sh METRICS/,/^\.Sh [^M]/s/^\.It Li \([a-z_ ,]*\)$/\1/p' "$MQ_TOP/man/mandelqd.8" |
		tr -d ' ' | tr , '\n' | sort >told
	diff families told
	stop_worker
	echo "a line of the watchdog" >"$MANDELQ_STATE_DIR/stuck.log"
	# one device that was asked for twice is one
	start_worker --device=cpu
	mq metrics >m3
	samples m3 | diff before -
	grep -qx 'mandelq_watchdog_ends_total 1' m3
}

@test "tiles that are halved because a worker died of them are counted" {
	start_worker
	mq pause --all
	mq submit --size=4096x16384 --view=3,4,3,7 --iterations=1 --palette=gray
	stop_worker
	# the second one has the suspect alone in flight
	for run in 1 2; do
		MANDELQ_FAILPOINTS=cpu-chunk:1:kill mandelqd --device=cpu --threads=2 2>>"$LOG" 3>&- 4>&- &
		WORKER=$!
		until_true 20 worker_serves_or_ended
		[ "$run" = 2 ] || timeout 5 mandelq resume --all || true
		until_true 20 ended "$WORKER"
	done
	start_worker
	mq metrics | grep -q '^mandelq_splits_total{reason="suspect"} [1-9]'
}

@test "--quiet leaves errors only, and colours are for terminals" {
	start_worker
	mq submit "${TINY[@]}" --wait --quiet >out 2>err
	[ "$(cat out)" = 1 ]
	[ ! -s err ]
	mq status --quiet 2>err
	[ ! -s err ]
	mq submit "${ENDLESS[@]}" >/dev/null
	mq cancel --quiet 2 2>err
	[ ! -s err ]
	expect 3 mq cancel --quiet 77
	[[ $output == *77* ]]
	export TERM=xterm
	escape=$(printf '\033')
	script -qc "mandelq status" /dev/null >tty </dev/null
	grep -q "$escape\[32mdone" tty
	NO_COLOR=1 script -qc "mandelq status" /dev/null >tty </dev/null
	run grep -q "$escape" tty
	[ "$status" = 1 ]
	run grep -q "$escape" <(mq status)
	[ "$status" = 1 ]
}

@test "steering commands answer in JSON" {
	start_worker
	mq pause --all --json | jq -e '. == {"paused": true}'
	mq submit "${TINY[@]}" --json | jq -e '.[0] | .id == 1 and .existing == false and .job.width == 64'
	mq pause 1 --json | jq -e '. == [{"id": 1, "state": "paused", "priority": 0}]'
	mq priority 1 4 --json | jq -e '.[0].priority == 4'
	mq resume 1 --json | jq -e '.[0].state == "queued"'
	mq cancel 1 --json | jq -e '.[0].state == "cancelled"'
	mq remove 1 --json | jq -e '. == [{"id": 1, "removed": true}]'
	mq wait --json | jq -e '. == []'
}
