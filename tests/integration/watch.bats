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
assert flips(w, 12) < 0.1
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
assert time.time() - begun < 1, time.time() - begun'
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
assert statistics.median(took) < 0.1, took'
	[ "$(cut -d: -f1 out)" = "$(printf 'job 1 %s\n' queued paused queued paused queued paused queued paused queued paused)" ]
	# one that ends in good order is away as well
	stop_worker
	start_worker
	mq cancel 1
	until_true 3 grep -q 'job 1 cancelled' out
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
