#!/usr/bin/env bats
# --backup of a running worker: others are served meanwhile, and the copy is whole or not there.
load helper

# Python with jobs(N), paused ones of 65536 tiles, 4 MB of database each.
driver() {
	WORKER=$WORKER timeout 100 "$PYTHON" -c "
import sys
sys.path.insert(0, '$BATS_TEST_DIRNAME')
from hostile import *

def jobs(n):
    for i in range(n):
        r = call('submit', job={'width': 1 << 20, 'height': 65536, 'view': ['3', '4', '3', '4'],
                                'iterations': 1, 'palette': 'gray', 'keep_counts': True})
        assert r['status'] == 'ok', r

COPY = STATE + '/work/backup.db'
$1
os._exit(0)"
}

# All that a database holds, as a hash.
content() {
	sqlite3 "$1" .sha3sum
}

@test "a large database is copied while others are served and change it" {
	start_worker
	mq pause --all
	driver '
jobs(24)
assert os.path.getsize(STATE + "/mandelq.db") > 90 * 1000 * 1000
copying = threading.Event()
took = []
def ask():
    s = dealer()
    copying.wait()
    while copying.is_set():
        begun = time.time()
        s.send(request("status", ids=[1]))
        assert s.poll(5000)
        s.recv()
        took.append(time.time() - begun)
        time.sleep(0.002)
asker = threading.Thread(target=ask)
asker.start()
copying.set()
first = call("backup")["result"]
assert not first["ready"] and first["bytes"] is None, first
assert call("backup")["status"] == "busy"
assert call("submit", job={"width": 8, "height": 8, "iterations": 5}, name="meanwhile")["status"] == "ok"
assert call("priority", id=1, priority=77)["status"] == "ok"
now, progress = call("poll", handle=first["handle"])["result"], [0]
assert not now["ready"], "copied too soon for a test"
while not now["ready"]:
    progress.append(now["progress"])
    now = call("poll", handle=first["handle"])["result"]
    time.sleep(0.01)
copying.clear()
asker.join()
assert progress == sorted(progress) and len(set(progress)) > 3 and progress[-1] < 1, progress
assert not os.path.exists(COPY)
took.sort()
print("%d answers, half of them within %.1f ms, 19 of 20 within %.1f, all within %.1f" % (len(took),
      *(1e3 * took[int(len(took) * q)] for q in (0.5, 0.95)), 1e3 * took[-1]), file=sys.stderr)
assert len(took) >= 15 and took[int(len(took) * 0.95)] < 0.25, took
s = dealer()
with open("a.db", "wb") as f:
    while f.tell() < now["bytes"]:
        s.send(request("read", handle=first["handle"], offset=f.tell(), length=MIB))
        f.write(s.recv_multipart()[1])'
	mandelqd --backup=b.db
	[ "$(sqlite3 a.db "PRAGMA quick_check; SELECT priority, (SELECT name FROM jobs WHERE id = 25) FROM jobs WHERE id = 1")" = \
		"$(printf 'ok\n77|meanwhile')" ]
	stop_worker
	hash=$(content "$MANDELQ_STATE_DIR/mandelq.db")
	[ "$(content a.db)" = "$hash" ]
	[ "$(content b.db)" = "$hash" ]
	ls -A "$MANDELQ_STATE_DIR/work"
	[ -z "$(find "$MANDELQ_STATE_DIR/work" -name 'backup*')" ]
}

@test "a copy that nobody waits for is dropped, and another may begin" {
	start_worker
	mq pause --all
	driver '
jobs(4)
for n in range(5):
    first = call("backup")
    assert first["status"] == "ok" and not first["result"]["ready"], first
    assert os.path.exists(COPY)
    call("close", handle=first["result"]["handle"])
assert call("poll", handle=first["result"]["handle"])["status"] == "stale"
assert not os.path.exists(COPY)'
	# who asks is killed: the copy before stays as it was
	mandelqd --backup=b.db
	hash=$(content b.db)
	for delay in 0.01 0.03 0.06 0.1; do
		mq submit "${SMALL[@]}" >/dev/null
		mandelqd --backup=b.db &
		sleep "$delay"
		kill -9 $! || true
		wait $! || true
		[ "$(sqlite3 b.db 'PRAGMA quick_check')" = ok ]
	done
	mandelqd --backup=b.db
	[ "$(content b.db)" != "$hash" ]
	# one that is asked to end leaves nothing
	rm -f .mandelqd-*
	for signal in INT TERM HUP; do
		env --default-signal=INT mandelqd --backup=c.db &
		until_true 10 compgen -G '.mandelqd-*' || true
		kill -s "$signal" $! || true
		wait $! || true
		[ -z "$(compgen -G '.mandelqd-*')" ]
	done
}

# refused_target FILE...: each is refused, and is afterwards what it was before.
refused_target() {
	local file before
	for file; do
		before=$(stat -c '%i %F %s' "$file" 2>&1 || true)
		refused 2 "" mandelqd --backup="$file"
		[ "$(stat -c '%i %F %s' "$file" 2>&1 || true)" = "$before" ] || { echo "changed: $file"; return 1; }
	done
	[ -z "$(find "$ROOT" -name '.mandelqd-*')" ]
}

@test "a copy replaces nothing but a plain file outside the state directory" {
	start_worker
	submit_and_wait "${SMALL[@]}" >/dev/null
	mkdir dir other other/work other/pictures
	touch other/mandelq.db other/lock plain
	mkfifo fifo
	ln -s plain link
	ln -s nowhere dangling
	ln -s "$MANDELQ_STATE_DIR" state
	ln "$MANDELQ_STATE_DIR/lock" hard
	devices=()
	if mknod null c 1 3 2>/dev/null; then devices=(null); fi
	echo mine >backup.db.tmp
	echo mine >plain.tmp
	chmod 0644 plain
	targets=("${devices[@]}" fifo link dangling dir ./ dir/ new/ . hard
		state/mandelq.db state/mandelq.db-wal state/lock state/new.db state/work/new.db
		"$MANDELQ_STATE_DIR"/{mandelq.db,mandelq.db-wal,mandelq.db-journal,lock,mandelqd.sock,new.db}
		"$MANDELQ_STATE_DIR/pictures/1/new.db" "../s/mandelq.db" other/mandelq.db other/work/new.db)
	refused_target "${targets[@]}"
	mandelqd --backup=plain
	mandelqd --backup=backup.db
	[ "$(sqlite3 plain 'SELECT count(*) FROM jobs')" = 1 ]
	[ "$(stat -c %a plain backup.db | uniq)" = 600 ]
	# acknowledged jobs outlive the worker
	mq submit "${SMALL[@]}" >/dev/null
	kill_worker
	refused_target "${targets[@]}"
	mandelqd --backup=plain
	mandelqd --backup=backup.db
	[ "$(sqlite3 plain 'SELECT count(*) FROM jobs')" = 2 ]
	[ "$(stat -c %a plain backup.db | uniq)" = 600 ]
	[ "$(cat backup.db.tmp plain.tmp)" = "$(printf 'mine\nmine')" ]
	start_worker
	[ "$(mq status --json | jq length)" = 2 ]
	# names of any length, and of one place
	long=$(printf '%0255d' 0)
	mandelqd --backup="$long"
	mandelqd --backup="$ROOT/w/$long"
	[ "$(sqlite3 "$long" 'PRAGMA quick_check')" = ok ]
	[ -z "$(find "$ROOT" -name '.mandelqd-*')" ]
}

@test "a worker that is killed while it copies leaves nothing half" {
	MANDELQ_FAILPOINTS=store-backup:5:kill start_worker
	mq pause --all
	driver 'jobs(1)'
	run timeout 60 mandelqd --backup=b.db
	[ "$status" = 1 ]
	[[ $output == *"does not answer"* ]]
	until_true 5 ended "$WORKER"
	[ -e "$MANDELQ_STATE_DIR/work/backup.db" ]
	[ -z "$(ls)" ]
	start_worker
	[ -z "$(find "$MANDELQ_STATE_DIR/work" -name 'backup*')" ]
	mandelqd --backup=b.db
	[ "$(sqlite3 b.db 'PRAGMA quick_check; SELECT count(*) FROM tiles')" = "$(printf 'ok\n65536')" ]
}

@test "a copy that fails says why, and the worker goes on" {
	MANDELQ_FAILPOINTS=store-backup:5:enospc,store-backup:7:eio start_worker
	mq pause --all
	driver 'jobs(1)'
	for why in 'No space' 'error'; do
		run mandelqd --backup=b.db
		[ "$status" = 1 ]
		[[ $output == *"$why"* ]]
		[ -z "$(find "$MANDELQ_STATE_DIR/work" -name 'backup*')" ]
		[ -z "$(ls)" ]
	done
	mandelqd --backup=b.db
	[ "$(sqlite3 b.db 'PRAGMA quick_check')" = ok ]
}

@test "going back to a copy, or to no database, removes no newer picture and gives no id again" {
	start_worker
	submit_and_wait "${SMALL[@]}" >/dev/null
	mandelqd --backup="$ROOT/old.db"
	submit_and_wait "${SMALL[@]}" --palette=gray >/dev/null
	[ "$(mq submit "${LONG[@]}")" = 3 ]
	until_true 60 tiles_done_at_least 3 1
	stop_worker
	before=$(sha "$MANDELQ_STATE_DIR/pictures/2/picture.png")
	for database in "$ROOT/old.db" none; do
		rm -f "$MANDELQ_STATE_DIR"/mandelq.db*
		if [ "$database" != none ]; then
			cp "$database" "$MANDELQ_STATE_DIR/mandelq.db"
			run mandelqd --check
			[[ $output == *"pictures/2: the database does not know this job"* ]]
		fi
		start_worker
		grep -q "the database does not know (up to [34])" "$LOG"
		[ "$(sha "$MANDELQ_STATE_DIR/pictures/2/picture.png")" = "$before" ]
		[ -d "$MANDELQ_STATE_DIR/work/3" ]
		submit_and_wait "${SMALL[@]}" >/dev/null
		stop_worker
	done
	[ -e "$MANDELQ_STATE_DIR/pictures/4/picture.png" ]
	[ -e "$MANDELQ_STATE_DIR/pictures/5/picture.png" ]
	# those are known, and their leftovers are removed as ever
	start_worker
	mq remove 5 --force
	until_true 5 test ! -e "$MANDELQ_STATE_DIR/pictures/5"
}

@test "a copy that may not become so large is none, and the worker is not to blame" {
	start_worker
	submit_and_wait "${SMALL[@]}" >/dev/null
	for alive in yes no; do
		run bash -c 'ulimit -f 8 && mandelqd --backup=b.db'
		[ "$status" = 1 ]
		[ -z "$(ls -A)" ]
		run bash -c 'ulimit -f 8 && TMPDIR=$PWD mandelqd --check'
		[ "$status" = 2 ]
		[ -z "$(ls -A)" ]
		[ $alive = no ] || kill_worker
	done
}
