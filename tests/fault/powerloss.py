"""Power loss at each sync: everything that had not been synced is gone, files and directory entries
alike. What was acknowledged is there when the worker starts again; what is there is old or new, never
torn. Two disks are tried: one that also forgets renames and new names whose directory was not synced,
and one that kept the names but none of the unsynced contents."""
import os
import shutil
import subprocess
import tempfile

from rig import (JOBS, Faults, Gone, Rig, build_shim, check, check_outputs, finish_and_check,
                 submit_all)


def key_of(path):
    """As the shim's: inode and birth time."""
    text = subprocess.run(["stat", "-c", "%i %W %w", path], check=True, capture_output=True,
                          text=True).stdout.split()
    fraction = text[3].split(".")[1] if len(text) > 3 and "." in text[3] else "0"
    return f"{text[0]}-{text[1]}-{int(fraction)}"


def put_contents(shadow, key, target):
    source = f"{shadow}/inodes/{key}"
    if os.path.exists(source):
        shutil.copy(source, target)
    else:
        open(target, "w").close()  # its name is there, its contents never got to the disk


def forgetful(shadow, key, target):
    """Names and contents as synced."""
    os.mkdir(target, 0o700)
    if not os.path.exists(f"{shadow}/dirs/{key}"):
        return
    with open(f"{shadow}/dirs/{key}") as f:
        for line in f:
            kind, child, name = line.rstrip("\n").split(" ", 2)
            if kind == "d":
                forgetful(shadow, child, f"{target}/{name}")
            elif kind == "f":
                put_contents(shadow, child, f"{target}/{name}")


def names_kept(shadow, now, target):
    """Names as they are, contents as synced."""
    os.mkdir(target, 0o700)
    for entry in os.scandir(now):
        if entry.is_dir(follow_symlinks=False):
            names_kept(shadow, entry.path, f"{target}/{entry.name}")
        elif entry.is_file(follow_symlinks=False):
            put_contents(shadow, key_of(entry.path), f"{target}/{entry.name}")


def work(rig, acknowledged, done):
    """Submits, waits, and remembers what the worker has said."""
    try:
        submit_all(rig.client, acknowledged)
        while len(done) < len(acknowledged):
            for row in rig.client.rows():
                if row["state"] == "done":
                    done.add(row["id"])
    except Gone:
        pass


def start_shimmed(rig, shim, point):
    """The worker on a disk that loses power at its point-th sync. The shadow is what has been synced."""
    shadow = f"{rig.root}/shadow"
    for part in ("inodes", "dirs"):
        os.makedirs(f"{shadow}/{part}")
    rig.top = f"{rig.root}/disk"
    os.mkdir(rig.top)
    rig.dir = f"{rig.top}/s"
    env = {"LD_PRELOAD": shim, "MQ_SHIM_SHADOW": shadow, "MQ_SHIM_STOP": str(point)}
    return shadow, rig.start(env=env, ready=False) is not None


def lose_power(shim, point, faults):
    """False: the work was done before its point-th sync."""
    with Rig() as rig:
        acknowledged, done = {}, set()
        shadow, up = start_shimmed(rig, shim, point)
        if up:
            work(rig, acknowledged, done)
        if not rig.ended():
            return False
        check(rig.process.returncode == -9, f"sync {point}: exit {rig.process.returncode}")
        forgetful(shadow, key_of(rig.top), f"{rig.root}/a")
        names_kept(shadow, rig.top, f"{rig.root}/b")
        for disk in ("a", "b"):
            rig.dir = f"{rig.root}/{disk}/s"
            faults.add(rig.start())
            for row in rig.client.rows():
                check(row["id"] not in done or row["state"] == "done",
                      f"sync {point}: job {row['id']} was done and is {row['state']}")
            for name, job in acknowledged.items():
                if job in done:
                    check_outputs(rig.client, name, job, JOBS[name])
            finish_and_check(rig, dict(acknowledged))
    return True


def at_each_sync(soak):
    faults = Faults("power loss at a sync (two kinds of disk)")
    with tempfile.TemporaryDirectory(prefix="mqshim", dir="/tmp") as folder:
        shim, point = build_shim("shim", folder), 1
        while lose_power(shim, point, faults):
            point += 1 if soak or point < 16 else 4
        check(point > 40, f"only {point} syncs: is the shim loaded?")
        print(f"# about {point} syncs in all", flush=True)
    return [faults]


# So many tiles that their folder is worth a sync of its own; quick ones.
MANY = {"width": 1024, "height": 49152, "view": ["3", "4", "3", "4"], "iterations": 10,
        "palette": "gray", "keep_counts": True}


def tiles_at(shim, point):
    """How many tiles are done after the loss; the file of each is there."""
    with Rig() as rig:
        shadow, up = start_shimmed(rig, shim, point)
        check(up, f"sync {point}: the worker did not start")
        job = rig.client.submit(MANY)
        rig.wait_end(60)
        forgetful(shadow, key_of(rig.top), f"{rig.root}/a")
        rig.dir = f"{rig.root}/a/s"
        db = rig.database()
        done = db.execute("SELECT strip_first, strip_count, file_attempt, file_bytes FROM tiles"
                          " WHERE state = 'done'").fetchall()
        db.close()
        for first, count, attempt, size in done:
            path = f"{rig.dir}/work/{job}/tile-{first}-{count}-{attempt}.mqt"
            check(os.path.exists(path) and os.path.getsize(path) == size,
                  f"sync {point}: the tile of strip {first} is done, and its file is gone")
        return len(done)


def tiles_kept(soak):
    """What is done is on the disk before the database says so."""
    faults = Faults("power loss among 48 tiles: those that are done are on the disk")
    with tempfile.TemporaryDirectory(prefix="mqshim", dir="/tmp") as folder:
        shim, most = build_shim("shim", folder), 0
        for point in range(24, 84, 2 if soak else 12):
            most = max(most, tiles_at(shim, point))
            faults.add()
        check(most >= 8, f"at most {most} tiles were done")
    return [faults]


TESTS = [("power loss: a tile that is done has its file", tiles_kept),
         ("power loss at a sync: old or new, never torn, nothing acknowledged gone", at_each_sync)]
