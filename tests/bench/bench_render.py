#!/usr/bin/python3
"""Whole programs, from their start to the picture on disk, beside their rivals in the same run.

bench_render.py BUILD_DIR shallow [REPEATS] | reference [SIDE] | warm [SIDE]: prints lines of JSON. CPU seconds and peak
memory are of a program and of all that it starts; a private worker is part of `mandelq render`. Rivals that
are not installed are left out. Pictures go to MQ_BENCH_DIR, or the folder for temporary files.

shallow: 1920 x 1080 at -0.743643887037151, 0.131825904205330, zoom 1e4, 5000 iterations, the best of the
repeats, which take turns. fractalnow interpolates and XaoS guesses by their own defaults; mandelq computes
every pixel.
reference: -2..2 squared, 10000 iterations, gray, SIDE x SIDE (65536), once.
warm: the same three times, then in colour and smooth, on a worker with a GPU that has rendered before: from
created to finished, by the worker's own times.
"""
import datetime
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from measured import emit, program, worker

build = sys.argv[1]
VIEW = "-0.743643887037151 0.131825904205330 0.000711111111111111 0.0004"
FRACTALNOW = f"""C075
MANDELBROT
{VIEW}
2 5000
1
0x0
ITERATIONCOUNT
SMOOTH
IDENTITY
0.015 0
0.0 0x0 0.5 0xFFFFFF 1.0 0x0
"""
XAOS = f"""(initstate)
(defaultpalette 0)
(formula 'mandel)
(maxiter 5000)
(view {VIEW})
(usleep 10)
"""
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    return path


def environment(folder):
    """For XaoS no screen, for mandelq no worker that happens to run."""
    runtime = folder + "/run"
    os.makedirs(runtime, mode=0o700, exist_ok=True)
    return {**os.environ, "QT_QPA_PLATFORM": "offscreen", "XDG_RUNTIME_DIR": runtime, "HOME": folder}


def render(folder, *options):
    picture = folder + "/picture.png"
    used = program([build + "/mandelq", "render", "--quiet", "--force", "-o", picture, *options],
                   env=environment(folder), stderr=subprocess.DEVNULL)
    assert used["status"] == 0, used
    used["bytes"] = os.path.getsize(picture)
    return used


def shallow(repeats):
    with tempfile.TemporaryDirectory(prefix="mqb", dir=os.environ.get("MQ_BENCH_DIR")) as folder:
        env = environment(folder)
        rivals = {
            "fractalnow": ["-j", "1", "-l", "double", "-c", write(folder + "/fn.config", FRACTALNOW), "-x",
                           "1920", "-y", "1080", "-o", folder + "/fn.ppm"],
            "xaos": ["-render", write(folder + "/x.xaf", XAOS), "-basename", folder + "/x", "-size",
                     "1920x1080", "-threads", "1"],
        }
        wrote = {"fractalnow": folder + "/fn.ppm", "xaos": folder + "/x000000.png"}
        best = {}
        for _ in range(repeats):
            ours = render(folder, "--size=1920x1080", "--center=-0.743643887037151,0.131825904205330",
                          "--zoom=1e4", "--iterations=5000")
            best["mandelq"] = min(best.get("mandelq", 1e9), ours["cpu_s"])
            for name, arguments in rivals.items():
                if shutil.which(name):
                    used = program([name, *arguments], env=env, **QUIET)
                    assert used["status"] == 0 and os.path.getsize(wrote[name]) > 100000, name
                    best[name] = min(best.get(name, 1e9), used["cpu_s"])
        rival = min((v for k, v in best.items() if k != "mandelq"), default=None)
        emit("shallow view, whole program", repeats=repeats,
             **{k + "_cpu_s": round(v, 3) for k, v in best.items()},
             share_of_better_rival=round(best["mandelq"] / rival, 3) if rival else None)


def reference(side):
    with tempfile.TemporaryDirectory(prefix="mqb", dir=os.environ.get("MQ_BENCH_DIR")) as folder:
        used = render(folder, f"--size={side}", "--view=-2,2,-2,2", "--iterations=10000", "--palette=gray")
        cores = len(os.sched_getaffinity(0))
        emit("reference job", side=side, cores=cores, wall_s=round(used["wall_s"], 2),
             cpu_s=round(used["cpu_s"], 2), cpu_s_by_cores=round(used["cpu_s"] / cores, 2),
             peak_rss_mib=round(used["peak_rss_kib"] / 1024, 1), bytes=used["bytes"])


def warm(side):
    with worker(build, "--device-memory=4G", device="cuda") as (pid, endpoint):
        def client(*arguments):
            done = subprocess.run([build + "/mandelq", *arguments, "--endpoint=" + endpoint], check=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            return done.stdout

        def rendered(size, *options):
            job = client("submit", "--view=-2,2,-2,2", "--iterations=10000", f"--size={size}", "--wait", "--quiet",
                         *options).strip()
            row = json.loads(client("status", "--json", job))[0]
            created, finished = (datetime.datetime.fromisoformat(row[k].replace("Z", "+00:00"))
                                 for k in ("created", "finished"))
            return round((finished - created).total_seconds(), 3), row

        for _ in range(300):  # a GPU takes seconds to be opened
            if subprocess.run([build + "/mandelq", "status", "--endpoint=" + endpoint], **QUIET).returncode == 0:
                break
            time.sleep(0.1)
        rendered(4096, "--palette=gray")
        best, row = min((rendered(side, "--palette=gray") for _ in range(3)), key=lambda pair: pair[0])
        with open(f"/proc/{pid}/status") as f:
            peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
        emit("reference job, GPU", side=side, wall_s=best, compute_s=row["compute_seconds"],
             bytes=row["output"]["bytes"], sha256=row["output"]["sha256"], peak_rss_mib=round(peak / 1024, 1))
        best, row = rendered(side)
        emit("reference job, GPU, RGB", side=side, wall_s=best, bytes=row["output"]["bytes"])


number = int(sys.argv[3]) if len(sys.argv) > 3 else None
if sys.argv[2] == "shallow":
    shallow(number or 3)
elif sys.argv[2] == "warm":
    warm(number or 65536)
else:
    reference(number or 65536)
