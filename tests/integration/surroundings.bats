#!/usr/bin/env bats
# What both programs find around them: file names that are no text, limits, a log that nobody reads.
load helper

@test "file names that are no UTF-8" {
	odd=$ROOT/w/$'b\xe9d'
	mkdir "$odd"
	cd "$odd"
	expect 0 mq render "${SMALL[@]}" -o $'p\xff.png'
	pngcheck -q $'p\xff.png'
	[ "$(ls -A | wc -l)" = 1 ]
	MANDELQ_STATE_DIR=$odd/s start_worker
	export MANDELQ_STATE_DIR=$odd/s
	submit_and_wait "${SMALL[@]}" >/dev/null
	mq status --json | jq -e '.[0].output.path | endswith("/b?d/s/pictures/1/picture.png")'
	mq devices >/dev/null
	mq fetch 1 -o q.png
	cmp q.png $'p\xff.png'
}

@test "a file that must not grow pauses the job, and ends neither program" {
	(
		ulimit -f 8000
		start_worker
		echo "$WORKER" >"$ROOT/worker"
	)
	WORKER=$(cat "$ROOT/worker")
	mq submit --size=4000x4000 --iterations=3000 --center=-0.7436,0.1318 --zoom=1000
	until_true 60 state_is 1 paused
	[[ $(field 1 .reason) == "disk error: "*"File too large" ]]
	mq cancel 1
	submit_and_wait "${SMALL[@]}" --palette=gray >/dev/null
	still_runs "$WORKER"
	(ulimit -f 8 && refused 1 "File too large" mq fetch 2 -o p.png)
	[ "$(ls -A)" = "" ]
}

@test "a log that nobody reads does not stop the worker" {
	"$PYTHON" -c '
import fcntl, os, subprocess, time
r, w = os.pipe()
fcntl.fcntl(w, 1031, 4096)  # F_SETPIPE_SZ
p = subprocess.Popen(["mandelqd", "--device=cpu", "--log-level=debug"], stdin=0, stdout=w, stderr=w)
os.close(w)
ask = lambda *a: subprocess.run(["mandelq", *a], stdout=subprocess.DEVNULL, stderr=2, timeout=60, check=True)
for tries in range(100):
    if os.path.exists(os.environ["MANDELQ_STATE_DIR"] + "/mandelqd.sock"):
        break
    time.sleep(0.05)
for n in range(40):
    ask("submit", "--size=64", "--iterations=50", "--quiet")
ask("wait", "40", "--quiet")
# as soon as somebody reads again, it is told what is missing
os.read(r, 1 << 16)
ask("submit", "--size=64", "--iterations=50", "--wait", "--quiet")
p.terminate()
p.wait(20)
text = b""
while part := os.read(r, 1 << 16):
    text += part
assert b" lines of this log are lost" in text, text
assert p.returncode == 0, p.returncode'
}

@test "a private worker takes nothing from the machine's configuration" {
	mandelq render "${LONG[@]}" -o p.png 2>/dev/null 3>&- 4>&- &
	client=$!
	until_true 20 private_worker
	tr '\0' '\n' <"/proc/$(private_worker)/cmdline" | grep -qx -- --config=/dev/null
	kill "$client"
	until_true 20 ended "$client"
}

private_worker() {
	pgrep -P "$client" mandelqd
}
