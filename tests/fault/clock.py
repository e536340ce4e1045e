"""A wall clock that is set, back or forth: nothing that is due waits for it, and only what is shown goes
by it."""
import os
import time

from rig import JOBS, LONG, Faults, Rig, build_shim, check, check_outputs, until

HOUR = 3600


class Clock:
    def __init__(self, rig):
        self.path = f"{rig.root}/clock"
        self.env = {"LD_PRELOAD": build_shim("clockshim", rig.root), "MANDELQ_CLOCK_FILE": self.path}
        self.set(0)

    def set(self, seconds):
        with open(self.path + ".new", "w") as f:
            f.write(str(seconds))
        os.rename(self.path + ".new", self.path)


def set_by(hours, faults):
    with Rig() as rig:
        clock = Clock(rig)
        rig.start(failpoints="tile-write:1:enospc,cpu-reserve:4:oom", env=clock.env)
        rig.client.submit(LONG)
        until(20, lambda: rig.client.row(1)["state"] == "paused", "the job is paused")
        clock.set(hours * HOUR)
        # the disk is tried again after a second, a job that is cancelled is given up in half of one
        until(10, lambda: rig.client.row(1)["state"] == "running", "the job goes on")
        job = rig.client.submit(JOBS["counts"])
        rig.client.call("cancel", id=1)
        rig.client.wait_done([job], 20)
        check_outputs(rig.client, "counts", job, JOBS["counts"])
        created = time.strptime(rig.client.row(job)["created"][:19], "%Y-%m-%dT%H:%M:%S")
        shown = time.mktime(created) - time.mktime(time.gmtime())
        check(abs(shown - hours * HOUR) < 60, f"created {shown} s from now")
        check("disk full" in rig.text(), "no fault was seen")
        # what is in flight has its time to end
        rig.stop()
        faults.add()


def clock_set(soak):
    faults = Faults("the wall clock set by hours")
    for hours in (-2, 2):
        set_by(hours, faults)
    return [faults]


TESTS = [("a wall clock that is set back or forth delays nothing", clock_set)]
