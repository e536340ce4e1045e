"""Every failpoint, one by one, with kill: after a restart, without a user's action, the files are those
of an uninterrupted run. The names come from the sources, so a new failpoint is covered by itself."""
import collections
import glob
import re
from concurrent.futures import ThreadPoolExecutor

from rig import (JOBS, SOURCE, Faults, Gone, Rig, check, check_outputs, finish_and_check,
                 submit_all)

# Not passed on a CPU; not passed without a database of an older schema.
EXEMPT = re.compile(r"cuda-|store-backup$")
# More pages than are logged before a checkpoint: 65536 tiles.
HUGE = {"width": 1 << 20, "height": 65536, "view": ["3", "4", "3", "4"], "iterations": 1,
        "palette": "gray", "keep_counts": True}
# How a failpoint's name stands in the sources.
NAMED = re.compile(r'mq_failpoint\("([a-z-]+)"\)'
                   r'|\.(?:create|write|fsync|rename|dirsync) = "([a-z-]+)"'
                   r'|(?:sync_as|sync_entries|mq_sink_open)\([^;]*?"([a-z]+-[a-z-]+)"', re.S)


def names():
    found = set()
    for part in ("src/*.c", "src/*/*.c", "kernels/*.c", "worker/*.c"):
        for path in glob.glob(f"{SOURCE}/{part}"):
            with open(path) as f:
                for groups in NAMED.findall(f.read()):
                    found.update(g for g in groups if g)
    return sorted(found)


def session(rig, acknowledged, huge):
    """What users do; ends early when the worker does."""
    client = rig.client
    try:
        submit_all(client, acknowledged)
        if huge:
            client.call("cancel", id=client.submit(HUGE, name="huge", priority=-1))
        client.wait_done(acknowledged.values())
        for name, job in acknowledged.items():
            check_outputs(client, name, job, JOBS[name])
        rig.check_tidy()
    except Gone:
        pass


def traced():
    """How often the jobs pass each failpoint."""
    with Rig() as rig:
        rig.start(failpoints="*:*:trace")
        session(rig, {}, True)
        check(not rig.ended(), "the worker ended while it was only traced")
        return collections.Counter(n for n in re.findall(r"failpoint ([a-z0-9-]+)", rig.text())
                                   if not n.startswith("poison-"))


def die_at(name, n, must, faults):
    with Rig() as rig:
        acknowledged = {}
        if rig.start(failpoints=f"{name}:{n}:kill", ready=False) is not None:
            session(rig, acknowledged, name == "store-checkpoint")
        if not rig.ended():
            check(not must, f"{name}:{n} was never passed")
            rig.kill()
            return
        check(rig.process.returncode == -9, f"{name}:{n}: exit {rig.process.returncode}")
        faults.add(rig.start())
        for row in rig.client.rows():
            if row["name"] == "huge" and row["state"] not in ("done", "cancelled"):
                rig.client.call("cancel", id=row["id"])
        finish_and_check(rig, acknowledged)


def killed_at_each(soak):
    passed, listed = traced(), [n for n in names() if not EXEMPT.match(n)]
    check(len(listed) > 30, f"the sources name only {len(listed)} failpoints")
    unlisted = set(passed) - set(names())
    check(not unlisted, f"failpoints that names() does not find: {sorted(unlisted)}")
    never = [n for n in listed if n not in passed]
    check(not never, f"failpoints that no job passes: {never}")
    faults = Faults(f"kill at each of {len(listed)} failpoints")
    runs = []
    for name in listed:
        last = passed[name]
        times = {1, 2, 3, last - 1, last} if soak else {1, last}
        runs += [(name, n) for n in sorted(times) if 1 <= n <= last]
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(die_at, name, n, n == 1, faults) for name, n in runs]:
            done.result()
    return [faults]


TESTS = [("killed at each failpoint, the files are those of an uninterrupted run", killed_at_each)]
