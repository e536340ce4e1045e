"""What the fault tests share: a real mandelqd with a state directory of its own, a client that speaks
its protocol, the jobs that they render, and the checks that hold after every fault.

Everything waits with a limit; a worker that is still there when its rig is closed is killed by its id.
Loaded by run.py, which names the build to test."""
import hashlib
import io
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import tempfile
import time
import zlib

import zmq

BUILD = os.environ.get("MQ_BUILD", "")
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CONTEXT = zmq.Context()

# Quick jobs of all kinds: kept counts; colour, two strips; gray, six strips in six tiles.
JOBS = {
    "counts": {"width": 300, "height": 200, "view": ["-2.25", "0.75", "-1", "1"], "iterations": 200,
               "palette": "gray", "keep_counts": True},
    "colour": {"width": 600, "height": 700, "center": ["-0.7453", "0.1127"], "zoom": "150",
               "iterations": 300},
    "strips": {"width": 4096, "height": 1500, "view": ["-2", "0.5", "-1.2", "1.2"], "iterations": 50,
               "palette": "gray"},
}
# 48 tiles of one strip, each about the tenth of a second that tiles aim at.
LONG = {"width": 1024, "height": 49152, "view": ["-0.7501", "-0.7499", "0.005", "0.0146"],
        "iterations": 200, "palette": "gray", "keep_counts": True}


def build_shim(name, folder):
    """What is preloaded into a worker; its path."""
    path = f"{folder}/{name}.so"
    subprocess.run([os.environ.get("CC", "gcc"), "-shared", "-fPIC", "-O1", "-o", path,
                    f"{SOURCE}/tests/fault/{name}.c", "-ldl", "-pthread"], check=True)
    return path


class Gone(Exception):
    """No reply: the worker has ended, or is not there."""


class Refused(Exception):
    def __init__(self, status, error):
        super().__init__(f"{status}: {error}")
        self.status, self.error = status, error


def check(condition, text):
    if not condition:
        raise AssertionError(text)


def until(seconds, condition, text):
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        check(time.monotonic() < end, f"not within {seconds} s: {text}")
        time.sleep(0.02)


class Client:
    """One DEALER socket. A call repeats its request until the worker has ended or the time is over."""

    def __init__(self, rig):
        self.rig = rig
        self.socket = None
        self.seq = random.getrandbits(40)

    def connect(self):
        self.close()
        self.socket = CONTEXT.socket(zmq.DEALER)
        self.socket.setsockopt(zmq.LINGER, 0)
        self.socket.connect(f"ipc://{self.rig.dir}/mandelqd.sock")

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None

    def call(self, verb, timeout=20, **args):
        end = time.monotonic() + timeout
        self.seq += 1
        text = json.dumps({"mandelq": 1, "seq": self.seq, "verb": verb, "args": args}).encode()
        while time.monotonic() < end:
            self.connect()
            self.socket.send(text)
            asked = time.monotonic()
            while time.monotonic() < min(end, asked + 2):
                if self.socket.poll(50):
                    frames = self.socket.recv_multipart()
                    reply = json.loads(frames[0])
                    if reply["seq"] != self.seq:
                        continue
                    if reply["status"] != "ok":
                        raise Refused(reply["status"], reply["error"])
                    return (reply["result"], frames[1]) if len(frames) > 1 else reply["result"]
                if self.rig.ended():
                    raise Gone(verb)
        raise Gone(f"{verb}: no reply in {timeout} s")

    def submit(self, job, request_id=None, name="", **more):
        return self.call("submit", job=job, name=name, request_id=request_id, **more)["id"]

    def row(self, job):
        return self.call("status", ids=[job])["jobs"][0]

    def rows(self):
        rows, after = [], 0
        while True:
            page = self.call("status", after=after, limit=200)
            rows += page["jobs"]
            if not page["more"]:
                return rows
            after = rows[-1]["id"]

    def fetch(self, job, what, region=None):
        state = self.call("open", id=job, what=what, region=region)
        end = time.monotonic() + 30
        while not state["ready"]:
            check(time.monotonic() < end, f"{what} of job {job} is not ready")
            time.sleep(0.01)
            state = self.call("poll", handle=state["handle"])
        data = io.BytesIO()
        while data.tell() < state["bytes"]:
            said, part = self.call("read", handle=state["handle"], offset=data.tell(), length=1 << 20)
            check(said["crc32"] == zlib.crc32(part) and said["bytes"] == len(part) > 0,
                  f"{what} of job {job}, byte {data.tell()}: another CRC-32 than was sent")
            data.write(part)
        found = hashlib.sha256(data.getvalue()).hexdigest()
        check(state["sha256"] in (None, found), f"{what} of job {job} has SHA-256 {found}")
        self.call("close", handle=state["handle"], kept=True)
        return data.getvalue()

    def outputs(self, job, spec):
        """All that a user can get of a job."""
        out = {"picture": self.fetch(job, "picture"), "preview": self.fetch(job, "preview"),
               "region": self.fetch(job, "picture", [7, 11, 100, 90])}
        if spec.get("keep_counts"):
            out["counts"] = self.fetch(job, "counts")
            out["smooth"] = self.fetch(job, "smooth")
        return out

    def wait_done(self, jobs, seconds=60):
        def all_done():
            rows = self.call("status", ids=list(jobs))["jobs"]
            for row in rows:
                check(row["state"] not in ("failed", "cancelled"),
                      f"job {row['id']} is {row['state']}: {row['error']}")
            return all(row["state"] == "done" for row in rows)

        until(seconds, all_done, f"jobs {list(jobs)} done")


class Rig:
    """A state directory and the worker on it."""

    def __init__(self, top=None):
        self.root = tempfile.mkdtemp(prefix="mqf", dir="/tmp")
        self.top = top or self.root
        self.dir = os.path.join(self.top, "s")
        self.log = os.path.join(self.root, "log")
        self.process = None
        self.started = 0.0
        self.clients = []
        self.client = self.new_client()

    def new_client(self):
        client = Client(self)
        self.clients.append(client)
        return client

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        for client in self.clients:
            client.close()
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if kind is not None:
            with open(self.log, errors="replace") as f:
                print("".join("# " + line for line in f.readlines()[-25:]), end="", flush=True)
        shutil.rmtree(self.root, ignore_errors=True)

    def start(self, *options, failpoints="", env=None, ready=True):
        """Returns the seconds until it answers. With ready=False it may end before that: None."""
        check(self.ended(), "two workers in one rig")
        everything = {"PATH": "/usr/bin:/bin", "HOME": self.root}
        if failpoints:
            everything["MANDELQ_FAILPOINTS"] = failpoints
        everything.update(env or {})
        self.started = time.monotonic()
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                [f"{BUILD}/mandelqd", f"--state-dir={self.dir}", "--device=cpu", "--threads=2",
                 *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=everything)
        try:
            self.client.call("hello", timeout=30)
        except Gone:
            check(not ready, f"the worker does not start (exit {self.process.poll()})")
            return None
        return time.monotonic() - self.started

    def ended(self):
        return self.process is None or self.process.poll() is not None

    def kill(self):
        self.process.kill()
        return self.process.wait()

    def stop(self):
        self.process.terminate()
        code = self.process.wait(timeout=15)
        check(code == 0, f"SIGTERM: exit {code}")

    def wait_end(self, seconds=20):
        until(seconds, self.ended, "the worker ends")
        return self.process.returncode

    def managed(self, failpoints, jobs, faults, over, seconds=60):
        """As under a service manager, which starts the worker again whenever it ends: {name: id} of the jobs,
        and how often it has ended, as soon as over({name: row}) holds."""
        self.start(failpoints=failpoints, ready=False)
        acknowledged, ends, end = {}, 0, time.monotonic() + seconds
        while True:
            check(time.monotonic() < end, f"not over after {seconds} s and {ends} ends")
            try:
                for name, job in jobs.items():
                    if name not in acknowledged:
                        acknowledged[name] = self.client.submit(job, request_id=name)
                if over({name: self.client.row(job) for name, job in acknowledged.items()}):
                    return acknowledged, ends
                time.sleep(0.02)
            except Gone:
                ends += 1
                self.wait_end()
                faults.add(self.start(failpoints=failpoints, ready=False))

    def text(self):
        with open(self.log, errors="replace") as f:
            return f.read()

    def memory_kib(self, field):
        with open(f"/proc/{self.process.pid}/status") as f:
            return int(re.search(rf"^{field}:\s+(\d+) kB", f.read(), re.M).group(1))

    # ---- what holds after a fault ----

    def scratch(self):
        """What is left over of jobs that have ended."""
        left = []
        for base, folders, files in os.walk(self.dir):
            inside = os.path.relpath(base, self.dir)
            left += [os.path.join(inside, f) for f in files if f.startswith(".") or f.endswith(".mqt")]
            if inside == "work":
                left += [os.path.join(inside, f) for f in folders]
        return left

    def check_tidy(self):
        until(5, lambda: not self.scratch(), f"scratch files are gone: {self.scratch()[:3]}")

    def database(self):
        """A copy of the database, as the worker would find it at its next start."""
        folder = tempfile.mkdtemp(dir=self.root)
        for name in ("mandelq.db", "mandelq.db-wal"):
            if os.path.exists(f"{self.dir}/{name}"):
                shutil.copy(f"{self.dir}/{name}", folder)
        db = sqlite3.connect(f"{folder}/mandelq.db")
        check(db.execute("PRAGMA quick_check").fetchall() == [("ok",)], "quick_check")
        check(not db.execute("PRAGMA foreign_key_check").fetchall(), "foreign_key_check")
        return db

    def check_history(self, acknowledged):
        """acknowledged: {request id: job id}. Every one is there and done, every strip once."""
        db = self.database()
        rows = dict(db.execute("SELECT request_id, id FROM jobs WHERE request_id IS NOT NULL"))
        for request, job in acknowledged.items():
            check(rows.get(request) == job, f"{request} was job {job} and is {rows.get(request)}")
        for job, state, strips in db.execute("SELECT id, state, strips_total FROM jobs"):
            if state != "done":
                check(job not in acknowledged.values(), f"job {job} is {state}")
                continue
            tiles = db.execute("SELECT strip_first, strip_count, state, id, file_attempt FROM tiles"
                               " WHERE job = ? AND state <> 'split' ORDER BY 1", (job,)).fetchall()
            at = 0
            for first, count, tile_state, tile, attempt in tiles:
                check(first == at and tile_state == "done", f"job {job}, strip {at}: {tile_state}")
                at += count
                done = [a for a, in db.execute("SELECT id FROM attempts WHERE tile = ?"
                                               " AND outcome = 'done'", (tile,))]
                check(done == [attempt], f"job {job}, tile {tile}: attempts {done} are done")
            check(at == strips, f"job {job}: {at} of {strips} strips")
        open_attempts = db.execute("SELECT count(*) FROM attempts WHERE outcome IS NULL").fetchone()
        check(open_attempts == (0,), f"{open_attempts[0]} attempts never ended")
        db.close()


_references = {}


def reference(name, spec):
    """The outputs of an uninterrupted run."""
    if name not in _references:
        with Rig() as rig:
            rig.start()
            job = rig.client.submit(spec)
            rig.client.wait_done([job], 120)
            _references[name] = rig.client.outputs(job, spec)
    return _references[name]


def check_outputs(client, name, job, spec):
    found, wanted = client.outputs(job, spec), reference(name, spec)
    for what in wanted:
        if found[what] == wanted[what]:
            continue
        at = next((n for n, (a, b) in enumerate(zip(found[what], wanted[what])) if a != b), "the end")
        check(False, f"job {job} ({name}): another {what}, {len(found[what])} bytes instead of"
                     f" {len(wanted[what])}, from {at} on")


def submit_all(client, acknowledged):
    """Submits the quick jobs as a client does that repeats its requests."""
    for name, spec in JOBS.items():
        job = client.submit(spec, request_id=name, name=name)
        check(acknowledged.setdefault(name, job) == job, f"{name} was {acknowledged[name]}, is {job}")


def finish_and_check(rig, acknowledged, seconds=60):
    """After the fault: no user action beyond repeated requests, and all is as if it had not been."""
    known = {row["id"]: row for row in rig.client.rows()}
    for name, job in acknowledged.items():
        check(job in known and known[job]["name"] == name, f"acknowledged job {job} is gone")
    submit_all(rig.client, acknowledged)
    rig.client.wait_done(acknowledged.values(), seconds)
    for name, job in acknowledged.items():
        check_outputs(rig.client, name, job, JOBS[name])
    rig.check_tidy()
    rig.kill()
    rig.check_history(acknowledged)


class Faults:
    """One line of the report."""

    def __init__(self, what):
        self.what, self.tried, self.recovery = what, 0, []

    def add(self, seconds=None):
        self.tried += 1
        if seconds is not None:
            self.recovery.append(seconds)

    def line(self):
        took = f"{sum(self.recovery) / len(self.recovery):.2f} s, at most {max(self.recovery):.2f} s" \
            if self.recovery else "none needed"
        return f"{self.what} | {self.tried} | nothing | {took}"
