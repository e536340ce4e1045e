"""Many clients at once: one request id is one job, whatever the order; nobody ever sees an error of the
database."""
import json
import os
import random
import subprocess
import threading
import time

from rig import BUILD, JOBS, Faults, Refused, Rig, check, check_outputs

CLIENTS = 50
# One strip of it is larger than the buffers may be: fails as soon as it is looked at.
HOPELESS = {"width": 1 << 24, "height": 16, "view": ["2", "3", "2", "3"], "iterations": 10}


def together(rig, count, act, seconds=0):
    """act(number, client) in so many threads that start at once; what they return, in order. seconds: what one
    takes."""
    barrier, results = threading.Barrier(count), [None] * count
    clients = [rig.new_client() for _ in range(count)]

    def one(n):
        barrier.wait()
        try:
            results[n] = act(n, clients[n])
        except Exception as e:
            results[n] = e

    threads = [threading.Thread(target=one, args=(n,), daemon=True) for n in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(seconds + 60)
        check(not t.is_alive(), "a client hangs")
    for c in clients:
        c.close()
    return results


def one_id(soak):
    faults = Faults(f"the same request id from {CLIENTS} clients at once")
    with Rig() as rig:
        rig.start()
        for turn in range(20 if soak else 4):
            ids = together(rig, CLIENTS,
                           lambda n, c: c.submit(JOBS["counts"], request_id=f"same-{turn}"))
            check(len(set(ids)) == 1 and isinstance(ids[0], int), f"ids {set(map(str, ids))}")
            faults.add()
        # Two different jobs under one id: one wins, and all others of its kind get its id.
        mixed = together(rig, CLIENTS, lambda n, c: (n % 2, c.submit(
            JOBS["counts" if n % 2 else "colour"], request_id="mixed")))
        won = {r for r in mixed if isinstance(r, tuple)}
        lost = [r for r in mixed if not isinstance(r, tuple)]
        check(len(won) == 1 and len(lost) == CLIENTS // 2, f"{won}, {len(lost)} lost")
        check(all(isinstance(r, Refused) and r.status == "conflict" for r in lost), str(lost[0]))
        check(len(rig.client.rows()) == (20 if soak else 4) + 1, "more jobs than ids")
    return [faults]


def command(rig, *arguments):
    return subprocess.run([f"{BUILD}/mandelq", *arguments], capture_output=True, text=True, timeout=60,
                          env={"PATH": "/usr/bin:/bin", "HOME": rig.root,
                               "MANDELQ_STATE_DIR": rig.dir})


def exit_codes(soak):
    """The command's: the same again 0 and the same id, another job 5; ended jobs free it."""
    with Rig() as rig:
        rig.start("--device-memory=8M")
        small = ["submit", "--size=300x200", "--iterations=50", "--request-id=r"]
        first, again = command(rig, *small), command(rig, *small)
        check((first.returncode, again.returncode) == (0, 0) and first.stdout == again.stdout, "same")
        other = command(rig, *small[:1], "--size=301x200", *small[2:])
        check(other.returncode == 5 and not other.stdout, f"exit {other.returncode}: {other.stderr}")
        rig.client.wait_done([int(first.stdout)])
        check(command(rig, *small).stdout == first.stdout, "done jobs keep their request id")
        failing = rig.client.submit(HOPELESS, request_id="f")
        end = time.monotonic() + 20
        while rig.client.row(failing)["state"] != "failed":
            check(time.monotonic() < end, "the hopeless job fails")
        freed = rig.client.submit(JOBS["counts"], request_id="f")
        check(freed != failing, "a failed job keeps its request id")
        rig.client.call("cancel", id=rig.client.submit(dict(JOBS["strips"], height=60000),
                                                       request_id="c"))
        taken = rig.client.submit(JOBS["colour"], request_id="c")
        rig.client.wait_done([freed, taken])
        check_outputs(rig.client, "colour", taken, JOBS["colour"])


def crowd(soak):
    """Submit, status and cancel from all sides: what is refused is refused for the job's state."""
    faults = Faults(f"{CLIENTS} clients submit, ask and cancel at once")
    seconds = 60 if soak else 6
    with Rig() as rig:
        rig.start()

        def busy(n, client):
            chance, end, calls, mine = random.Random(n), time.monotonic() + seconds, 0, []
            while time.monotonic() < end:
                calls += 1
                what = chance.random()
                try:
                    if what < 0.2 or not mine:
                        mine.append(client.submit(JOBS["counts"], request_id=f"{n}-{len(mine)}"))
                    elif what < 0.7:
                        client.call("status", ids=[chance.choice(mine)])
                    elif what < 0.8:
                        client.call("status", after=0, limit=20)
                    else:
                        client.call("cancel", id=chance.choice(mine))
                except Refused as e:
                    check(e.status == "state", f"after {calls} calls: {e}")
            return calls, mine

        results = together(rig, CLIENTS, busy, seconds)
        bad = [r for r in results if isinstance(r, Exception)]
        check(not bad, f"{len(bad)} clients failed, the first with {bad[:1]!r}")
        check(not rig.ended(), "the worker ended")
        rows = {row["id"]: row for row in rig.client.rows()}
        check(set(rows) == {job for _, mine in results for job in mine}, "jobs are not those submitted")
        end = time.monotonic() + 120
        while any(r["state"] not in ("done", "cancelled") for r in rig.client.rows()):
            check(time.monotonic() < end, "all jobs end")
            time.sleep(0.2)
        check(" error: " not in rig.text(), "the worker logged an error")
        rig.check_tidy()
        faults.tried = sum(calls for calls, _ in results)
        rig.kill()
        rig.check_history({})
    return [faults]


def slow_removal(soak):
    """However long it takes to remove the tiles of a job, others go on."""
    with Rig() as rig:
        rig.start(failpoints="tidy-unlink:1:hang")
        first = rig.client.submit(JOBS["strips"])
        rig.client.wait_done([first])
        second = rig.client.submit(JOBS["colour"])
        rig.client.wait_done([second], 20)
        check_outputs(rig.client, "colour", second, JOBS["colour"])
        check(os.path.isdir(f"{rig.dir}/work/{first}"), "nothing was left to remove")
        rig.kill()
        rig.start()
        rig.check_tidy()


def removed_while_assembled(soak):
    """Cancelled and removed in the very turn in which its picture is ready."""
    # So many tiles that its submit keeps the main loop busy until then.
    slow = {"width": 4096, "height": 1 << 24, "view": ["2", "3", "2", "3"], "iterations": 10,
            "palette": "gray"}
    tries = 0
    with Rig() as rig:
        rig.start()
        client, end = rig.client, time.monotonic() + (30 if soak else 5)
        while time.monotonic() < end:
            job = client.submit(JOBS["colour"])
            while client.row(job)["state"] not in ("assembling", "done"):
                pass
            client.connect()
            requests = (("submit", {"job": slow, "name": "", "request_id": None}),
                        ("cancel", {"id": job}), ("remove", {"id": job, "force": True}))
            for seq, (verb, args) in enumerate(requests):
                client.socket.send(json.dumps(
                    {"mandelq": 1, "seq": seq, "verb": verb, "args": args}).encode())
            check(client.socket.poll(20000), "the worker does not answer")
            busy = json.loads(client.socket.recv_multipart()[0])["result"]["id"]
            client.call("cancel", id=busy)
            client.call("remove", id=busy)
            tries += 1
        check(not rig.ended() and tries, f"{tries} tries, exit {rig.process.poll()}")


TESTS = [("removing the tiles of a job keeps nobody waiting", slow_removal),
         ("a job removed in the turn in which its picture is ready", removed_while_assembled),
         ("50 clients with one request id get one job", one_id),
         ("exit codes of repeated requests", exit_codes),
         ("50 clients at once never see an error of the database", crowd)]
