#!/usr/bin/env bats
# Peers that mean harm: the worker stays up, its memory stays bounded, and others are served within
# their retries.
load helper

attack() {
	WORKER=$WORKER timeout 100 "$PYTHON" -c "
import sys
sys.path.insert(0, '$BATS_TEST_DIRNAME')
from hostile import *
$1
os._exit(0)"
	still_runs "$WORKER"
}

@test "endless messages, of large frames" {
	start_worker --client-memory=64M
	attack '
with Watch() as w:
    sent = flood(PATH, b"DEALER", bytes(64 << 10), 3)
print("%.0f MiB sent" % sent, file=sys.stderr)
# what is let in between two looks, a quarter of a second, comes on top of what is allowed
assert w.peak < w.before + 1200, w.peak
alive()
gives_back(w.before)'
	grep -q 'all connections are closed' "$LOG"
}

@test "endless messages, of small frames" {
	start_worker --client-memory=64M
	attack '
with Watch() as w:
    sent = flood(PATH, b"DEALER", b"x", 3)
assert w.peak < w.before + 700, (sent, w.peak)
alive()
gives_back(w.before)'
}

@test "what a burst leaves behind is given back" {
	start_worker
	attack '
before = resident()
s = peer()
block = frame(bytes(32 << 10), more=True) * 32
for n in range(64):
    s.sendall(block)
peak = resident()
assert peak > before + 40, (before, peak)
s.close()
gives_back(before)'
}

@test "endless messages to the event socket" {
	start_worker --client-memory=64M
	attack '
with Watch() as w:
    sent = flood(EVENTS, b"SUB", bytes(64 << 10), 3)
assert w.peak < w.before + 1200, (sent, w.peak)
with Watch() as w:
    # a million different subscriptions
    s, n = peer(EVENTS, b"SUB"), 0
    end = time.time() + 3
    while time.time() < end:
        try:
            s.sendall(b"".join(frame(b"\1%032d" % (n + i)) for i in range(1000)))
            n += 1000
        except OSError:
            s = peer(EVENTS, b"SUB")
assert w.peak < w.before + 900, w.peak
alive()'
}

@test "messages that announce more than they may have" {
	start_worker
	attack '
before = resident()
peers = []
for size in ((1 << 20) + 1024 + 1, 1 << 30, 1 << 62, (1 << 64) - 1):
    s = peer()
    s.sendall(b"\2" + struct.pack(">Q", size) + bytes(1000))
    assert s.recv(100) == b"", size
for n in range(100):
    # as much as allowed, and never all of it
    s = peer()
    s.sendall(b"\2" + struct.pack(">Q", 1 << 20) + bytes(200000))
    peers.append(s)
alive()
assert resident() < before + 130, resident()'
}

@test "peers that do not shake hands are dropped" {
	start_worker
	attack '
with Watch() as w:
    half = []
    for part in (b"", b"\xff", GREETING[:10], GREETING[:63], GREETING, GREETING + ready(b"DEALER")[:9]):
        for n in range(50):
            half.append(connect())
            half[-1].sendall(part)
    begun = time.time()
    for s in half:
        s.settimeout(20)
        while s.recv(1000):
            pass
    assert time.time() - begun < 12
assert w.slowest < 5, w.slowest'
}

@test "1000 idle connections with a soft limit of 1024 files" {
	ulimit -Sn 1024
	start_worker
	ulimit -Sn "$(ulimit -Hn)"
	attack '
with Watch() as w:
    idle = [peer() for n in range(1000)]
    idle += [connect(EVENTS) for n in range(200)]
    time.sleep(2)
assert w.peak < w.before + 100 and w.slowest < 5, (w.peak, w.slowest)
os.system("mandelq status > status.txt") == 0 or sys.exit("not served")'
	until_true 5 few_files
}

few_files() {
	[ "$(ls "/proc/$WORKER/fd" | wc -l)" -lt 60 ]
}

@test "a client that takes no answers" {
	start_worker
	id=$(submit_and_wait --size=2048x2048 --iterations=300 --palette=gray --keep-counts)
	attack '
handle = 0
opened = call("open", id=1, what="counts")
while not opened["result"]["ready"]:
    time.sleep(0.05)
    opened = call("poll", handle=opened["result"]["handle"])
ask = frame(request("read", handle=opened["result"]["handle"], offset=0, length=1 << 20))
with Watch() as w:
    slow = [peer() for n in range(3)]
    end = time.time() + 4
    for s in slow:
        s.settimeout(0.1)
    while time.time() < end:
        for s in slow:
            try:
                s.sendall(ask * 20)
            except socket.timeout:
                pass
assert w.peak > w.before + 20, "nothing was held"
# 32 answers of 1 MiB and 16 waiting requests a peer, and a turn of answers
assert w.peak < w.before + 3 * 34 + 64 + 40, w.peak'
}

@test "a worker that nobody talks to sleeps" {
	start_worker
	attack '
peers = [peer() for n in range(20)] + [peer(EVENTS, b"SUB") for n in range(20)]
alive()
for s in peers:
    s.close()
time.sleep(1.5)
before = switches()
time.sleep(4)
assert switches() - before <= 2, switches() - before'
}

@test "rows of long decimals still come by the page" {
	start_worker
	attack '
third = "0." + "3" * 19000
job = {"width": 8, "height": 8, "iterations": 5,
       "view": ["-" + third, third, "-0." + "6" * 19000, "0." + "6" * 19000]}
for n in range(30):
    assert call("submit", job=job, name="long")["status"] == "ok"
# asked for by many at once, who take a long time each, while others are served
many = [dealer() for n in range(10)]
with Watch() as w:
    for s in many:
        for n in range(10):
            s.send(request("status", seq=n, after=0, limit=200))
    for s in many:
        for n in range(10):
            assert s.poll(20000)
            reply = s.recv()
            assert len(reply) <= MIB and json.loads(reply)["status"] == "ok"
# 32 answers of 1 MiB a peer
assert w.slowest < 5 and w.peak < 110 + 64 + 60, (w.slowest, w.peak)'
	[ "$(mq status --json | jq length)" = 30 ]
	[ "$(mq status --json {1..30} | jq length)" = 30 ]
}

@test "no file is where a client says" {
	start_worker
	attack '
for name in ("../../up", "/tmp/abs", "a/b", ".", "..", "x" * 200):
    reply = call("submit", job={"width": 8, "height": 8, "iterations": 5}, name=name, request_id=name)
    assert reply["status"] in ("ok", "invalid"), reply
for what in ("../picture", "/etc/passwd", "picture.png", "picture/../../../x"):
    assert call("open", id=1, what=what)["status"] == "invalid"
'
	mq wait --timeout=30 {1..6} >/dev/null
	[ -z "$(find "$MANDELQ_STATE_DIR" -newer "$LOG" -type f | grep -vE '/(lock|mandelq\.db(-wal|-shm)?|pictures/[0-9]+/(picture|preview)\.png)$')" ]
	[ "$(find "$ROOT" -name '*up*' -o -name 'abs*' | wc -l)" = 0 ]
}
