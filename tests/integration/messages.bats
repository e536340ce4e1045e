#!/usr/bin/env bats
# Messages that are not ours: the worker answers with an error or not at all, and lives.
load helper

test_setup() {
	start_worker
	cat >peer.py <<'END'
import json, os, sys, zlib
import zmq

context = zmq.Context()
endpoint = "ipc://" + os.environ["MANDELQ_STATE_DIR"] + "/mandelqd.sock"

def socket(kind=zmq.DEALER):
    s = context.socket(kind)
    s.linger = 0
    s.connect(endpoint)
    return s

def ask(s, *frames, wait=5000):
    """The reply's frames, or None when none came."""
    s.send_multipart(list(frames))
    return s.recv_multipart() if s.poll(wait) else None

def request(verb, seq=1, **args):
    return json.dumps({"mandelq": 1, "seq": seq, "verb": verb, "args": args}).encode()

def call(verb, seq=1, s=None, **args):
    frames = ask(s or socket(), request(verb, seq, **args))
    assert frames, "no reply to " + verb
    reply = json.loads(frames[0])
    assert reply["mandelq"] == 1 and reply["seq"] == seq, reply
    return reply, frames[1:]

def alive():
    reply, more = call("hello", 77)
    assert reply["status"] == "ok" and not more, reply
    return reply["result"]
END
}

peer() {
	timeout 60 "$PYTHON" -c "
import os, sys
sys.path.insert(0, os.getcwd())
from peer import *
$1
os._exit(0)"
	still_runs "$WORKER"
}

@test "hello says who answers" {
	peer '
hello = alive()
assert hello["version"] == "0.1.0" and hello["protocol"] == 1 and hello["pid"] > 1
assert hello["state_dir"] == os.environ["MANDELQ_STATE_DIR"]
assert isinstance(hello["uptime_seconds"], (int, float)) and "CPU" in hello["note"].upper()
device = hello["devices"][0]
assert device["name"] == "cpu" and device["threads"] == 2 and device["memory_total"] > 0'
}

@test "bytes that are no message" {
	peer '
import random
random.seed(1)
junk = [b"", b"\0", b"{", b"[]", b"null", b"{}", b"\xff" * 1000, b"[" * 100000, b"{\"mandelq\":1}",
        b"{\"mandelq\":1,\"seq\":-1,\"verb\":\"hello\",\"args\":{}}",
        b"{\"mandelq\":1,\"seq\":1e300,\"verb\":\"hello\",\"args\":{}}",
        b"{\"mandelq\":1,\"seq\":1,\"verb\":\"hello\",\"args\":[]}",
        b"{\"mandelq\":1,\"seq\":1,\"verb\":7,\"args\":{}}",
        b"{\"mandelq\":1,\"seq\":1,\"verb\":\"" + b"v" * 10000 + b"\",\"args\":{}}",
        request("hello")[:-1], request("hello") + b"x", b"\xef\xbb\xbf" + request("hello")]
junk += [random.randbytes(random.randrange(1, 2000)) for _ in range(300)]
s = socket()
for bytes_ in junk:
    s.send(bytes_)
while s.poll(500):
    reply = json.loads(s.recv_multipart()[0])
    assert reply["status"] != "ok", reply
alive()'
}

@test "another protocol version is answered as such" {
	peer '
frames = ask(socket(), b"{\"mandelq\":2,\"seq\":9,\"verb\":\"hello\",\"args\":{}}")
reply = json.loads(frames[0])
assert reply["seq"] == 9 and reply["status"] == "version", reply
alive()'
}

@test "unknown verbs and bad arguments" {
	peer '
for verb in ("frobnicate", "", "HELLO"):
    reply, _ = call(verb, 5)
    assert reply["status"] == "protocol" and reply["error"], reply
bad = [("cancel", {}), ("cancel", {"id": "1"}), ("cancel", {"id": -1}), ("status", {"ids": "x"}),
       ("status", {"ids": [1.5]}), ("submit", {}), ("submit", {"job": []}), ("submit", {"job": {"size": 5}}),
       ("submit", {"job": {"width": "5"}}), ("submit", {"job": {}, "name": 5}),
       ("open", {"id": 1}), ("open", {"id": 1, "what": "soul"}), ("read", {"handle": 12345, "offset": 0, "length": 10}),
       ("poll", {"handle": 12345}), ("close", {"handle": "x"})]
for verb, args in bad:
    reply, more = call(verb, 6, **args)
    assert reply["status"] not in ("ok", "internal") and reply["error"] and not more, (verb, args, reply)
assert call("status", after=0, limit=10)[0]["result"]["jobs"] == []
alive()'
}

@test "extra frames are drained and refused" {
	peer '
s = socket()
frames = ask(s, request("hello", 3), b"more")
assert json.loads(frames[0])["status"] == "protocol", frames
frames = ask(s, *([b"x" * 100] * 2000))
assert frames is None or json.loads(frames[0])["status"] == "protocol"
assert json.loads(ask(s, request("hello", 4))[0])["seq"] == 4
alive()'
}

@test "a message over the limit is not taken" {
	peer '
s = socket()
s.send(b" " * (3 << 20))
s.poll(1000)
for _ in range(3):
    alive()'
}

@test "other socket types" {
	peer '
for kind in (zmq.REQ, zmq.PUSH, zmq.SUB, zmq.ROUTER, zmq.PAIR):
    s = context.socket(kind)
    s.linger = 0
    s.connect(endpoint)
    if kind in (zmq.REQ, zmq.PUSH, zmq.PAIR):
        try:
            s.send(request("hello"), zmq.DONTWAIT)
        except zmq.Again:
            pass
    s.poll(200)
    s.close()
alive()'
}

@test "bytes on the socket that are not ZeroMQ" {
	peer '
import socket as sockets, random
for n in range(20):
    s = sockets.socket(sockets.AF_UNIX)
    s.connect(endpoint[6:])
    s.send(random.randbytes(1 + 50 * n))
    s.close()
alive()'
}

@test "a client written from mandelq-protocol(7) alone gets its picture" {
	peer '
import hashlib, time
job = {"width": 320, "height": 200, "view": ["-2.25", "0.95", "-1", "1"], "iterations": 100}
submitted = [call("submit", 10 + n, job=job, request_id="peer")[0]["result"] for n in range(2)]
assert [r["id"] for r in submitted] == [1, 1] and [r["existing"] for r in submitted] == [False, True]
end = time.time() + 30
while True:
    row = call("status", ids=[1])[0]["result"]["jobs"][0]
    if row["state"] == "done":
        break
    assert time.time() < end and row["state"] not in ("failed", "cancelled"), row
    time.sleep(0.05)
s = socket()
opened = call("open", s=s, id=1, what="picture")[0]["result"]
while not opened["ready"]:
    opened = call("poll", s=s, handle=opened["handle"])[0]["result"]
data = b""
while len(data) < opened["bytes"]:
    reply, more = call("read", s=s, handle=opened["handle"], offset=len(data), length=1000)
    assert len(more) == 1 and reply["result"]["bytes"] == len(more[0]) <= 1000
    assert reply["result"]["crc32"] == zlib.crc32(more[0])
    data += more[0]
assert hashlib.sha256(data).hexdigest() == opened["sha256"] == row["output"]["sha256"]
assert call("read", s=s, handle=opened["handle"], offset=0, length=2 << 20)[0]["status"] != "ok"
assert call("close", s=s, handle=opened["handle"])[0]["status"] == "ok"
assert call("read", s=s, handle=opened["handle"], offset=0, length=1)[0]["status"] != "ok"
assert call("status", ids=[99])[0]["status"] == "no-such-job"'
}
