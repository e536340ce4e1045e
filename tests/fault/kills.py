"""Kills at random moments over several jobs at once, while clients go on submitting and asking. The
checker reads the whole history: what was acknowledged is there, each strip was done exactly once, what a
client has seen done stays done, and no healthy job has failed."""
import random
import threading
import time

from rig import JOBS, LONG, Faults, Gone, Rig, check, check_outputs, reference

SPECS = dict(JOBS, long=LONG)


class Submitter(threading.Thread):
    """Submits one job after another, each with its own request id, until told to stop."""

    def __init__(self, rig, seed):
        super().__init__(daemon=True)
        self.rig, self.random, self.prefix = rig, random.Random(seed), seed
        self.client = rig.new_client()
        self.acknowledged, self.names = {}, {}
        self.enough = threading.Event()
        self.failure = None

    def run(self):
        try:
            while not self.enough.is_set():
                self.one()
                self.enough.wait(self.random.uniform(0.2, 1.5))
        except Exception as e:
            self.failure = e

    def one(self):
        request = f"{self.prefix}-{len(self.acknowledged)}"
        name = self.random.choice(list(JOBS))
        while not self.enough.is_set():
            try:
                job = self.client.submit(SPECS[name], request_id=request, name=name)
            except Gone:
                time.sleep(0.05)
                continue
            self.acknowledged[request] = job
            self.names[job] = name
            return


class Watch:
    """What a client has been told is done never becomes less."""

    def __init__(self):
        self.strips = {}

    def look(self, client):
        rows = client.rows()
        gone = set(self.strips) - {row["id"] for row in rows}
        check(not gone, f"jobs {sorted(gone)} are gone")
        for row in rows:
            check(row["state"] not in ("failed", "cancelled"),
                  f"healthy job {row['id']} is {row['state']}: {row['error']}")
            check(row["progress"] >= self.strips.get(row["id"], 0),
                  f"job {row['id']} went from {self.strips.get(row['id'])} to {row['progress']}")
            self.strips[row["id"]] = row["progress"]


def random_kills(soak):
    kills = 300 if soak else 25
    seed = random.randrange(1 << 30)
    print(f"# seed {seed}", flush=True)
    chance = random.Random(seed)
    faults = Faults("SIGKILL at a random moment, several jobs")
    for name, spec in SPECS.items():
        reference(name, spec)
    with Rig() as rig:
        rig.start()
        submitters = [Submitter(rig, f"s{n}") for n in range(2)]
        mine, watch = {}, Watch()
        for s in submitters:
            s.start()
        for n in range(kills):
            # Always something long under way, so that a kill meets work.
            try:
                rows = rig.client.rows()
                if not any(r["name"] == "long" and r["state"] not in ("done",) for r in rows):
                    request = f"long-{len(mine)}"
                    mine[request] = rig.client.submit(LONG, request_id=request, name="long")
                watch.look(rig.client)
            except Gone:
                pass
            # Ten tiles' time: kills that come faster than a tile can be done are no accident.
            time.sleep(chance.uniform(0, 1.2))
            rig.kill()
            faults.add(rig.start())
        for s in submitters:
            s.enough.set()
            s.join(30)
            check(not s.is_alive() and not s.failure, f"a client: {s.failure}")
            mine.update(s.acknowledged)
        watch.look(rig.client)
        rig.client.wait_done(mine.values(), 240)
        names = {job: "long" for job in mine.values()}
        for s in submitters:
            names.update(s.names)
        picked = chance.sample(sorted(names), min(len(names), 40 if soak else 12))
        for job in picked:
            check_outputs(rig.client, names[job], job, SPECS[names[job]])
        check_all_equal(rig, names)
        rig.check_tidy()
        rig.kill()
        rig.check_history(mine)
        print(f"# {kills} kills, {len(mine)} jobs", flush=True)
    return [faults]


def check_all_equal(rig, names):
    """By the checksum in the database, for those that were not fetched."""
    sums = {}
    for row in rig.client.rows():
        sums.setdefault(names[row["id"]], set()).add(row["output"]["sha256"])
    for name, found in sums.items():
        check(len(found) == 1, f"{len(found)} different pictures of {name}")


TESTS = [("random kills lose nothing and fail no healthy job", random_kills)]
