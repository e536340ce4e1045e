#!/usr/bin/env bats
# watch and wait hear from the worker instead of asking it, and are right all the same.
load helper

# Python with watch(ARGUMENT...) whose lines come with times, told(LINE), flips(N), requests().
watcher() {
	WORKER=$WORKER timeout 100 "$PYTHON" -c "
import subprocess, statistics
sys_path = __import__('sys').path
sys_path.insert(0, '$BATS_TEST_DIRNAME')
from hostile import *

class Lines:
    def __init__(self, *command):
        self.lines = []
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append((time.time(), line.strip().split(':')[0]))  # without the reason

    def told(self, line, after=0.0, seconds=10):
        end = time.time() + seconds
        while time.time() < end:
            for when, text in self.lines:
                if when >= after and text == line:
                    return when
            time.sleep(0.002)
        raise AssertionError('%s is not among %s' % (line, self.lines))

def watch(*arguments):
    return Lines('mandelq', 'watch', *arguments)

def flips(w, n, gap=0.4):
    'job 1 is paused and goes on, n times: how long until the watcher tells, in the middle'
    took = []
    for i in range(n):
        verb, state = (('pause', 'paused'), ('resume', 'queued'))[i % 2]
        begun = time.time()
        assert call(verb, id=1)['status'] == 'ok'
        took.append(w.told('job 1 ' + state, begun) - begun)
        time.sleep(gap)
    print('told after %s s' % ['%.3f' % t for t in took], file=sys.stderr)
    return statistics.median(took)

def requests():
    text = call('metrics')['result']['text']
    return int(next(l for l in text.splitlines() if l.startswith('mandelq_requests_total ')).split()[1])

def requests_in(seconds):
    before = requests()
    time.sleep(seconds)
    return requests() - before - 1
$1
os._exit(0)"
}

# A queue in which nothing happens, and job 1 in it.
quiet_queue() {
	start_worker "$@"
	mq pause --all
	mq submit "${SMALL[@]}" >/dev/null
}

@test "a change is told at once, and who watches asks for nothing" {
	quiet_queue
	watcher '
w, one = watch(), watch("1")
w.told("job 1 queued"); one.told("job 1 queued")
assert flips(w, 12) < 0.2
assert one.lines[-1][1] == w.lines[-1][1] == "job 1 queued", (one.lines, w.lines)
time.sleep(1)
# each looks again now and then; polling twice a second took 16
asked = requests_in(4)
assert asked <= 4, asked
before = requests()
call("submit", job={"width": 64, "height": 64, "iterations": 50}, priority=7)
w.told("job 2 queued", seconds=2)
call("cancel", id=2)
w.told("job 2 cancelled", seconds=2)
call("cancel", id=1)
assert one.process.wait(5) == 0
assert one.lines[-1][1] == "job 1 cancelled"'
}

@test "who waits is woken, and asks for nothing" {
	quiet_queue
	watcher '
waiting = [Lines("mandelq", "wait", "1") for n in range(6)]
time.sleep(4)
asked = requests_in(4)
assert asked <= 12, asked
begun = time.time()
call("resume", all=True)
for w in waiting:
    w.process.wait(5)
assert time.time() - begun < 2.5, time.time() - begun'
}

@test "the queue that is paused, and jobs that are removed, are told at once" {
	quiet_queue
	mq pause 1
	watcher '
w, ended = watch(), watch("--state=cancelled")
# an id that never was is no job
assert watch("1", "99").process.wait(5) == 3
for n in 2, 3, 4, 5, 6, 7:
    call("submit", job={"width": 64, "height": 64, "iterations": 50})
w.told("job 7 queued")
ids = watch("1", "2", "3")
ids.told("job 3 queued")
for n in range(2, 8):
    call("pause", id=n)
w.told("job 7 paused"); ids.told("job 3 paused")
took = {"queue": [], "ended": [], "listed": [], "id": []}
def tell(kind, watcher, line, verb, **args):
    time.sleep(0.3)
    begun = time.time()
    assert call(verb, **args)["status"] == "ok"
    took[kind].append(watcher.told(line, begun) - begun)
for i in range(6):
    tell("queue", w, ("the queue goes on", "the queue is paused")[i % 2], ("resume", "pause")[i % 2], all=True)
for n in range(2, 7):
    call("cancel", id=n)
    w.told("job %d cancelled" % n); ended.told("job %d cancelled" % n)
    if n <= 3:
        ids.told("job %d cancelled" % n)
    tell("ended", w, "job %d removed" % n, "remove", id=n)
    took["listed"].append(ended.told("job %d removed" % n) - w.told("job %d removed" % n))
    if n <= 3:
        took["id"].append(ids.told("job %d removed" % n) - w.told("job %d removed" % n))
print(took, file=sys.stderr)
assert all(statistics.median(t) < 1 for t in took.values()), took
# each once, and the jobs that are left are watched on
time.sleep(3.5)
for lines in (w.lines, ended.lines):
    assert [t for _, t in lines if "removed" in t] == ["job %d removed" % n for n in range(2, 7)], lines
assert ids.process.poll() is None
call("cancel", id=1)
assert ids.process.wait(5) == 0
assert [t for _, t in ids.lines][-3:] == ["job 3 cancelled", "job 3 removed", "job 1 cancelled"], ids.lines'
}

@test "a job that is removed before its end could be told ends the waiting" {
	quiet_queue
	watcher '
waiting = Lines("mandelq", "wait", "1")
w, ids = watch(), watch("1")
w.told("job 1 queued"); ids.told("job 1 queued")
time.sleep(4)
# both in one turn of the worker: there is no row of the end
d = zmq.Context.instance().socket(zmq.DEALER)
d.connect("ipc://" + PATH)
d.send(request("hello")); d.recv()
os.kill(WORKER, 19)
d.send(request("cancel", id=1)); d.send(request("remove", id=1))
time.sleep(0.3)
begun = time.time()
os.kill(WORKER, 18)
assert [json.loads(d.recv())["status"] for n in range(2)] == ["ok", "ok"]
assert waiting.process.wait(5) == 3
assert ids.process.wait(5) == 0
w.told("job 1 removed", begun); ids.told("job 1 removed", begun)
assert time.time() - begun < 2.5, time.time() - begun
assert "job 1 cancelled" not in [t for _, t in w.lines]'
}

@test "only what the filter lets through, and nothing is asked for the rest" {
	quiet_queue
	mq submit "${SMALL[@]}" --name=mine >/dev/null
	watcher '
w = watch("--name=mine", "--state=queued,done")
w.told("job 2 queued")
time.sleep(1)
before = requests()
for n in range(20):
    call("priority", id=1, priority=n)
    time.sleep(0.1)
# an unknown job is asked for once; the slow look; ours
assert requests() - before <= 20 + 1 + 3, requests() - before
call("cancel", id=2)
w.told("job 2 cancelled", seconds=2)
assert not any("job 1" in text for _, text in w.lines), w.lines'
}

@test "watch goes on over a worker that is killed and started again" {
	quiet_queue
	mandelq watch >out 2>err 3>&- 4>&- &
	until_true 10 grep -q 'job 1 queued' out
	kill_worker
	until_true 10 grep -q 'trying again' err
	start_worker
	mq pause 1
	until_true 3 grep -q 'job 1 paused' out
	sleep 1
	# it hears again
	watcher '
took = []
for i in range(8):
    size, begun = os.path.getsize("out"), time.time()
    call(("resume", "pause")[i % 2], id=1)
    while os.path.getsize("out") == size:
        time.sleep(0.002)
    took.append(time.time() - begun)
    time.sleep(0.3)
assert statistics.median(took) < 0.2, took'
	[ "$(cut -d: -f1 out)" = "$(printf 'job 1 %s\n' queued paused queued paused queued paused queued paused queued paused)" ]
	# one that ends in good order is away as well
	stop_worker
	start_worker
	mq cancel 1
	until_true 3 grep -q 'job 1 cancelled' out
}

@test "watchers with much to read live through the end of their worker" {
	quiet_queue
	for _ in $(seq 150); do echo '{"width":16,"height":16}'; done | mq submit - >/dev/null
	watchers=()
	for i in $(seq 16); do
		mandelq watch >"out$i" 2>"err$i" 3>&- 4>&- &
		watchers+=($!)
	done
	for i in $(seq 16); do until_true 20 grep -q 'job 151 queued' "out$i"; done
	sleep 0.5
	kill -STOP "${watchers[@]}"
	mq resume --all
	mq wait --timeout=60
	kill_worker
	kill -CONT "${watchers[@]}"
	for i in $(seq 16); do until_true 10 grep -q 'trying again' "err$i"; done
	for pid in "${watchers[@]}"; do still_runs "$pid"; done
}

@test "a worker that tells no events is asked" {
	# the socket has room for its name, the event socket has not
	export MANDELQ_ENDPOINT=ipc://$ROOT/$(printf '%0*d' $((104 - ${#ROOT} - 1)) 0)
	quiet_queue
	mandelq watch 1 >out 3>&- 4>&- &
	until_true 10 grep -q 'job 1 queued' out
	mq pause 1
	until_true 2 grep -q 'job 1 paused' out
	mq cancel 1
	wait $!
}

@test "on a terminal: drawn ten times a second at most, and for another size" {
	quiet_queue
	watcher '
import fcntl, pty, select, signal, termios
pid, tty = pty.fork()
if pid == 0:
    os.execvp("mandelq", ["mandelq", "watch"])

def drawn(seconds):
    "how often the screen is cleared"
    count, end = 0, time.time() + seconds
    while time.time() < end:
        if select.select([tty], [], [], max(0, end - time.time()))[0]:
            count += os.read(tty, 65536).count(b"\x1b[H")
    return count

assert drawn(1.5) >= 1
before = requests()
for width in (60, 70, 80, 90, 100, 110):
    fcntl.ioctl(tty, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    assert drawn(0.5) >= 1, width
assert requests() - before <= 1 + 2
stop = time.time() + 3
def busy():
    while time.time() < stop:
        for verb in ("pause", "resume"):
            call(verb, id=1)
threading.Thread(target=busy, daemon=True).start()
count = drawn(2)
assert 5 <= count <= 22, count
os.kill(pid, signal.SIGINT)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0'
}

@test "on a terminal: the queue that is paused, and a job that is removed, leave and come at once" {
	quiet_queue
	mq pause 1
	mq submit "${SMALL[@]}" >/dev/null
	mq pause 2
	watcher '
import fcntl, pty, select, termios
pid, tty = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    os.execvp("mandelq", ["mandelq", "watch"])
said = b""
def shows(seconds, yes, no=None):
    "until the screen has the one and not the other"
    global said
    begun = time.time()
    while time.time() < begun + seconds:
        if select.select([tty], [], [], 0.05)[0]:
            said += os.read(tty, 65536)
        screen = said.split(b"\x1b[H")[-1].decode()
        if yes in screen and (no is None or no not in screen):
            return time.time() - begun
    raise AssertionError((yes, no, screen))

shows(5, "the queue is paused")
# the size is not known: the usual one, in which both jobs have room
assert " 1  " in said.decode() and " 2  " in said.decode(), said
took = []
for n in range(4):
    time.sleep(0.3)
    call("resume", all=True)
    took.append(shows(5, "by hand", "the queue is paused"))
    time.sleep(0.3)
    call("pause", all=True)
    took.append(shows(5, "the queue is paused"))
call("cancel", id=2)
shows(5, "cancelled")
time.sleep(0.3)
call("remove", id=2)
took.append(shows(5, "the queue is paused", "cancelled"))
assert statistics.median(took) < 1 and took[-1] < 2.5, took
os.kill(pid, 2)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0'
}
