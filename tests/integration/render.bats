#!/usr/bin/env bats
# render: one command from options to a file, with or without a worker.
load helper

no_worker_left() {
	[ -z "$(workers)" ]
}

@test "render starts a worker of its own and ends it" {
	expect 0 mq render "${SMALL[@]}" -o p.png
	pngcheck -q p.png
	[ "$(ls -A)" = p.png ]
	until_true 10 no_worker_left
	start_worker
	id=$(submit_and_wait "${SMALL[@]}")
	mq fetch "$id" -o q.png
	cmp p.png q.png
}

@test "render uses the worker that runs" {
	start_worker
	expect 0 mq render "${SMALL[@]}" -o p.png
	[ "$(workers)" = "$WORKER" ]
	[ "$(sha p.png)" = "$(field 1 .output.sha256)" ]
	mq render p.png -o q.png
	cmp p.png q.png
}

@test "render refuses an existing file before it renders" {
	echo mine >p.png
	SECONDS=0
	expect 1 mq render "${LONG[@]}" -o p.png
	[ "$SECONDS" -le 2 ]
	[ "$(cat p.png)" = mine ]
	expect 0 mq render "${SMALL[@]}" -o p.png --force
	pngcheck -q p.png
}

@test "render without a file, and of a bad job" {
	expect 2 mq render "${SMALL[@]}"
	expect 2 mq render --size=0 -o p.png
	[ ! -e p.png ]
	until_true 10 no_worker_left
}

@test "stopped by --stop-after it ends with 7, and continues when run again" {
	expect 7 mq render "${LONG[@]}" --stop-after=1 -o p.png
	[ ! -e p.png ]
	until_true 10 no_worker_left
	for _ in {1..40}; do
		run mq render "${LONG[@]}" --stop-after=3 -o p.png
		[ "$status" = 7 ] || break
	done
	[ "$status" = 0 ]
	[ "$(ls -A)" = p.png ]
	expect 0 mq render "${LONG[@]}" -o q.png
	cmp p.png q.png
}

@test "stopped by SIGTERM or SIGINT it ends with 7, and continues when run again" {
	for signal in TERM INT; do
		# A background job of a script ignores SIGINT: let Python start it.
		"$PYTHON" -c '
import signal, subprocess, sys, time
p = subprocess.Popen(["mandelq", "render"] + sys.argv[2:],
                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
time.sleep(1)
p.send_signal(getattr(signal, "SIG" + sys.argv[1]))
sys.exit(p.wait(timeout=20))' "$signal" "${LONG[@]}" -o p.png 3>&- 4>&- && status=0 || status=$?
		[ "$status" = 7 ]
		[ ! -e p.png ]
		until_true 10 no_worker_left
	done
	expect 0 mq render "${LONG[@]}" -o p.png
	pngcheck -q p.png
	[ "$(ls -A)" = p.png ]
}

@test "an unfinished picture is not thrown away for one with other settings" {
	expect 7 mq render "${LONG[@]}" --stop-after=1 -o p.png
	refused 1 "holds a picture with other settings" mq render "${SMALL[@]}" -o p.png
	refused 1 "rm -r $PWD/.p.png.mandelq" mq render "${SMALL[@]}" -o p.png --force
	[ ! -e p.png ]
	expect 0 mq render "${LONG[@]}" -o p.png
	[[ $output == *"continuing what $PWD/.p.png.mandelq holds"* ]]
	# dropped as it was told
	expect 7 mq render "${LONG[@]}" --stop-after=1 -o q.png
	rm -r .q.png.mandelq
	expect 0 mq render "${SMALL[@]}" -o q.png
	[ -z "$(ls -d .*.mandelq 2>/dev/null)" ]
}

@test "another name or priority goes on with the same picture" {
	expect 7 mq render "${LONG[@]}" --name=one --stop-after=1 -o p.png
	expect 0 mq render "${LONG[@]}" --name=two --priority=5 -o p.png
	pngcheck -q p.png
	start_worker
	expect 0 mq render "${SMALL[@]}" --name=one -o q.png
	expect 0 mq render "${SMALL[@]}" --name=two -o q.png --force
	[[ $output == *"job 1 of an earlier run is this picture"* ]]
	[ "$(mq status --json | jq -c '[.[] | .name, (.request_id | startswith("render-"))]')" = '["one",true]' ]
}

@test "a file's name of any length that may be has its private worker" {
	for base in "$(printf 'a%.0s' {1..242}).png" "$(printf 'a%.0s' {1..243}).png" \
		"$(printf 'a%.0s' {1..251}).png" "$(printf 'ä%.0s' {1..125}).png" "b$(printf 'ä%.0s' {1..125}).png"; do
		mkdir -p "$ROOT/run"
		for runtime in "$ROOT/run" ""; do
			# without the one place the socket must fit beside the picture, or that is told
			[ -n "$runtime" ] || [ "${#base}" != 246 ] || continue
			expect 7 env XDG_RUNTIME_DIR="$runtime" timeout 60 mandelq render "${LONG[@]}" --stop-after=1 -o "$base"
			[ "$(ls -A)" = "$(basename .*mandelq)" ]
			[ -d "$(echo .*mandelq)" ]
			[ "$(ls -A | iconv -f UTF-8 -t UTF-8 | wc -l)" = 1 ]
			refused 1 "other settings" env XDG_RUNTIME_DIR="$runtime" mandelq render "${SMALL[@]}" -o "$base"
			rm -r .*mandelq
			expect 0 env XDG_RUNTIME_DIR="$runtime" timeout 60 mandelq render "${SMALL[@]}" -o "$base"
			[ "$(ls -A)" = "$base" ]
			rm "$base"
		done
	done
	refused 2 "XDG_RUNTIME_DIR" mq render "${SMALL[@]}" -o "$(printf 'a%.0s' {1..242}).png"
	refused 1 "too long" mq render "${SMALL[@]}" -o "$(printf 'a%.0s' {1..252}).png"
	[ -z "$(ls -A)" ]
}
