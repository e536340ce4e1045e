#!/usr/bin/python3
"""How many small jobs a second the worker takes and finishes, all durable.

queue.py BUILD_DIR [JOBS [CLIENTS]]: starts a mandelqd of its own, has CLIENTS clients submit JOBS jobs of
64 x 64 pixels as fast as answers come, and waits for the last. Prints one line of JSON.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

import zmq

build = sys.argv[1]
jobs = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
clients = int(sys.argv[3]) if len(sys.argv) > 3 else 16


def main():
    with tempfile.TemporaryDirectory(prefix="mqb", dir=os.environ.get("MQ_BENCH_DIR")) as state:
        log = open(os.path.join(state, "log"), "wb")
        worker = subprocess.Popen(
            [os.path.join(build, "mandelqd"), "--state-dir", state + "/s", "--device=cpu", "--log-level=warn"],
            stderr=log)
        try:
            print(json.dumps(measure(f"ipc://{state}/s/mandelqd.sock")))
        finally:
            worker.terminate()
            worker.wait()


def request(seq, verb, **args):
    return json.dumps({"mandelq": 1, "seq": seq, "verb": verb, "args": args}).encode()


def measure(endpoint):
    context = zmq.Context()
    poller = zmq.Poller()
    sockets = []
    for _ in range(clients):
        s = context.socket(zmq.DEALER)
        s.linger = 0
        s.connect(endpoint)
        poller.register(s, zmq.POLLIN)
        sockets.append(s)
    call(sockets[0], "hello")
    sent = answered = 0
    begin = time.monotonic()
    for s in sockets:
        s.send(job(sent))
        sent += 1
    while answered < jobs:
        for s, _ in poller.poll(5000):
            reply = json.loads(s.recv())
            assert reply["status"] == "ok", reply
            answered += 1
            if sent < jobs:
                s.send(job(sent))
                sent += 1
    submitted = time.monotonic()
    while unfinished(sockets[0]):
        time.sleep(0.01)
    finished = time.monotonic()
    hello = call(sockets[0], "hello")
    result = {
        "bench": "queue", "jobs": jobs, "clients": clients,
        "submits_per_second": round(jobs / (submitted - begin), 1),
        "finished_per_second": round(jobs / (finished - begin), 1),
    }
    if "commits" in hello:
        result["commits"] = hello["commits"]
    for s in sockets:
        s.close()
    context.term()
    return result


def job(n):
    view = {"width": 64, "height": 64, "palette": "gray", "iterations": 100 + n % 7}
    return request(n + 1, "submit", job=view, request_id=f"bench-{n}")


def call(s, verb, **args):
    s.send(request(2**40, verb, **args))
    assert s.poll(20000), "no answer"
    reply = json.loads(s.recv())
    assert reply["status"] == "ok", reply
    return reply["result"]


def unfinished(s):
    """The last jobs end last, so the newest page is enough to look at first."""
    for job in call(s, "status", after=max(0, jobs - 200))["jobs"]:
        if job["state"] != "done":
            return True
    after = 0
    while True:
        page = call(s, "status", after=after)
        if any(j["state"] != "done" for j in page["jobs"]):
            return True
        if not page["more"]:
            return False
        after = page["jobs"][-1]["id"]


main()
