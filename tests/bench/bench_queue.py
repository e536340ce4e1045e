#!/usr/bin/python3
"""How many small jobs a second the worker takes and finishes, all durable.

bench_queue.py BUILD_DIR [JOBS [CLIENTS]]: has CLIENTS clients submit JOBS jobs of 64 x 64 pixels as fast as
answers come, and waits for the last. Prints one line of JSON. Commits are counted by the worker (mandelq
metrics); CPU seconds are those of its main thread, through which every job goes, and of all its threads.
MQ_BENCH_DIR chooses the disk that the figures hold for.
"""
import json
import sys
import time

import zmq

from measured import call, cpu_seconds, emit, request, worker

build = sys.argv[1]
jobs = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
clients = int(sys.argv[3]) if len(sys.argv) > 3 else 16


def metric(s, name):
    for line in call(s, "metrics")["text"].splitlines():
        if line.startswith(name + " "):
            return int(line.split()[1])
    raise AssertionError("the metrics have no " + name)


def commits(s):
    return metric(s, "mandelq_commit_seconds_count")


def job(n):
    view = {"width": 64, "height": 64, "palette": "gray", "iterations": 100 + n % 7}
    return request(n + 1, "submit", job=view, request_id=f"bench-{n}")


def submit_all(sockets):
    """Each client sends its next job when it has the answer to the last one."""
    poller = zmq.Poller()
    sent = answered = 0
    for s in sockets:
        poller.register(s, zmq.POLLIN)
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


def measure(pid, endpoint):
    context = zmq.Context()
    sockets = []
    for _ in range(clients):
        s = context.socket(zmq.DEALER)
        s.linger = 0
        s.connect(endpoint)
        sockets.append(s)
    first = commits(sockets[0])
    begin = time.monotonic()
    submit_all(sockets)
    submitted = time.monotonic()
    shared = jobs / (commits(sockets[0]) - first)
    while metric(sockets[0], 'mandelq_jobs{state="done"}') < jobs:
        time.sleep(0.02)
    finished = time.monotonic()
    emit("queue", jobs=jobs, clients=clients, submits_per_s=round(jobs / (submitted - begin)),
         finished_per_s=round(jobs / (finished - begin)), submits_per_commit=round(shared, 1),
         commits=commits(sockets[0]) - first,
         main_thread_cpu_ms_per_job=round(1e3 * cpu_seconds(f"/proc/{pid}/task/{pid}") / jobs, 2),
         cpu_ms_per_job=round(1e3 * cpu_seconds(f"/proc/{pid}") / jobs, 2))
    for s in sockets:
        s.close()
    context.term()


with worker(build) as (pid, endpoint):
    measure(pid, endpoint)
