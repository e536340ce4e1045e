#!/usr/bin/env bats
# The event socket: rows as they change, the present one on subscription, and no harm from who does
# not read.
load helper

subscriber() {
	WORKER=$WORKER timeout 100 "$PYTHON" -c "
import sys
sys.path.insert(0, '$BATS_TEST_DIRNAME')
from hostile import *

def subscribe(topic):
    s = zmq.Context.instance().socket(zmq.SUB)
    s.linger = 0
    s.rcvhwm = 10000
    s.connect(alive()['events'])
    s.subscribe(topic)
    return s

def event(s, seconds=10):
    assert s.poll(seconds * 1000), 'no event'
    topic, row = s.recv_multipart()
    row = json.loads(row)
    assert topic == b'job/%d' % row['id'], topic
    return row

def rows_until(s, state, seconds=60):
    rows = [event(s, seconds)]
    while rows[-1]['state'] != state:
        rows.append(event(s, seconds))
    return rows
$1
os._exit(0)"
	still_runs "$WORKER"
}

@test "the present row, the changes, the end" {
	start_worker
	mq submit "${ENDLESS[@]}" 2>/dev/null
	until_true 10 state_is 1 running
	mq submit "${LONG[@]}" 2>/dev/null
	subscriber '
s = subscribe("job/2")
row = event(s)
assert row["state"] == "queued" and row["progress"] == 0, row
assert row.keys() == call("status", ids=[2])["result"]["jobs"][0].keys()
assert not s.poll(700), s.recv_multipart()
call("cancel", id=1)
rows = rows_until(s, "done")
states = [r["state"] for r in rows]
order = [a for a, b in zip(states, [None] + states) if a != b]
assert [x for x in order if x != "queued"] == ["running", "assembling", "done"], order
progress = [r["progress"] for r in rows]
assert progress == sorted(progress) and progress[-1] == 1, progress
assert rows[-1] == call("status", ids=[2])["result"]["jobs"][0]
late = subscribe("job/2")
assert event(late)["state"] == "done"'
}

@test "all jobs, and none that is not there" {
	start_worker
	subscriber '
all_, none = subscribe("job/"), subscribe("job/99")
for bad in ("job/0", "job/-1", "job/1x", "job/99999999999999999999", "jo", "x" * 10000, ""):
    subscribe(bad)
time.sleep(0.3)
for n in range(3):
    call("submit", job={"width": 64, "height": 64, "iterations": 50}, priority=-n)
done = set()
while done != {1, 2, 3}:
    row = event(all_)
    if row["state"] == "done":
        done.add(row["id"])
assert not none.poll(300)'
}

@test "progress is told five times a second at most" {
	# 128 tiles of one strip, done in a second or two
	start_worker --device-memory=1M
	subscriber '
s = subscribe("job/1")
begun = time.time()
call("submit", job={"width": 16384, "height": 8192, "iterations": 100, "palette": "gray",
                    "view": ["-0.2", "0.2", "-0.1", "0.1"]})
rows = rows_until(s, "done")
took, done = time.time() - begun, {r["tiles_done"] for r in rows}
assert rows[-1]["tiles_done"] >= 128 and len(done) < 100, done
# three changes of state come whenever they do
assert 4 <= len(rows) <= 5 + 5 * took, (len(rows), took)
assert any(0 < r["progress"] < 0.98 for r in rows)'
}

@test "subscribers that do not read" {
	start_worker
	subscriber '
third = "0." + "3" * 19000
call("submit", job={"width": 8, "height": 8, "iterations": 5,
     "view": ["-" + third, third, "-0." + "6" * 19000, "0." + "6" * 19000]})
slow = [peer(EVENTS, b"SUB") for n in range(10)]
for s in slow:
    s.sendall(frame(b"\1job/"))
# One that reads, and has the row of 80 kB published all the time: each subscription brings it.
driver = peer(EVENTS, b"SUB")
driver.settimeout(0.2)
with Watch() as w:
    end, heard = time.time() + 30, 0
    while heard < 120 * MIB and time.time() < end:
        driver.sendall(frame(b"\1job/1"))
        try:
            heard += len(driver.recv(MIB))
        except socket.timeout:
            pass
assert heard >= 120 * MIB, heard
# 64 events of one or the other
assert w.peak < w.before + 60, w.peak'
}

@test "the event socket is as closed as the other one, and may be missing" {
	start_worker
	[ "$(stat -c %a "$MANDELQ_STATE_DIR/mandelqd.sock.events")" = 660 ]
	stop_worker
	[ ! -e "$MANDELQ_STATE_DIR/mandelqd.sock.events" ]
	echo mine >"$MANDELQ_STATE_DIR/mandelqd.sock.events"
	refuses_to_start mandelqd.sock.events
	[ "$(cat "$MANDELQ_STATE_DIR/mandelqd.sock.events")" = mine ]
	rm "$MANDELQ_STATE_DIR/mandelqd.sock.events"

	# 104 bytes: the socket has room for its name, the event socket has not
	export MANDELQ_ENDPOINT=ipc://$ROOT/$(printf '%0*d' $((104 - ${#ROOT} - 1)) 0)
	start_worker
	grep -q 'no events are published' "$LOG"
	[ "$(submit_and_wait "${SMALL[@]}")" = 1 ]
}

@test "the queue, and jobs that are removed, on topics of their own" {
	start_worker
	mq pause --all
	subscriber '
def raw(s, seconds=10):
    assert s.poll(seconds * 1000), "no event"
    topic, body = s.recv_multipart()
    return topic.decode(), json.loads(body)

queue, jobs, gone, one = (subscribe(t) for t in ("queue", "job/", "removed/", "removed/1"))
# who comes to it gets the present state
assert raw(queue) == ("queue", {"paused": True})
call("pause", all=True)
assert not queue.poll(300), queue.recv_multipart()
for verb, paused in (("resume", False), ("pause", True)):
    call(verb, all=True)
    assert raw(queue) == ("queue", {"paused": paused})
late = subscribe("queue")
assert raw(late) == ("queue", {"paused": True})
for n in range(4):
    call("submit", job={"width": 64, "height": 64, "iterations": 50})
assert call("remove", id=1, force=True)["status"] == "state"
assert call("remove", id=99, force=True)["status"] == "no-such-job"
for n in 1, 2, 3:
    call("cancel", id=n)
assert not gone.poll(300), gone.recv_multipart()
call("remove", id=1, force=True)
event = {"id": 1, "removed": True}
assert raw(gone) == raw(one) == ("removed/1", event)
assert call("clean", older_than_seconds=0, force=True)["result"]["removed"] == [2, 3]
assert sorted(raw(gone)[0] for n in (2, 3)) == ["removed/2", "removed/3"]
time.sleep(0.3)
assert not one.poll(0)
# who knows the topic of jobs alone hears what it always did: rows
heard = []
while jobs.poll(0):
    heard.append(raw(jobs))
assert {t for t, row in heard} == {"job/%d" % n for n in range(1, 5)}, heard
assert all(row["id"] == int(t[4:]) and "state" in row and "removed" not in row for t, row in heard), heard
# a prefix: all of it
every = subscribe("")
call("resume", all=True)
topics = set()
while not {"queue", "job/4"} <= topics:
    topics.add(raw(every)[0])'
}
