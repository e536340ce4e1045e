# Common to the integration tests: real programs, each test with a worker and a state directory of its
# own. The folder is short and directly in /tmp because a socket's path has at most 107 bytes.
#
# MQ_BUILD is where the programs were built (with --enable-failpoints), build/check if not given.
# Every wait is bounded, and no worker outlives its test.
MQ_TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
MQ_BUILD=${MQ_BUILD:-$MQ_TOP/build/check}
PATH=$MQ_BUILD:$PATH
PYTHON=/usr/bin/python3
export PYTHONDONTWRITEBYTECODE=1 # nothing is left among the sources
unset PYTHONUNBUFFERED # nor hidden that a test leaves something unwritten
REFERENCE=$BATS_TEST_DIRNAME/reference.py

# The whole set, quickly; a picture with a bit of everything.
SMALL=(--size=300x200 --view=-2.25,0.75,-1,1 --iterations=500)
# Between the cardioid and the disc left of it a pixel takes pi/im steps, and no exact shortcut applies.
# Here 314159 each, in eight tiles, more than a worker has in flight: nothing behind it in the queue
# starts, and it does not end by itself within a test.
ENDLESS=(--size=1024x8192 --view=-0.75000000015,-0.75000000005,0.0000099996,0.0000100004
	--iterations=1000000 --palette=gray --keep-counts)
# About 6280 steps a pixel, in four tiles of one strip: some seconds of work.
LONG=(--size=1024x4096 --view=-0.75000015,-0.75000005,0.0004998,0.0005002
	--iterations=20000 --palette=gray --keep-counts)

setup() {
	ROOT=$(mktemp -d /tmp/mqXXXXXX)
	export HOME=$ROOT/home MANDELQ_STATE_DIR=$ROOT/s
	unset MANDELQ_ENDPOINT MANDELQ_CPU_ISA MANDELQ_FAILPOINTS XDG_STATE_HOME XDG_RUNTIME_DIR
	LOG=$ROOT/mandelqd.log
	WORKER=
	mkdir "$HOME" "$ROOT/w"
	cd "$ROOT/w"
	if declare -F test_setup >/dev/null; then test_setup; fi
}

teardown() {
	local pid
	[ -z "$BATS_TEST_COMPLETED" ] && [ -s "$LOG" ] && { echo "--- the worker said:"; tail -n 30 "$LOG"; }
	# scripts/coverage needs workers that end by themselves.
	for pid in $(workers); do
		[ -z "${MQ_GENTLE:-}" ] || kill "$pid" 2>/dev/null || true
		[ -z "${MQ_GENTLE:-}" ] || until_true 10 ended "$pid" || true
		kill -9 "$pid" 2>/dev/null || true
	done
	for pid in $(jobs -p); do
		kill "$pid" 2>/dev/null || true
	done
	wait 2>/dev/null || true
	cd /
	! mountpoint -q "$ROOT/s" || umount -l "$ROOT/s"
	rm -rf "$ROOT"
}

# The ids of this test's workers: those that have its folder in their environment.
workers() {
	local pid
	for pid in $(pgrep -x mandelqd); do
		if tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -q "=$ROOT/"; then
			echo "$pid"
		fi
	done
}

# until_true SECONDS COMMAND...: repeats the command until it succeeds.
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || { echo "not within its time: $*" >&2; return 1; }
		sleep 0.05
	done
}

still_runs() {
	kill -0 "$1" 2>/dev/null
}

ended() {
	! still_runs "$1"
}

# Variables for one worker alone stand before the call: MANDELQ_CPU_ISA=scalar start_worker.
start_worker() {
	# bats waits for whoever holds its descriptors
	mandelqd --device=cpu --threads=2 "$@" 2>>"$LOG" >/dev/null </dev/null 3>&- 4>&- &
	WORKER=$!
	until_true 20 worker_serves_or_ended
	mq status >/dev/null
}

worker_serves_or_ended() {
	ended "$WORKER" || mq status
}

# Ends the worker as a service manager does; fails when it takes more than 10 s.
stop_worker() {
	kill -TERM "$WORKER"
	until_true 10 ended "$WORKER"
	wait "$WORKER"
}

kill_worker() {
	kill -9 "$WORKER"
	wait "$WORKER" 2>/dev/null || true
}

mq() {
	timeout 90 mandelq "$@"
}

# submit_and_wait OPTION...: prints the id of the job when it is done; fails when it does not end so.
submit_and_wait() {
	local id
	id=$(mq submit "$@" 2>/dev/null) || return
	mq wait --timeout=80 "$id" >/dev/null 2>&1 || return
	echo "$id"
}

# refuses_to_start TEXT ARGUMENT...: the worker ends by itself, with an error that has TEXT.
refuses_to_start() {
	local text=$1
	shift
	run timeout 20 mandelqd --device=cpu "$@"
	case $status in
	0 | 12? | 13? | 14?) echo "exit $status: $output"; return 1 ;;
	esac
	[[ $output == *"$text"* ]] || { echo "no '$text' in: $output"; return 1; }
}

# field ID FILTER: one value of a job's row.
field() {
	mq status --json "$1" | jq -r ".[0] | $2"
}

tiles_done_at_least() {
	[ "$(field "$1" .tiles_done)" -ge "$2" ]
}

state_is() {
	[ "$(field "$1" .state)" = "$2" ]
}

sha() {
	sha256sum "$1" | cut -d' ' -f1
}

# expect CODE COMMAND...: runs it and checks its exit code; $output has both streams.
expect() {
	local code=$1
	shift
	run "$@"
	[ "$status" = "$code" ] || { echo "exit $status instead of $code: $*"; echo "$output"; return 1; }
}

# refused CODE TEXT COMMAND...: as expect, and nothing on standard output, one line with TEXT on
# standard error.
refused() {
	local code=$1 text=$2 got=0 lines
	shift 2
	"$@" >"$ROOT/out" 2>"$ROOT/err" </dev/null || got=$?
	lines=$(wc -l <"$ROOT/err")
	if [ "$got" != "$code" ] || [ -s "$ROOT/out" ] || [ "$lines" != 1 ] || ! grep -qF -e "$text" "$ROOT/err"; then
		echo "exit $got instead of $code, $lines lines (one with '$text' expected): $(cut -c1-200 <<<"$*")"
		head -c 600 "$ROOT/out" "$ROOT/err"
		return 1
	fi
}

# python CODE ARGUMENT...: numpy as np, Image without its limit, load(PNG) to an array.
python() {
	local code=$1
	shift
	"$PYTHON" -c "
import sys
import numpy as np
from PIL import Image
Image.MAX_IMAGE_PIXELS = None
sys.path.insert(0, '$BATS_TEST_DIRNAME')
load = lambda path: np.asarray(Image.open(path))
argv = sys.argv[1:]
$code" "$@"
}

# The file that a worker gives which nothing happens to.
undisturbed() {
	local keep=$MANDELQ_STATE_DIR
	export MANDELQ_STATE_DIR=$ROOT/undisturbed
	start_worker
	submit_and_wait "$@" >/dev/null
	expected=$(field 1 .output.sha256)
	stop_worker
	export MANDELQ_STATE_DIR=$keep
}
