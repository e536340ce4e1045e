"""What the Python parts of the bench share: a program's CPU seconds, wall time and peak memory, its
descendants included, and a worker to talk to.
"""
import contextlib
import ctypes
import json
import os
import subprocess
import sys
import tempfile
import time

PR_SET_CHILD_SUBREAPER = 36
CLOCK = os.sysconf("SC_CLK_TCK")


def program(argv, **popen):
    """Runs argv to its end and returns what it and all that it started used. Orphans come to this process
    (subreaper), so a private worker is counted whoever waits for it. Call it while no other child runs.
    """
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    used = {"cpu_s": 0.0, "peak_rss_kib": 0, "status": None}
    begin = time.monotonic()
    child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, **popen)
    while True:
        try:
            pid, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            break
        used["cpu_s"] += usage.ru_utime + usage.ru_stime
        used["peak_rss_kib"] = max(used["peak_rss_kib"], usage.ru_maxrss)
        if pid == child.pid:
            used["wall_s"] = time.monotonic() - begin
            used["status"] = child.returncode = os.waitstatus_to_exitcode(status)
    return used


def cpu_seconds(path):
    """Of a process or a thread: path is its folder in /proc."""
    with open(path + "/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / CLOCK


def request(seq, verb, **args):
    return json.dumps({"mandelq": 1, "seq": seq, "verb": verb, "args": args}).encode()


def call(socket, verb, **args):
    socket.send(request(2**40, verb, **args))
    assert socket.poll(20000), "no answer"
    reply = json.loads(socket.recv())
    assert reply["status"] == "ok", reply
    return reply["result"]


@contextlib.contextmanager
def worker(build, *options, device="cpu"):
    """A mandelqd of its own; gives its process id and its endpoint. Its state lies in MQ_BENCH_DIR, or in
    the folder for temporary files.
    """
    with tempfile.TemporaryDirectory(prefix="mqb", dir=os.environ.get("MQ_BENCH_DIR")) as folder:
        with open(folder + "/log", "wb") as log:
            process = subprocess.Popen([build + "/mandelqd", "--state-dir", folder + "/s", "--device=" + device,
                                        "--log-level=warn", *options], stderr=log)
        try:
            yield process.pid, f"ipc://{folder}/s/mandelqd.sock"
        finally:
            process.terminate()
            process.wait()


def emit(figure, **values):
    print(json.dumps({"figure": figure, **values}))
    sys.stdout.flush()
