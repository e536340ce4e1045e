#!/usr/bin/env bats
# Fetching: pictures, previews, regions and counts over the socket.
load helper

test_setup() {
	start_worker
}

# Some MiB, so that a reader that stops makes the client stop in the middle.
BIG=(--size=2000 --view=-0.7454,-0.7444,0.1126,0.1136 --iterations=3000)

fetched() {
	[ "$(field "$1" '.fetched | type')" = string ]
}

unfetched() {
	[ "$(field "$1" .fetched)" = null ]
}

@test "a picture is fetched whole, and every reader opens it" {
	submit_and_wait "${SMALL[@]}"
	mq fetch 1 -o p.png
	[ "$(sha p.png)" = "$(field 1 .output.sha256)" ]
	pngcheck -q p.png
	vips avg p.png
	python '
im = Image.open("p.png")
im.load()
assert im.mode == "RGB" and im.size == (300, 200), (im.mode, im.size)
assert "srgb" in im.info and abs(im.info["dpi"][0] - 300) < 0.1, im.info'
	[ "$(ls -A)" = p.png ]
}

@test "an existing file is kept unless --force is given" {
	submit_and_wait "${SMALL[@]}"
	echo mine >p.png
	refused 1 p.png mq fetch 1 -o p.png
	[ "$(cat p.png)" = mine ]
	expect 0 mq fetch 1 -o p.png --force
	pngcheck -q p.png
}

@test "a file that cannot be written ends with code 1 and leaves nothing" {
	submit_and_wait "${SMALL[@]}"
	refused 1 nowhere mq fetch 1 -o nowhere/p.png
	mkdir folder
	expect 1 mq fetch 1 -o folder --force
	[ "$(ls -A)" = folder ]
	[ -z "$(ls -A folder)" ]
}

@test "a job that is not ready, and one that did not keep its counts" {
	submit_and_wait "${SMALL[@]}"
	refused 1 keep-counts mq fetch 1 --counts -o c.npy
	refused 1 keep-counts mq fetch 1 --smooth -o c.npy
	mq submit "${ENDLESS[@]}"
	expect 1 mq fetch 2 -o p.png
	expect 3 mq fetch 17 -o p.png
	[ -z "$(ls -A)" ]
}

@test "a preview has at most 2048 pixels a side" {
	submit_and_wait --size=3000x1500 --view=-3,3,-1.5,1.5 --iterations=50
	mq fetch 1 --preview -o p.png
	pngcheck -q p.png
	python '
im = Image.open("p.png")
assert im.size == (1500, 750), im.size'
	submit_and_wait "${SMALL[@]}"
	mq fetch 2 --preview -o small.png
	mq fetch 2 -o whole.png
	python 'assert (load("small.png") == load("whole.png")).all()'
}

@test "a region is the crop of the picture" {
	# several strips of 116 rows
	submit_and_wait --size=3000x400 --view=-3,3,-0.4,0.4 --iterations=100
	mq fetch 1 -o whole.png
	for region in 0,0,3000,400 0,0,1,1 2999,399,1,1 100,110,700,130 5,0,3,400; do
		mq fetch 1 --region="$region" -o part.png --force
		pngcheck -q part.png
		python '
x, y, w, h = map(int, argv[0].split(","))
assert (load("part.png") == load("whole.png")[y:y+h, x:x+w]).all()' "$region"
	done
	for region in 0,0,0,1 0,0,3001,1 3000,0,1,1 -1,0,5,5 0,399,1,2 0,0,99999999999,1; do
		expect 2 mq fetch 1 --region="$region" -o bad.png
	done
	[ ! -e bad.png ]
}

@test "counts and smooth counts open in numpy, whole and by region" {
	submit_and_wait "${SMALL[@]}" --keep-counts
	mq fetch 1 --counts -o c.npy
	mq fetch 1 --smooth -o s.npy
	mq fetch 1 --counts --region=10,20,30,40 -o cr.npy
	mq fetch 1 --smooth --region=10,20,30,40 -o sr.npy
	python '
c, s = np.load("c.npy"), np.load("s.npy")
assert c.shape == s.shape == (200, 300) and c.dtype == "<u4" and s.dtype == "<f4"
assert c.max() == 500 and c.min() == 0
assert (s[c == 500] == 500).all()
more = s[c < 500] - c[c < 500]
assert (more > -1).all() and 0.4 < np.median(more) < 1.6, (more.min(), np.median(more))
assert (np.load("cr.npy") == c[20:60, 10:40]).all()
assert (np.load("sr.npy") == s[20:60, 10:40]).all()'
}

@test "counts of many strips" {
	submit_and_wait --size=1024x3000 --view=-0.512,0.512,-1.5,1.5 --iterations=60 --palette=gray --keep-counts
	mq fetch 1 --counts -o c.npy
	mq fetch 1 -o p.png
	mq fetch 1 --counts --region=500,1000,24,100 -o part.npy
	python '
c, p = np.load("c.npy"), load("p.png")
assert c.shape == (3000, 1024) and (p == np.where(c == 60, 0, 1 + c % 255)).all()
assert (np.load("part.npy") == c[1000:1100, 500:524]).all()'
}

@test "--compression=small: the same pixels in fewer bytes, the setting in the picture" {
	submit_and_wait "${SMALL[@]}" --palette=gray
	submit_and_wait "${SMALL[@]}" --palette=gray --compression=small
	submit_and_wait "${SMALL[@]}" --palette=gray --compression=fast
	mq fetch 1 -o fast.png
	mq fetch 2 -o small.png
	python 'assert (load("fast.png") == load("small.png")).all()'
	[ "$(stat -c %s small.png)" -lt "$(stat -c %s fast.png)" ]
	[ "$(field 1 .output.sha256)" = "$(field 3 .output.sha256)" ]
	grep -aq '"compression":"small"' small.png
	[ "$(grep -ac '"compression"' fast.png)" = 0 ]
	submit_and_wait --like=small.png
	[ "$(field 2 .output.sha256)" = "$(field 4 .output.sha256)" ]
	refused 2 compression mq submit --size=16 --compression=best
}

@test "--keep-counts does not change the picture" {
	submit_and_wait "${SMALL[@]}"
	submit_and_wait "${SMALL[@]}" --keep-counts
	[ "$(field 1 .output.sha256)" = "$(field 2 .output.sha256)" ]
}

@test "a picture counts as fetched once it lies whole at the client, not before" {
	submit_and_wait "${SMALL[@]}"
	submit_and_wait "${SMALL[@]}"
	refused 1 "No space" mq fetch 1 -o /dev/full --force
	unfetched 1
	expect 1 bash -c 'mandelq fetch 1 -o - >/dev/full'
	unfetched 1
	# somebody else makes the file meanwhile
	kill -STOP "$WORKER"
	mq fetch 1 -o p.png 3>&- 4>&- &
	sleep 0.5
	echo mine >p.png
	kill -CONT "$WORKER"
	code=0
	wait $! || code=$?
	[ "$code" = 1 ]
	[ "$(cat p.png)" = mine ]
	unfetched 1
	# the file may not grow so far
	run bash -c 'ulimit -c 0 -f 4; exec mandelq fetch 1 -o q.png'
	[ "$status" != 0 ]
	unfetched 1
	refused 1 "nobody has fetched" mq remove 1
	[ "$(ls -A)" = p.png ]
	mq fetch 1 -o p.png --force
	fetched 1
	mq remove 1
	mq fetch 2 -o - >q.png
	fetched 2
	[ "$(sha q.png)" = "$(sha p.png)" ]
	[ "$(ls -A)" = "$(printf 'p.png\nq.png')" ]
}

@test "a fetch that goes on with another worker counts, and one that read all is not enough" {
	submit_and_wait "${BIG[@]}"
	mkfifo pipe
	mandelq fetch 1 -o - >pipe 3>&- 4>&- &
	client=$!
	exec 5<pipe
	head -c 100000 <&5 >got
	kill_worker
	start_worker
	cat <&5 >>got
	exec 5<&-
	wait "$client"
	[ "$(sha got)" = "$(field 1 .output.sha256)" ]
	fetched 1
	mq remove 1
	# a client that says nothing, and one that says it of something else
	submit_and_wait "${SMALL[@]}" --keep-counts
	WORKER=$WORKER timeout 60 "$PYTHON" -c "
import sys
sys.path.insert(0, '$BATS_TEST_DIRNAME')
from hostile import *

def opened(what='picture', **more):
    return call('open', id=2, what=what, **more)['result']

def close(x, **more):
    return call('close', handle=x['handle'], **more)['result']

def fetched():
    return call('status', ids=[2])['result']['jobs'][0]['fetched']

x = opened()
assert call('read', handle=x['handle'], offset=0, length=1 << 20)['result']['bytes'] == x['bytes']
assert close(x) == {} and close(opened(), kept=False) == {}
for y in opened('preview'), opened('counts'), opened(region=[0, 0, 300, 200]), x:
    assert close(y, kept=True) == {'kept': False}
assert call('close', handle=opened()['handle'], kept=1)['status'] == 'invalid'
assert fetched() is None
assert close(opened(), kept=True) == {'kept': True}
first = fetched()
assert first
assert close(opened(), kept=True) == {'kept': True} and fetched() == first
os._exit(0)"
}

@test "a fetch that is killed leaves nothing beside its file" {
	"$PYTHON" -c 'import os; os.open(".", os.O_TMPFILE | os.O_WRONLY)' || skip "no files without a name here"
	# a worker that has a picture, and then says no more
	"$PYTHON" -c '
import json, sys, zmq
s = zmq.Context().socket(zmq.ROUTER)
s.bind(sys.argv[1])
peer, request = s.recv_multipart()
reply = {"handle": 1, "ready": True, "progress": 1, "bytes": 3, "sha256": "0" * 64}
s.send_multipart([peer, json.dumps({"mandelq": 1, "seq": json.loads(request)["seq"], "status": "ok",
                                    "result": reply}).encode()])
s.recv_multipart()
open("asked", "w")
s.poll(20000)
' "ipc://$ROOT/fake" 3>&- 4>&- &
	until_true 10 test -S "$ROOT/fake"
	MANDELQ_ENDPOINT=ipc://$ROOT/fake mandelq fetch 1 -o p.png 3>&- 4>&- &
	client=$!
	until_true 10 test -e asked
	find -L "/proc/$client/fd" -type f ! -perm 000 -links 0 | grep -q .
	kill -9 "$client"
	wait "$client" || true
	[ "$(ls -A)" = asked ]
}

@test "a file that is replaced has the usual permissions and one name" {
	submit_and_wait "${SMALL[@]}"
	echo old >p.png
	chmod 600 p.png
	(umask 027; mq fetch 1 -o p.png --force; mq fetch 1 -o q.png)
	[ "$(stat -c '%a %h' p.png q.png)" = "$(printf '640 1\n640 1')" ]
	cmp p.png q.png
	[ "$(ls -A)" = "$(printf 'p.png\nq.png')" ]
}

@test "--force writes through symbolic links, whether their file is there or not" {
	submit_and_wait "${SMALL[@]}"
	mkdir folder
	echo old >folder/old.png
	ln -s folder/old.png good.png
	ln -s new.png folder/second
	ln -s folder/second dangling.png
	ln -s loop.png loop.png
	ln -s nowhere/p.png lost.png
	for link in good dangling loop lost; do
		refused 1 exists mq fetch 1 -o $link.png
	done
	for link in good dangling; do
		mq fetch 1 -o $link.png --force
		[ -L $link.png ]
	done
	[ -L folder/second ]
	for file in old new; do
		[ ! -L folder/$file.png ]
		[ "$(sha folder/$file.png)" = "$(field 1 .output.sha256)" ]
	done
	refused 1 loop.png mq fetch 1 -o loop.png --force
	refused 1 nowhere mq fetch 1 -o lost.png --force
	[ -L loop.png ] && [ -L lost.png ]
	[ "$(ls -A folder)" = "$(printf 'new.png\nold.png\nsecond')" ]
}

@test "standard output that nobody can write to is no reason to wait" {
	submit_and_wait "${SMALL[@]}"
	run timeout 20 bash -c 'mandelq fetch 1 -o - 1< <(exec sleep 19 3>&- 4>&-)'
	[ "$status" = 1 ] && [[ $output == *"standard output"* ]] || { echo "exit $status: $output"; return 1; }
	unfetched 1
}

# exports CODE: Python with call(), and ready(HANDLE) as a reply says when it is or why not.
exports() {
	WORKER=$WORKER timeout 60 "$PYTHON" -c "
import sys
sys.path.insert(0, '$BATS_TEST_DIRNAME')
from hostile import *

def ready(opened):
    while opened['status'] == 'ok' and not opened['result']['ready']:
        time.sleep(0.02)
        opened = call('poll', handle=opened['result']['handle'])
    return opened
$1
os._exit(0)"
}

@test "a job that is removed while its counts are made ready is not there" {
	submit_and_wait --size=4000 --view=-2,2,-2,2 --iterations=20 --palette=gray --keep-counts
	submit_and_wait "${SMALL[@]}" --keep-counts
	exports '
many = [call("open", id=1, what="counts") for _ in range(3)]
late = [call("open", id=2, what="counts"), call("open", id=2, what="picture", region=[0, 0, 9, 9])]
assert call("remove", id=2, force=True)["status"] == "ok"
while os.path.exists(STATE + "/pictures/2"):
    time.sleep(0.001)
for x in late:
    reply = ready(x)
    assert (reply["status"], reply["error"]) == ("no-such-job", "no job 2"), reply
    assert call("poll", handle=x["result"]["handle"])["status"] == "stale"
# a file that is missing is no job that is
os.unlink(STATE + "/pictures/1/counts.mqc")
reply = ready(call("open", id=1, what="counts"))
assert reply["status"] == "corrupt" and "job 1" in reply["error"], reply'
}

@test "downloads that must be made first leave room for jobs" {
	[ "$(id -u)" = 0 ] || skip "needs root, to mount"
	stop_worker
	mkdir -p "$MANDELQ_STATE_DIR"
	mount -t tmpfs -o size=48m tmpfs "$MANDELQ_STATE_DIR" || skip "cannot mount"
	start_worker
	submit_and_wait --size=3000x2400 --view=10,20,10,18 --iterations=50 --palette=gray --keep-counts
	submit_and_wait "${SMALL[@]}" --keep-counts
	exports '
def refused(reply):
    assert reply["status"] == "no-space" and "28.8 MB" in reply["error"] and "job 1" in reply["error"], reply

first = call("open", id=1, what="counts")
assert first["status"] == "ok", first
refused(call("open", id=1, what="smooth"))  # it is not there yet, but will be
assert ready(first)["result"]["bytes"] == 128 + 4 * 3000 * 2400
refused(call("open", id=1, what="smooth"))
for more in {"what": "counts"}, {"what": "picture", "region": [0, 0, 200, 200]}:
    assert ready(call("open", id=2, **more))["status"] == "ok"
assert ready(call("open", id=1, what="picture", region=[0, 0, 3000, 2400]))["status"] == "ok"
assert call("open", id=1, what="picture")["result"]["ready"]
assert call("submit", job={"width": 500, "height": 500}, name="victim")["status"] == "ok"
until = time.time() + 20
while call("status", ids=[3])["result"]["jobs"][0]["state"] != "done":
    assert time.time() < until
    time.sleep(0.05)
call("close", handle=first["result"]["handle"])
second = ready(call("open", id=1, what="smooth"))
assert second["status"] == "ok", second
call("close", handle=second["result"]["handle"])
disk = os.statvfs(STATE)
with open(STATE + "/filler", "wb") as f:
    f.write(bytes(disk.f_bavail * disk.f_frsize - (1 << 20)))
reply = call("backup")
assert reply["status"] == "no-space" and "copy of the database" in reply["error"], reply
os.unlink(STATE + "/filler")
assert call("backup")["status"] == "ok"'
}
