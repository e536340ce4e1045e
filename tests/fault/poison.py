"""A tile, or an assembly, that kills the worker whenever it runs, and a service manager that starts the
worker again: its job fails after a bounded number of deaths, with an error that says what it was; the
others finish."""
from rig import JOBS, LONG, Faults, Rig, check, check_outputs, until

# 64 strips in tiles of four.
WIDE = {"width": 65536, "height": 1024, "view": ["0.3", "2", "-1", "1"], "iterations": 20,
        "palette": "gray"}
# One tile of four is halved twice before it is one strip, which may kill five times; the first death
# has others in flight. Deaths that meet the suspects' queue before the poison is alone come on top.
DEATHS_MAX = 2 + 5 + 4
ENDED = ("failed", "done")


def poisoned(strips, healthy_name, faults):
    with Rig() as rig:
        points = ",".join(f"poison-1-{strip}:*:kill" for strip in strips)
        jobs = {"wide": WIDE, **{name: JOBS[name] for name in healthy_name}}
        acknowledged, deaths = rig.managed(points, jobs, faults, lambda rows: rows["wide"]["state"] in ENDED)
        last = rig.client.row(acknowledged["wide"])
        check(last["state"] == "failed", "a poisoned job is done")
        check(deaths <= DEATHS_MAX, f"{deaths} deaths")
        check("ended the worker" in last["error"] and any(f"strip {s} " in last["error"] for s in strips),
              f"error: {last['error']}")
        others = {n: acknowledged[n] for n in healthy_name}
        until(30, lambda: all(rig.client.row(j)["state"] == "done" for j in others.values()),
              "the other jobs are done")
        for name, job in others.items():
            check_outputs(rig.client, name, job, JOBS[name])
        check(not rig.ended(), "the worker ended after the poison was found")
        # The tiles of a failed job stay: it may be tried again.
        kept = f"work/{acknowledged['wide']}"
        others_left = [p for p in rig.scratch() if p != kept and not p.startswith(kept + "/")]
        check(not others_left, f"left over: {others_left[:3]}")
        print(f"# {deaths} deaths, then: {last['error']}", flush=True)


def poison(soak):
    faults = Faults("a tile that kills, restarted by a service manager")
    for strips in ([37], [0], [63, 5], list(range(16))) if soak else ([37], [63, 5]):
        poisoned(strips, list(JOBS), faults)
    return [faults]


def assembly(soak):
    faults = Faults("an assembly that kills, restarted by a service manager")
    poison, points = "colour", "poison-2-assembly:*:kill"
    with Rig() as rig:
        acknowledged, deaths = rig.managed(points, JOBS, faults, lambda rows: rows[poison]["state"] in ENDED)
        row = rig.client.row(acknowledged[poison])
        # Five alone; before that it had others beside it, perhaps more than once.
        check(5 <= deaths <= 8, f"{deaths} deaths")
        check(row["error"] == "assembling the picture ended the worker 5 times in a row", row["error"])
        others = [j for n, j in acknowledged.items() if n != poison]
        rig.client.wait_done(others, 30)
        # Tried again, now that it is mended, it only needs to be assembled.
        rig.kill()
        rig.start()
        rig.client.call("retry", id=acknowledged[poison])
        rig.client.wait_done(acknowledged.values(), 30)
        for name, job in acknowledged.items():
            check_outputs(rig.client, name, job, JOBS[name])
        rig.check_tidy()
    return [faults]


OVERLAPS = """SELECT x.id, y.id FROM attempts x JOIN attempts y ON y.id <> x.id AND x.alone = 1
              AND y.started_ms < x.ended_ms AND y.ended_ms > x.started_ms"""


def paused_suspects(soak):
    """What was in flight when the worker died runs alone, also when its job was paused until now."""
    with Rig() as rig:
        rig.start()
        first = rig.client.submit(LONG)
        until(20, lambda: rig.client.row(first)["tiles_done"] > 1, "tiles are done")
        rig.client.call("pause", id=first)
        rig.kill()
        rig.start()
        second = rig.client.submit({**LONG, "iterations": 300})
        until(20, lambda: rig.client.row(second)["tiles_done"] > 1, "the other job is on its way")
        rig.client.call("resume", id=first)
        rig.client.wait_done([first, second], 60)
        db = rig.database()
        alone = db.execute("SELECT count(*) FROM attempts WHERE alone = 1").fetchone()[0]
        overlaps = db.execute(OVERLAPS).fetchall()
        db.close()
        check(alone > 0 and not overlaps, f"{alone} alone, beside others: {overlaps[:5]}")


TESTS = [("suspects of a job that was paused run alone", paused_suspects),
         ("an assembly that kills fails its own job and no other", assembly),
         ("a tile that kills fails its own job and no other", poison)]
