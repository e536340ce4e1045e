"""Memory that runs out on the host: by a real limit, by failpoints at every allocation; and memory that
does not grow with the picture."""
import re
import resource
import time
from concurrent.futures import ThreadPoolExecutor

from failpoints import names
from rig import JOBS, LONG, Faults, Refused, Rig, check, check_outputs, reference, submit_all, until

ALLOCATES = re.compile(r".*-(alloc|keep|reserve|map)$|device-submit$")
MIB = 1 << 20


def real_limit(soak):
    """The worker's address space may grow by less than the buffers that it asks for: 64 MiB."""
    faults = Faults("address space limited (RLIMIT_AS), host buffers refused")
    reference("long", LONG)
    for room in (40, 28, 24) if soak else (28,):
        with Rig() as rig:
            rig.start()
            rig.client.wait_done([rig.client.submit(JOBS["colour"])])  # stacks and arenas are there
            rig.kill()
            rig.start("--idle-release=1")
            size = rig.memory_kib("VmSize") * 1024 + room * MIB
            resource.prlimit(rig.process.pid, resource.RLIMIT_AS, (size, size))
            job = rig.client.submit(LONG)
            rig.client.wait_done([job], 90)
            text = rig.text()
            check(re.search(r"out of host memory: \d+ buffers of \d+ bytes asked, \d+ free", text),
                  "the error names host memory, what was asked and what was free")
            asked = [int(n) for n in re.findall(r"tiles are halved to (\d+) KiB", text)]
            check(asked and all(a > b for a, b in zip(asked, asked[1:])), f"halved: {asked}")
            fetch_patiently(rig.client, "long", job, LONG)
            check(not rig.ended(), "the worker ended")
            faults.add()
    return [faults]


def fetch_patiently(client, name, job, spec):
    """A download may be refused for want of memory, but says so, and a later one is whole."""
    end = time.monotonic() + 20
    while True:
        try:
            return check_outputs(client, name, job, spec)
        except Refused as e:
            check(e.status == "host-memory" and time.monotonic() < end, str(e))
            time.sleep(0.2)


def refuse_once(point, faults):
    with Rig() as rig:
        rig.start(failpoints=point)
        acknowledged = {}
        submit_all(rig.client, acknowledged)
        rig.client.wait_done(acknowledged.values())
        for name, job in acknowledged.items():
            fetch_patiently(rig.client, name, job, JOBS[name])
        check(not rig.ended(), f"{point}: the worker ended")
        faults.add()


def failing_allocations(soak):
    """One refusal at each place, first, second and third passage, and three in a row."""
    listed = [n for n in names() if ALLOCATES.match(n) and not n.startswith("cuda-")]
    check(len(listed) >= 12, f"only {listed}")
    faults = Faults(f"an allocation refused at {len(listed)} places")
    points = [f"{n}:{k}:enomem" for n in listed for k in ((1, 2, 3) if soak else (1, 2))]
    points += [",".join(f"{n}:{k}:enomem" for k in (1, 2, 3)) for n in listed]
    points += ["cpu-reserve:1:oom,cpu-reserve:2:oom", "device-submit:1:oom,device-submit:2:oom"]
    with ThreadPoolExecutor(3) as pool:
        for run in [pool.submit(refuse_once, point, faults) for point in points]:
            run.result()
    return [faults]


def flat(soak):
    """Thousands of tiles: what is resident in their last half is not more than in their first tenth."""
    tiles = 10000 if soak else 2000
    job = {"width": 65536, "height": 16 * tiles, "view": ["3", "4", "3", "4"], "iterations": 10,
           "palette": "gray"}
    with Rig() as rig:
        rig.start("--device-memory=2M")
        number = rig.client.submit(job)
        samples = []

        def sample():
            row = rig.client.row(number)
            check(row["state"] not in ("failed", "cancelled"), f"{row['state']}: {row['error']}")
            samples.append((row["tiles_done"], rig.memory_kib("VmRSS"), row["state"]))
            time.sleep(0.05)
            return row["state"] == "done"

        until(600, sample, f"{tiles} tiles")
        row = rig.client.row(number)
        check(row["tiles_done"] >= tiles, f"{row['tiles_done']} tiles")
        early = max(rss for done, rss, state in samples if done < tiles / 10)
        late = max(rss for done, rss, state in samples if done > tiles / 2 and state == "running")
        most = rig.memory_kib("VmHWM")
        print(f"# {row['tiles_done']} tiles: resident {early} KiB in the first tenth, {late} KiB after"
              f" the half, at most {most} KiB", flush=True)
        # The database's cache fills with rows; assembly has buffers of its own.
        check(late < early + 6 * 1024, f"resident memory grew from {early} to {late} KiB")
        check(most < 64 * 1024, f"{most} KiB were resident")


def floor(soak):
    """Memory never comes: the job fails, in bounded time and with a text that says what was asked; then
    the queue goes on."""
    faults = Faults("no memory at the smallest size either")
    with Rig() as rig:
        points = ",".join(f"cpu-reserve:{n}:oom" for n in range(1, 13))
        rig.start(failpoints=points)
        began = time.monotonic()
        first = rig.client.submit(JOBS["strips"], request_id="first")
        second = rig.client.submit(JOBS["colour"], request_id="second")
        until(100, lambda: rig.client.row(first)["state"] == "failed", "the job fails")
        took = time.monotonic() - began
        error = rig.client.row(first)["error"]
        check(re.search(r"host memory: \d+ buffers? of \d+ bytes asked, \d+ free", error), error)
        rig.client.wait_done([second], 60)
        check_outputs(rig.client, "colour", second, JOBS["colour"])
        faults.add(took)
        print(f"# failed after {took:.0f} s: {error}", flush=True)
    return [faults]


TESTS = [("a real limit of the address space halves tiles, and the pixels are the same", real_limit),
         ("an allocation that fails anywhere ends neither job nor worker", failing_allocations),
         ("resident memory is flat over thousands of tiles", flat),
         ("memory that never comes fails the job, and the queue goes on", floor)]
