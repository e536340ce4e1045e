"""Peers that mean harm, for hostile.bats: raw connections that speak as much of ZMTP 3.0 as they like.

What the worker's memory does meanwhile is sampled from outside. WORKER is its process id."""
import json
import os
import socket
import struct
import sys
import threading
import time

import zmq

STATE = os.environ["MANDELQ_STATE_DIR"]
PATH = STATE + "/mandelqd.sock"
EVENTS = PATH + ".events"
WORKER = int(os.environ.get("WORKER", "0"))
MIB = 1 << 20

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)


def ready(kind):
    def pair(name, value):
        return bytes([len(name)]) + name + struct.pack(">I", len(value)) + value

    body = b"\x05READY" + pair(b"Socket-Type", kind) + pair(b"Identity", b"")
    return bytes([4, len(body)]) + body


def frame(body, more=False):
    if len(body) < 256:
        return bytes([more, len(body)]) + body
    return bytes([2 | more]) + struct.pack(">Q", len(body)) + body


def connect(path=PATH):
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(20)
    end = time.time() + 10
    while True:
        try:
            s.connect(path)
            return s
        except (BlockingIOError, ConnectionRefusedError):
            assert time.time() < end, "cannot connect"
            time.sleep(0.01)


def read_exactly(s, n):
    data = b""
    while len(data) < n:
        part = s.recv(n - len(data))
        if not part:
            raise ConnectionResetError
        data += part
    return data


def peer(path=PATH, kind=b"DEALER"):
    """A raw connection that has shaken hands."""
    s = connect(path)
    s.sendall(GREETING)
    read_exactly(s, 64)
    s.sendall(ready(kind))
    read_exactly(s, read_exactly(s, 2)[1])
    return s


def request(verb, seq=1, **args):
    return json.dumps({"mandelq": 1, "seq": seq, "verb": verb, "args": args}).encode()


_context = zmq.Context()


def dealer():
    s = _context.socket(zmq.DEALER)
    s.linger = 0
    s.connect("ipc://" + PATH)
    return s


def call(verb, **args):
    """As a client does: asks again with the same words when no reply comes."""
    end = time.time() + 20
    while time.time() < end:
        s = dealer()
        s.send(request(verb, **args))
        if s.poll(1700):
            reply = json.loads(s.recv_multipart()[0])
            s.close()
            return reply
        s.close()
    raise AssertionError("not served: " + verb)


def alive():
    reply = call("hello")
    assert reply["status"] == "ok", reply
    return reply["result"]


def resident():
    """MiB of the worker's memory that are no file's."""
    with open("/proc/%d/status" % WORKER) as f:
        for line in f:
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) / 1024
    raise AssertionError("no RssAnon")


def gives_back(before):
    """Some MiB beside what there was before peers came are the heap's own."""
    end = time.time() + 10
    while resident() > before + 16:
        assert time.time() < end, (before, resident())
        time.sleep(0.05)


def switches():
    """How often the worker's threads have gone to sleep of their own will, in all."""
    total = 0
    for task in os.listdir("/proc/%d/task" % WORKER):
        with open("/proc/%d/task/%s/status" % (WORKER, task)) as f:
            total += sum(int(l.split()[1]) for l in f if l.startswith("voluntary_ctxt"))
    return total


class Watch:
    """Samples the worker's memory, and asks as another client would."""

    def __enter__(self):
        self.before = resident()
        self.peak, self.served, self.slowest, self.stop = self.before, 0, 0.0, False
        self.failed = None
        self.threads = [threading.Thread(target=f) for f in (self.sample, self.ask)]
        for t in self.threads:
            t.start()
        return self

    def sample(self):
        while not self.stop:
            self.peak = max(self.peak, resident())
            time.sleep(0.01)

    def ask(self):
        try:
            while not self.stop:
                begun = time.time()
                alive()
                self.served += 1
                self.slowest = max(self.slowest, time.time() - begun)
                time.sleep(0.05)
        except AssertionError as e:
            self.failed = e

    def __exit__(self, kind, *_):
        self.stop = True
        for t in self.threads:
            t.join()
        print("memory %.0f MiB, at most %.0f, now %.0f; %d requests, the slowest took %.2f s"
              % (self.before, self.peak, resident(), self.served, self.slowest), file=sys.stderr)
        if kind is None:
            assert self.failed is None and self.served > 0, self.failed


def flood(path, kind, body, cuts):
    """Frames of a message that never ends, from a connection that is made anew whenever it is cut, until
    it has been cut so often. How much was sent, in MiB."""
    block = frame(body, more=True) * max(1, MIB // (len(body) + 9))
    end, sent = time.time() + 60, 0
    s = None
    while cuts:
        assert time.time() < end, "%d MiB sent and never cut" % (sent / MIB)
        try:
            if not s:
                s = peer(path, kind)
            s.sendall(block)
            sent += len(block)
        except (ConnectionError, BrokenPipeError, socket.timeout):
            cuts -= 1
            s = None
    return sent / MIB
