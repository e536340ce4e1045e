"""Full and failing disks: at each step that writes, and for real on a small tmpfs. When a write fails the
job pauses, says why, and goes on by itself; a sync that fails ends the process, whatever its errno, and
recovery renders again what it was about."""
import os
import re
import subprocess
import time
import unittest
from concurrent.futures import ThreadPoolExecutor

from failpoints import names
from rig import (BUILD, JOBS, LONG, Faults, Gone, Refused, Rig, check, check_outputs,
                 finish_and_check, reference, submit_all, until)

SYNCS = re.compile(r".*-(fsync|dirsync)$")
WRITES = re.compile(r".*-(create|write|rename|mkdir|index)$")
STORE = re.compile(r"store-(commit|committed)$")
# Passed by one of the jobs only.
ONCE = ("counts-", "preview-")
# The first turn of the store is recovery's.
START = re.compile(r"state-|store-(open|migrate|begin)$")


def expected(name):
    """pause: the job pauses and goes on. end: the process ends by itself. start: it does not start.
    refuse: a download is refused. none: nobody notices before the next start."""
    if START.match(name):
        return "start"
    if name in ("export-create", "export-write"):
        return "refuse"
    if name.startswith("tidy-"):
        return "none"
    if SYNCS.match(name) or STORE.match(name):
        return "end"
    if WRITES.match(name):
        return "pause"
    return None


def session(rig, acknowledged):
    refused = 0
    submit_all(rig.client, acknowledged)
    rig.client.wait_done(acknowledged.values())
    for name, job in acknowledged.items():
        for again in (True, False):
            try:
                check_outputs(rig.client, name, job, JOBS[name])
                break
            except Refused as e:
                check(again and e.status in ("no-space", "io"), str(e))
                refused += 1
    return refused


def fault_at(name, fault, n, faults):
    what, wanted = f"{name}:{n}:{fault}", expected(name)
    with Rig() as rig:
        acknowledged, refused = {}, 0
        up = rig.start(failpoints=what, ready=wanted != "start")
        if up is not None:
            try:
                refused = session(rig, acknowledged)
            except Gone:
                pass
        check(rig.ended() == (wanted in ("end", "start")),
              f"{what}: {wanted} was expected, exit {rig.process.poll()}")
        check((up is None) == (wanted == "start"), f"{what}: started, though it must not")
        check((refused > 0) == (wanted == "refuse"), f"{what}: {refused} downloads were refused")
        paused = f"is paused: disk {'error' if fault == 'eio' else 'full'}: " in rig.text()
        check(paused == (wanted == "pause"), f"{what}: paused is {paused}")
        if rig.ended():
            check(rig.process.returncode in (1, 2), f"{what}: exit {rig.process.returncode}")
            faults[wanted].add(rig.start())
        else:
            faults[wanted].add()
            if wanted == "none":
                rig.kill()
                rig.start()
        finish_and_check(rig, acknowledged)


def at_each_write(soak):
    faults = {"pause": Faults("ENOSPC, EDQUOT, EIO at each write: paused, resumed"),
              "end": Faults("any errno at each sync: ended, recovered"),
              "start": Faults("no space or EIO at start"), "none": Faults("leftovers not removed"),
              "refuse": Faults("no space or EIO in a download")}
    runs = []
    for name in names():
        for fault in ("enospc", "edquot", "eio"):
            if expected(name) and (soak or fault != "edquot" or name.endswith("write")):
                runs += [(name, fault, n) for n in ((1, 2) if soak else (1,))
                         if n == 1 or not START.match(name) and not name.startswith(ONCE)]
    check(len(runs) > 50, f"only {len(runs)} faults")
    with ThreadPoolExecutor(3) as pool:
        for run in [pool.submit(fault_at, *args, faults) for args in runs]:
            run.result()
    return list(faults.values())


def outage(point, fault, reason, faults):
    with Rig() as rig:
        rig.start(failpoints=",".join(f"{point}:{n}:{fault}" for n in range(1, 4)))
        job = rig.client.submit(JOBS["counts"])
        row = until(20, lambda: next((r for r in [rig.client.row(job)] if r["state"] == "paused"), None),
                    "the job is paused")
        check(row["reason"] == reason, f"reason: {row['reason']}")
        rig.client.wait_done([job], 30)
        check(rig.client.row(job)["reason"] is None, "the reason stays")
        check_outputs(rig.client, "counts", job, JOBS["counts"])
        check(not rig.ended(), "the worker ended")
        faults.add()


def told(soak):
    """An outage of some seconds: status says paused and why, other verbs work, and it goes on."""
    faults = Faults("disk full or failing for some seconds")
    outage("tile-write", "enospc", "disk full: cannot write a tile file: No space left on device", faults)
    outage("tile-write", "eio", "disk error: cannot write a tile file: Input/output error", faults)
    outage("picture-create", "eio", "disk error: making the picture's file: Input/output error", faults)
    return [faults]


def pause_is_kept(soak):
    """Killed while jobs are paused: they go on by themselves after the start."""
    with Rig() as rig:
        rig.start(failpoints="tile-write:*:enospc")
        acknowledged = {}
        submit_all(rig.client, acknowledged)
        until(20, lambda: all(r["state"] == "paused" for r in rig.client.rows()), "all are paused")
        rig.kill()
        rig.start()
        finish_and_check(rig, acknowledged)


def behind_others(soak):
    """Jobs that a user has paused, many and older, do not hide one that waits for the disk."""
    with Rig() as rig:
        rig.start(failpoints="tile-write:1:enospc")
        rig.client.call("pause", all=True)
        for _ in range(70):
            rig.client.call("pause", id=rig.client.submit(JOBS["counts"]))
        last = rig.client.submit(JOBS["colour"])
        rig.client.call("resume", all=True)
        rig.client.wait_done([last], 30)
        check(sum(r["state"] == "paused" for r in rig.client.rows()) == 70, "others went on")


def many(soak):
    """More jobs than are resumed at a time, whose folders cannot be made: all are tried, and seldom."""
    with Rig() as rig:
        rig.start(failpoints="job-mkdir:*:eio")
        jobs = [rig.client.submit(JOBS["counts"]) for _ in range(70)]
        until(20, lambda: all(r["state"] == "paused" for r in rig.client.rows()), "all are paused")
        time.sleep(4)
        tries = rig.text().count("is paused: disk error: ")
        check(tries <= 5 * len(jobs), f"{tries} tries of {len(jobs)} jobs within seconds")
        rig.kill()
        rig.start()
        rig.client.wait_done(jobs)


def beside_healthy(soak):
    """A job whose picture can never be written is tried ever less often, though another one writes well."""
    with Rig() as rig:
        rig.start(failpoints="picture-rename:*:eio")
        bad = rig.client.submit(JOBS["counts"])
        until(20, lambda: rig.client.row(bad)["state"] == "paused", "the job is paused")
        good = rig.client.submit(dict(LONG, height=1 << 20))
        time.sleep(9)
        check(rig.client.row(good)["state"] == "running", "the other job ended too early")
        tries = rig.text().count(f"job {bad} is paused: disk error: ")
        check(2 <= tries <= 5, f"{tries} tries")


def unreadable(soak):
    """A tile's file that cannot be read is rendered again, and its job is done."""
    faults = Faults("EIO when a tile file is read")
    with Rig() as rig:
        rig.start(failpoints="tile-read:2:eio")
        acknowledged = {}
        submit_all(rig.client, acknowledged)
        rig.client.wait_done(acknowledged.values())
        check("damaged tiles are rendered again: " in rig.text(), "nobody noticed")
        for name, job in acknowledged.items():
            check_outputs(rig.client, name, job, JOBS[name])
        check(not rig.ended(), "the worker ended")
        faults.add()
    return [faults]


def never_readable(soak):
    """A disk that reads nothing back: the job fails and says so, instead of rendering for ever."""
    with Rig() as rig:
        rig.start(failpoints="tile-read:*:eio")
        job = rig.client.submit(JOBS["strips"])
        until(20, lambda: rig.client.row(job)["state"] == "failed", "the job fails")
        error = rig.client.row(job)["error"]
        check("damaged 5 times in a row: cannot read a tile file" in error, f"error: {error}")
        rig.kill()
        rig.start()
        rig.client.call("retry", id=job)
        rig.client.wait_done([job])
        check_outputs(rig.client, "strips", job, JOBS["strips"])


def folder_sync(soak):
    """The sync of one job's folder fails at every start: no tile of another job is blamed for the ends."""
    wide = dict(JOBS["strips"], width=65536, height=32768)  # of many tiles: its folder is synced
    with Rig() as rig:
        rig.start(failpoints="tile-write:1:kill")
        rig.client.call("pause", all=True)
        small, large = rig.client.submit(JOBS["counts"]), rig.client.submit(wide)
        try:
            rig.client.call("resume", all=True)
        except Gone:
            pass
        rig.wait_end()
        for _ in range(7):
            rig.start(failpoints="job-dirsync:1:eio", ready=False)
            rig.wait_end()
        rig.start()
        rig.client.call("cancel", id=large)
        until(20, lambda: rig.client.row(small)["state"] in ("done", "failed"), "the small job ends")
        check_outputs(rig.client, "counts", small, JOBS["counts"])


class SmallDisk:
    """A tmpfs, or a skip where mounting is not allowed."""

    def __init__(self, rig, mib):
        self.path, self.mib = f"{rig.root}/disk", mib

    def __enter__(self):
        os.mkdir(self.path)
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.mib}m", "tmpfs", self.path],
                              capture_output=True, text=True)
        if done.returncode:
            raise unittest.SkipTest(f"no tmpfs can be mounted: {done.stderr.strip()}")
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.path], check=True)

    def fill(self, leave):
        """Leaves so many bytes."""
        fs = os.statvfs(self.path)
        with open(f"{self.path}/filler", "ab") as f:
            f.write(b"\0" * max(fs.f_bavail * fs.f_frsize - leave, 0))

    def empty(self):
        os.unlink(f"{self.path}/filler")


# About 5 MB, hard to compress.
NOISE = {"width": 2048, "height": 2048, "center": ["-0.743643887037151", "0.13182590420533"],
         "zoom": "5000", "iterations": 2000, "palette": "spectrum", "palette_period": "3"}


def full_for_real(soak):
    faults = Faults("a tmpfs that is full")
    wanted = reference("noise", NOISE)
    for leave in (1 << 20, 300 << 10, 2 << 20, 64 << 10) if soak else (1 << 20, 64 << 10):
        with Rig() as rig, SmallDisk(rig, 40) as disk:
            rig.dir = f"{disk.path}/s"
            rig.start()
            quick = rig.client.submit(JOBS["counts"])
            rig.client.wait_done([quick])
            disk.fill(leave)
            job = rig.client.submit(NOISE, request_id="noise")
            row = until(60, lambda: next((r for r in [rig.client.row(job)] if r["state"] == "paused"),
                                         None), "the job is paused")
            rig.kill()  # nor does the full disk keep a killed worker from starting
            rig.start()
            check("No space left on device" in row["reason"], f"reason: {row['reason']}")
            check(rig.client.fetch(quick, "picture") == reference("counts", JOBS["counts"])["picture"],
                  "a finished picture cannot be fetched")
            disk.empty()
            rig.client.wait_done([job], 90)
            check(rig.client.outputs(job, NOISE) == wanted, "another picture")
            check(not rig.ended(), "the worker ended")
            faults.add()
            rig.kill()
    return [faults]


def no_room_for_a_copy(soak):
    """A copy of the database that does not fit says why, leaves nothing and does the next one no harm."""
    with Rig() as rig, SmallDisk(rig, 120) as disk:
        rig.dir = f"{disk.path}/s"
        rig.start()
        rig.client.call("pause", all=True)
        for _ in range(16):
            rig.client.submit({"width": 1 << 20, "height": 1024, "view": ["3", "4", "3", "4"],
                               "iterations": 1, "palette": "gray", "keep_counts": True})
        disk.fill(64 << 10)
        command = [f"{BUILD}/mandelqd", f"--backup={rig.root}/copy", f"--state-dir={rig.dir}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        check(done.returncode == 1 and "a copy of the database may take" in done.stderr,
              f"exit {done.returncode}: {done.stderr}")
        check(not os.path.exists(f"{rig.dir}/work/backup.db"), "it is still there")
        disk.empty()
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        check(done.returncode == 0, f"exit {done.returncode}: {done.stderr}")
        rig.kill()


def too_large(soak):
    """Refused at submit with figures, but only what cannot fit; a repeated request is not refused."""
    with Rig() as rig, SmallDisk(rig, 8) as disk:
        rig.dir = f"{disk.path}/s"
        rig.start()
        huge = dict(JOBS["colour"], width=262144, height=262144)
        try:
            rig.client.submit(huge)
            check(False, "262144 x 262144 was accepted on 8 MiB")
        except Refused as e:
            check(e.status == "no-space" and re.search(r"at least [0-9.]+ [MG]B .* [0-9.]+ [kM]?B free", e.error),
                  str(e))
        # One colour: compresses as well as anything.
        flat = {"width": 16384, "height": 16384, "view": ["-0.1", "0.1", "-0.1", "0.1"],
                "iterations": 10, "inside": "123456"}
        job = rig.client.submit(flat, request_id="flat")
        rig.client.wait_done([job], 60)
        disk.fill(4096)
        check(rig.client.submit(flat, request_id="flat") == job, "repeated")
        rig.kill()


def never_synced(soak):
    """A sync that fails again and again, and a service manager: every job it is about fails in the end."""
    faults = Faults("a sync that fails at every start")
    for point in ("picture-fsync", "tile-fsync", "tile-dirsync") if soak else ("picture-fsync", "tile-fsync"):
        with Rig() as rig:
            acknowledged, _ = rig.managed(f"{point}:*:eio", JOBS, faults, lambda rows: all(
                row["state"] == "failed" for row in rows.values()))
            errors = {r["error"] for r in rig.client.rows()}
            check(all("ended the worker" in e for e in errors), str(errors))
            rig.kill()
            rig.start()
            for job in acknowledged.values():
                rig.client.call("retry", id=job)
            rig.client.wait_done(acknowledged.values())
            for name, job in acknowledged.items():
                check_outputs(rig.client, name, job, JOBS[name])
    return [faults]


def database_full(soak):
    """A commit without space is not acknowledged: the process ends, clients ask again."""
    faults = Faults("database full at a commit")
    for n in range(1, 9 if soak else 4):
        with Rig() as rig:
            rig.start(failpoints=f"store-commit:{n}:enospc")
            acknowledged = {}
            try:
                submit_all(rig.client, acknowledged)
                rig.wait_end()
            except Gone:
                pass
            check(rig.process.poll() == 1, f"exit {rig.process.poll()}")
            faults.add(rig.start())
            finish_and_check(rig, acknowledged)
    return [faults]


TESTS = [("no space, no quota and EIO at each step that writes", at_each_write),
         ("a full disk: status says so, and the job goes on by itself", told),
         ("jobs paused by a full disk go on after a kill", pause_is_kept),
         ("a job that waits for the disk goes on though users have paused many", behind_others),
         ("many jobs that wait for the disk are tried no more often than one", many),
         ("a job that the disk fails is tried ever less often beside one that is well", beside_healthy),
         ("a tile file that cannot be read is rendered again", unreadable),
         ("tile files that can never be read fail their job", never_readable),
         ("a sync of a folder that fails is blamed on no tile", folder_sync),
         ("a small disk that is full for real", full_for_real),
         ("a copy of the database without room says so", no_room_for_a_copy),
         ("a job that cannot fit is refused with figures", too_large),
         ("a disk that never keeps a file fails its jobs in the end", never_synced),
         ("a database that is full acknowledges nothing", database_full)]
