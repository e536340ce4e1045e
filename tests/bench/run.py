#!/usr/bin/python3
"""The benches, one after the other: JSON lines into a file, then a table of what the figures are to reach.

run.py BUILD_DIR [--out=FILE] [--only=NAME[,NAME]] [--brief]
    names: cpu png shallow queue daemon reference, and cuda and warm where there is a GPU; --brief takes smaller pictures and fewer repeats.

`make bench` calls it; BENCHMARKS.md says how each figure is made and what it came to. A figure that misses its
mark is shown as such and is no failure: only a bench that breaks is. Each line has the load average
from before its bench; another's work costs wall time and shared caches.
"""
import argparse
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"  # where python3-zmq is


def benches(build, brief):
    def built(name, *arguments):
        return [f"{build}/tests/bench/{name}", *arguments]

    def script(name, *arguments):
        return [PYTHON, f"{HERE}/{name}.py", build, *arguments]

    scratch = os.environ.get("MQ_BENCH_DIR") or os.environ.get("TMPDIR") or "/tmp"
    found = {
        "cpu": built("bench_cpu", "2048" if brief else "4096", "2" if brief else "3"),
        "png": built("bench_png", scratch, "2048" if brief else "8192", "2" if brief else "3"),
        "shallow": script("bench_render", "shallow", "1" if brief else "3"),
        "queue": script("bench_queue", "200" if brief else "1000", "16"),
        "daemon": script("bench_daemon", "100" if brief else "500", "5" if brief else "30"),
        "reference": script("bench_render", "reference", "8192" if brief else "65536"),
    }
    if os.path.exists("/dev/nvidiactl") and os.path.exists(f"{build}/tests/bench/bench_cuda"):
        found["cuda"] = built("bench_cuda", "16384" if brief else "65536", "10000", "plain")
        found["warm"] = script("bench_render", "warm", "8192" if brief else "65536")
    return found


# figure, the key in its line, how it reads, and what it must reach.
MARKS = [
    ("never-escaping points", "share", "share of the FMA bound", ">=", 0.85),
    ("reference view, mirror", "times", "times the plain loop", ">=", 480),
    ("reference view, mirror", "pixels_differ", "pixels that differ", "<=", 0),
    ("reference view, no mirror", "times", "times the plain loop", ">=", 257),
    ("reference view, no mirror", "pixels_differ", "pixels that differ", "<=", 0),
    ("dense boundary", "times", "times the plain loop", ">=", 8),
    ("dense boundary", "pixels_differ", "pixels that differ", "<=", 0),
    ("shallow view, whole program", "share_of_better_rival", "CPU seconds of the better rival's", "<=", 0.2),
    ("PNG, gray", "times", "times libpng's speed", ">=", 25),
    ("PNG, gray", "size_ratio", "of libpng's size", "<=", 1.2),
    ("PNG, RGB", "times", "times libpng's speed", ">=", 25),
    ("PNG, RGB", "size_ratio", "of libpng's size", "<=", 1.2),
    ("PNG, gray, compression small", "times", "times libpng's speed", ">=", 4),
    ("PNG, gray, compression small", "size_ratio", "of libpng's size", "<=", 1.0),
    ("PNG, RGB, compression small", "times", "times libpng's speed", ">=", 4),
    ("PNG, RGB, compression small", "size_ratio", "of libpng's size", "<=", 1.0),
    ("reference job", "wall_s", "s, submit to durable", "<=", 15),
    ("reference job", "peak_rss_mib", "MiB at its peak", "<=", 512),
    ("queue", "submits_per_commit", "submits a commit", ">=", 4),
    ("queue", "submits_per_s", "submits a second", ">=", 700),
    ("queue", "finished_per_s", "finished jobs a second", ">=", 300),
    ("status while all cores render", "p99_ms", "ms at the 99th percentile", "<=", 50),
    ("GPU kernels", "ms", "ms, all tiles of the reference job", "<=", 80),
    ("GPU kernels", "pixels_differ", "pixels that differ", "<=", 0),
    ("GPU without shortcuts", "t_iterations_per_s", "T iterations a second", ">=", 3.5),
    ("reference job, GPU", "wall_s", "s, submit to durable", "<=", 0.6),
    ("reference job, GPU, RGB", "wall_s", "s, submit to durable", "<=", 2),
    ("idle worker", "wakeups", "wake-ups", "<=", 0),
    ("idle worker", "resident_mib", "MiB resident", "<=", 30),
]


def run(name, argv, out):
    """The bench's lines, also written to out. None if it broke."""
    load = round(os.getloadavg()[0], 2)
    print(f"bench: {name}", file=sys.stderr, flush=True)
    done = subprocess.run(argv, stdout=subprocess.PIPE, text=True)
    lines = []
    for text in done.stdout.splitlines():
        line = {**json.loads(text), "bench": name, "load_before": load}
        lines.append(line)
        print(json.dumps(line), file=out, flush=True)
    if done.returncode:
        print(f"bench: {name} ended with {done.returncode}", file=sys.stderr)
        return None
    return lines


def table(lines):
    print(f"{'figure':34} {'isa':7} {'value':>10}  {'reach':>9}  {'':6} what")
    for figure, key, what, sign, reach in MARKS:
        for line in lines:
            value = line.get(key)
            if line["figure"] != figure or value is None:
                continue
            reached = value >= reach if sign == ">=" else value <= reach
            print(f"{figure:34} {line.get('isa', ''):7} {value:>10}  {sign} {reach:>6}  "
                  f"{'' if reached else 'missed':6} {what}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--out", default="bench.jsonl")
    parser.add_argument("--only", default="")
    parser.add_argument("--brief", action="store_true")
    options = parser.parse_args()
    all_benches = benches(os.path.abspath(options.build), options.brief)
    wanted = options.only.split(",") if options.only else list(all_benches)
    unknown = [name for name in wanted if name not in all_benches]
    if unknown:
        parser.error(f"no bench is called {unknown[0]}: {' '.join(all_benches)}")
    lines, broken = [], 0
    with open(options.out, "w") as out:
        for name in wanted:
            found = run(name, all_benches[name], out)
            broken += found is None
            lines += found or []
    table(lines)
    return 1 if broken else 0


sys.exit(main())
