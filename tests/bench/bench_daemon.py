#!/usr/bin/python3
"""How quickly a busy worker answers, and how little an idle one does.

bench_daemon.py BUILD_DIR [REQUESTS [IDLE_SECONDS]]: prints two lines of JSON. The latency is that of the
verb behind `mandelq status`, seen by a client on the same machine while every core renders. Wake-ups are
the voluntary context switches of all the worker's threads, after it has rendered and become idle.
"""
import glob
import sys
import time

import zmq

from measured import call, emit, worker

build = sys.argv[1]
requests = int(sys.argv[2]) if len(sys.argv) > 2 else 500
idle_seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 30

# Between the cardioid and the disc left of it no shortcut applies: minutes of work for any machine.
ENDLESS = {"width": 1024, "height": 8192, "palette": "gray", "iterations": 1000000,
           "view": ["-0.75000000015", "-0.75000000005", "0.0000099996", "0.0000100004"]}


def connected(endpoint):
    s = zmq.Context.instance().socket(zmq.DEALER)
    s.linger = 0
    s.connect(endpoint)
    call(s, "hello")
    return s


def latency():
    with worker(build) as (_, endpoint):
        s = connected(endpoint)
        for n in range(100):
            call(s, "submit", job={"width": 64, "height": 64, "iterations": 100}, request_id=f"small-{n}")
        call(s, "submit", job=ENDLESS, request_id="endless")
        time.sleep(2)
        took = []
        for _ in range(requests):
            begin = time.monotonic()
            call(s, "status")
            took.append(1e3 * (time.monotonic() - begin))
            time.sleep(0.005)
        busy = [j for j in call(s, "status")["jobs"] if j["state"] == "running"]
        assert busy, "nothing was being rendered"
        call(s, "cancel", id=busy[0]["id"])
        s.close()
    took.sort()
    emit("status while all cores render", requests=requests, p50_ms=round(took[len(took) // 2], 3),
         p99_ms=round(took[len(took) * 99 // 100], 3), max_ms=round(took[-1], 3))


def wakeups(pid):
    total = 0
    for path in glob.glob(f"/proc/{pid}/task/*/status"):
        with open(path) as f:
            total += sum(int(x.split()[1]) for x in f if x.startswith("voluntary_ctxt_switches"))
    return total


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as f:
        return next(int(x.split()[1]) for x in f if x.startswith("VmRSS"))


def idle():
    with worker(build, "--idle-release=1") as (pid, endpoint):
        s = connected(endpoint)
        fresh = resident_kib(pid)
        call(s, "submit", job={"width": 2048, "height": 2048, "iterations": 1000}, request_id="one")
        while call(s, "status")["jobs"][0]["state"] != "done":
            time.sleep(0.05)
        s.close()
        time.sleep(15) # the watchdog looks once more
        before = wakeups(pid)
        time.sleep(idle_seconds)
        emit("idle worker", seconds=idle_seconds, wakeups=wakeups(pid) - before,
             resident_mib=round(resident_kib(pid) / 1024, 1), resident_fresh_mib=round(fresh / 1024, 1))


latency()
idle()
