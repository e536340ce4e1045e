#!/usr/bin/env bats
# Clients on other machines: over tcp, with CURVE, by keys that the worker knows. Loopback only.
load helper

# Two users that every system has and nobody runs tests as.
test_setup() {
	SERVER=$(mandelqd keygen 2>/dev/null)
	ME=$(mq keygen 2>/dev/null)
	OTHER=$(mq keygen --key="$ROOT/other.key" 2>/dev/null)
	AUTHORIZED=$MANDELQ_STATE_DIR/authorized_clients
	printf '# who may\n%s nobody # a comment\n\n%s daemon\n' "$ME" "$OTHER" >"$AUTHORIZED"
}

# start_remote [HOST] OPTION...: sets REMOTE, the options of a client.
start_remote() {
	local host=${1:-127.0.0.1}
	[ $# = 0 ] || shift
	start_worker --endpoint="tcp://$host:0" "$@"
	ENDPOINT=$(grep -o 'served at tcp://[^;]*' "$LOG" | tail -n 1 | cut -d' ' -f3)
	REMOTE=(--endpoint="$ENDPOINT" --server-key="$SERVER")
}

@test "keys: made once, for their owner alone, and told" {
	[ "${#SERVER}" = 40 ] && [ "${#ME}" = 40 ] && [ "$SERVER" != "$ME" ]
	[ "$(stat -c %a "$MANDELQ_STATE_DIR/server.key" "$HOME/.config/mandelq/client.key" | sort -u)" = 600 ]
	cp "$HOME/.config/mandelq/client.key" before
	# again: left alone, and told, also where nothing can be written
	for program in mandelq mandelqd; do
		$program keygen >again 2>err
		grep -q "left alone (--force replaces it)" err
		[ "$(cat again)" = "$([ $program = mandelq ] && echo "$ME" || echo "$SERVER")" ]
	done
	chmod 644 "$HOME/.config/mandelq/client.key"
	refused 2 "chmod 600" mandelq keygen
	chmod 600 "$HOME/.config/mandelq/client.key"
	cmp before "$HOME/.config/mandelq/client.key"
	[ "$(mandelq keygen --force 2>/dev/null)" != "$ME" ]
	! cmp -s before "$HOME/.config/mandelq/client.key"
	[ "$(ls "$MANDELQ_STATE_DIR" "$HOME/.config/mandelq" | grep -c 'key$')" = 2 ]
	[ "$(ls "$HOME/.config/mandelq")" = client.key ] # nothing half made is left
	# what is no file of keys is left alone
	echo precious >notes.txt
	ln -s "$ROOT/other.key" link.key
	mkfifo fifo.key
	devices=()
	if mknod null c 1 3 2>/dev/null; then devices=(null); fi
	for file in notes.txt link.key fifo.key "${devices[@]}"; do
		before=$(stat -c '%i %F' "$file")
		refused 2 "no file of keys" mandelq keygen --force --key="$file"
		[ "$(stat -c '%i %F' "$file")" = "$before" ]
	done
	mv "$MANDELQ_STATE_DIR/server.key" kept.key
	ln -s "$PWD/notes.txt" "$MANDELQ_STATE_DIR/server.key"
	refused 2 "no file of keys" mandelqd keygen --force
	[ "$(cat notes.txt)" = precious ]
	mv kept.key "$MANDELQ_STATE_DIR/server.key"
	: >"$ROOT/other.key"
	mandelq keygen --force --key="$ROOT/other.key"
	echo "secret-key half of it" >"$ROOT/other.key"
	mandelq keygen --force --key="$ROOT/other.key"
	[ -z "$(find "$ROOT" -name '*.key.??????')" ]
	refused 2 "is no option" mandelqd keygen more
	refused 2 "mandelqd keygen" mandelqd --force
	refused 2 "takes no operands" mandelq keygen more
}

@test "the right key works end to end, beside the worker's own socket" {
	start_remote
	id=$(mq submit "${REMOTE[@]}" "${SMALL[@]}" 2>/dev/null)
	mq wait "${REMOTE[@]}" --timeout=30 "$id"
	mq fetch "${REMOTE[@]}" -o remote.png "$id"
	mq fetch -o local.png "$id"
	cmp remote.png local.png
	[ "$(field "$id" .owner)" = "$(id -u nobody)" ]
	[ "$(mq status "${REMOTE[@]}" --mine --json | jq length)" = 1 ]
	local=$(mq submit "${SMALL[@]}" 2>/dev/null)
	[ "$(field "$local" .owner)" = "$(id -u)" ]
	# by names in files and in the environment
	echo "$ENDPOINT $SERVER" >"$HOME/.config/mandelq/known_servers"
	MANDELQ_ENDPOINT=$ENDPOINT mq info "$id" >/dev/null
	echo "$SERVER" >server.pub
	mq watch --endpoint="$ENDPOINT" --server-key=server.pub "$id" >/dev/null
}

@test "watch and wait over tcp ask, and see changes all the same" {
	start_remote
	mq pause --all
	id=$(mq submit "${REMOTE[@]}" "${SMALL[@]}" 2>/dev/null)
	mandelq watch "${REMOTE[@]}" "$id" >out 3>&- 4>&- &
	watching=$!
	mandelq wait "${REMOTE[@]}" "$id" 2>/dev/null 3>&- 4>&- &
	waiting=$!
	until_true 10 grep -q "job $id queued" out
	sleep 1
	mq pause "${REMOTE[@]}" "$id"
	until_true 2 grep -q "job $id paused" out
	mq cancel "${REMOTE[@]}" "$id"
	until_true 2 ended "$watching"
	until_true 2 ended "$waiting"
	wait "$watching"
	[ "$(tail -n 1 out)" = "job $id cancelled" ]
}

@test "a picture larger than one message comes whole" {
	start_remote
	submit_and_wait --size=1400x1000 --iterations=3000 --center=-0.7436438870371587,0.1318259042053119 --zoom=2000
	[ "$(field 1 .output.bytes)" -gt 1048576 ]
	mq fetch 1 -o local.png
	mq fetch "${REMOTE[@]}" 1 -o remote.png
	cmp remote.png local.png
}

@test "owners hold over tcp too" {
	start_remote
	id=$(mq submit "${REMOTE[@]}" "${ENDLESS[@]}" 2>/dev/null)
	refused 8 "belongs to somebody else" mq cancel "${REMOTE[@]}" --key="$ROOT/other.key" "$id"
	mq status "${REMOTE[@]}" --key="$ROOT/other.key" "$id" >/dev/null
	mq cancel "${REMOTE[@]}" "$id"
}

@test "a key that the worker does not know, and a wrong server's" {
	start_remote
	stranger=$(mq keygen --key=stranger.key 2>/dev/null)
	SECONDS=0
	refused 8 "$stranger" mq status "${REMOTE[@]}" --key=stranger.key
	[ "$SECONDS" -le 3 ]
	refused 8 "--server-key is not its public key" mq status --endpoint="$ENDPOINT" --server-key="$ME"
	refused 8 "$stranger" mq wait "${REMOTE[@]}" --key=stranger.key --timeout=20
	[ "$SECONDS" -le 12 ]
	mq status "${REMOTE[@]}"
}

@test "a client without keys is told what to do" {
	start_remote
	refused 2 "known_servers" mq status --endpoint="$ENDPOINT"
	refused 2 "--server-key" mq status --endpoint="$ENDPOINT" --server-key=nosuch
	refused 2 "mandelq keygen makes it" mq status "${REMOTE[@]}" --key=nosuch
	rm -r "$HOME/.config"
	refused 2 "mandelq keygen makes it" mq status "${REMOTE[@]}"
	cp "$ROOT/other.key" open.key
	chmod 644 open.key
	refused 2 "others may read" mq status "${REMOTE[@]}" --key=open.key
	sed 's/^secret-key ...../secret-key xxxxx/' "$ROOT/other.key" >bad.key
	chmod 600 bad.key
	refused 2 "no key pair" mq status "${REMOTE[@]}" --key=bad.key
}

@test "a peer that speaks no CURVE, and one without a key of its own" {
	start_remote
	python '
import json, zmq
endpoint, server, key = argv
context = zmq.Context()
def ask(set_up):
    s = context.socket(zmq.DEALER)
    s.linger = 0
    set_up(s)
    s.connect(endpoint)
    s.send(json.dumps({"mandelq": 1, "seq": 1, "verb": "hello", "args": {}}).encode())
    answered = s.poll(1500) and json.loads(s.recv())["result"]
    s.close()
    return answered
def with_key(s):
    pair = dict(l.split() for l in open(key) if not l.startswith("# "))
    s.curve_serverkey = server.encode()
    s.curve_publickey, s.curve_secretkey = (pair[k].encode() for k in ("public-key", "secret-key"))
def throw_away(s):
    s.curve_serverkey = server.encode()
    s.curve_publickey, s.curve_secretkey = zmq.curve_keypair()
assert not ask(lambda s: None)
assert not ask(throw_away)
# the event socket is not for other machines
assert ask(with_key)["events"] is None
' "$ENDPOINT" "$SERVER" "$HOME/.config/mandelq/client.key"
	mq status "${REMOTE[@]}"
	! grep -q 'job . is queued' "$LOG"
}

@test "a key taken off the list, or given to another user, while the worker runs" {
	start_remote
	id=$(mq submit "${REMOTE[@]}" "${ENDLESS[@]}" 2>/dev/null)
	# a connection that stands already
	mq wait "${REMOTE[@]}" "$id" 2>wait.err &
	waiting=$!
	sleep 1
	grep -v "nobody" "$AUTHORIZED" >new || true
	mv new "$AUTHORIZED"
	refused 8 "does not know your key" mq status "${REMOTE[@]}"
	until_true 10 ended "$waiting"
	grep -q "not authorized any more" wait.err
	mq status "${REMOTE[@]}" --key="$ROOT/other.key"
	# changed in place, with the same size, at once
	printf '%s daemon\n' "$ME" >"$AUTHORIZED"
	mq status "${REMOTE[@]}"
	printf '%s daemon\n' "$OTHER" >"$AUTHORIZED"
	refused 8 "does not know your key" mq status "${REMOTE[@]}"
	rm "$AUTHORIZED"
	refused 8 "does not know your key" mq status "${REMOTE[@]}" --key="$ROOT/other.key"
	mq status
}

@test "lines of authorized_clients that are wrong are told and admit nobody" {
	printf '%s nosuchuser\nshort nobody\n%s nobody\n' "$OTHER" "$ME" >"$AUTHORIZED"
	start_remote
	grep -q 'authorized_clients:1 is ignored: there is no such user' "$LOG"
	grep -q 'authorized_clients:2 is ignored: no key' "$LOG"
	mq status "${REMOTE[@]}"
	refused 8 "does not know your key" mq status "${REMOTE[@]}" --key="$ROOT/other.key"
	[ "$(grep -c 'authorized_clients:1 is ignored' "$LOG")" = 1 ]
	chmod 666 "$AUTHORIZED"
	refused 8 "does not know your key" mq status "${REMOTE[@]}"
	grep -q "alone can change" "$LOG"
}

@test "IPv6, and all addresses at once" {
	start_remote '[::1]'
	[[ $ENDPOINT == 'tcp://[::1]:'* ]]
	mq status "${REMOTE[@]}"
	stop_worker
	start_remote '*'
	port=${ENDPOINT##*:}
	for host in 127.0.0.1 '[::1]' localhost; do
		mq status --endpoint="tcp://$host:$port" --server-key="$SERVER"
	done
}

@test "tcp without keys, or at no address, is refused" {
	rm "$MANDELQ_STATE_DIR/server.key"
	refuses_to_start "run mandelqd keygen" --endpoint=tcp://127.0.0.1:0
	[ "$status" = 2 ]
	mandelqd keygen >/dev/null
	for bad in tcp:// tcp://127.0.0.1 tcp://127.0.0.1:x tcp://127.0.0.1:70000 tcp://::1:5555 tcp://nosuch:1; do
		refuses_to_start "--endpoint" --endpoint=$bad
		[ "$status" = 2 ]
	done
	chmod 640 "$MANDELQ_STATE_DIR/server.key"
	refuses_to_start "others may read" --endpoint=tcp://127.0.0.1:0
}

@test "a busy port is refused, and a worker that is killed can have its own again at once" {
	start_remote
	mq status "${REMOTE[@]}"
	mandelqd keygen --state-dir="$ROOT/t" >/dev/null 2>&1
	refuses_to_start "cannot listen" --state-dir="$ROOT/t" --endpoint="$ENDPOINT"
	# a connection that the worker's end closes first
	exec 7<>"/dev/tcp/127.0.0.1/${ENDPOINT##*:}"
	read -r -N 1 -t 5 -u 7
	kill_worker
	start_worker --endpoint="$ENDPOINT"
	exec 7>&-
	mq status "${REMOTE[@]}"
}

@test "peers that flood before they have shown a key" {
	start_remote 127.0.0.1 --client-memory=64M
	WORKER=$WORKER ENDPOINT=$ENDPOINT timeout 100 "$PYTHON" -c "
import sys
sys.path.insert(0, '$BATS_TEST_DIRNAME')
from hostile import *
host, port = os.environ['ENDPOINT'][6:].split(':')
CURVE = GREETING.replace(b'NULL', b'CURVE')[:len(GREETING)]
CURVE = CURVE[:12] + b'CURVE'.ljust(20, b'\0') + bytes(32)
attempts = [
    (GREETING, ready(b'DEALER') + frame(bytes(65536), more=True) * 16),   # no CURVE, endless
    (CURVE, frame(bytes(65536), more=True) * 16),                         # no handshake
    (CURVE, b'\6' + struct.pack('>Q', 1 << 20) + bytes(MIB)),            # a large command
    (CURVE, b'\4\xc8' + b'\5HELLO\1\0' + bytes(192)),                    # a HELLO of nothing
    (CURVE, b''),                                                        # silence
]
sent, n, idle = 0, 0, []
with Watch() as w:
    end = time.time() + 4
    while time.time() < end:
        greeting, body = attempts[n % len(attempts)]
        n += 1
        try:
            s = socket.create_connection((host, int(port)), timeout=5)
            s.settimeout(0.5)
            s.sendall(greeting + body)
            sent += len(body)
            if not body:
                idle.append(s)
                continue
            s.recv(64)
        except OSError:
            pass
        s.close()
print('%d connections, %d MiB sent, %d stay' % (n, sent >> 20, len(idle)), file=sys.stderr)
assert n > 100 and sent > 50 << 20, (n, sent)
assert w.peak < w.before + 200, (w.before, w.peak)
alive()
time.sleep(6)
# silence does not hold a connection for ever
def closed(s):
    try:
        while s.recv(1000):
            pass
    except ConnectionResetError:
        pass
    return True
assert len(idle) > 10 and all(closed(s) for s in idle)
os._exit(0)"
	still_runs "$WORKER"
	mq status "${REMOTE[@]}"
}

@test "a peer with a key that floods is cut off, and others are served" {
	start_remote 127.0.0.1 --client-memory=64M
	WORKER=$WORKER timeout 100 "$PYTHON" -c "
import sys
sys.path.insert(0, '$BATS_TEST_DIRNAME')
from hostile import *
endpoint, server, keys = sys.argv[1:]
pair = dict(l.split() for l in open(keys) if not l.startswith('# '))
with Watch() as w:
    context = zmq.Context()
    s = context.socket(zmq.DEALER)
    s.linger = 0
    s.curve_serverkey = server.encode()
    s.curve_publickey, s.curve_secretkey = pair['public-key'].encode(), pair['secret-key'].encode()
    s.connect(endpoint)
    # libzmq sends a message whole or not at all: one of 800 MiB, many frames that are allowed
    sent = 0
    for i in range(12800):
        s.send(bytes(65536), zmq.SNDMORE)
        sent += 65536
    s.send(b'')
    time.sleep(5)
assert w.peak < w.before + 700, (w.before, w.peak)
alive()
os._exit(0)" "$ENDPOINT" "$SERVER" "$HOME/.config/mandelq/client.key"
	still_runs "$WORKER"
	grep -q 'connections of other machines are closed' "$LOG"
	mq status "${REMOTE[@]}"
}

# Python with flood_tcp(), which sends a message of 800 MiB with our key, and speaks(raw connection).
local_and_remote() {
	WORKER=$WORKER LOG=$LOG timeout 100 "$PYTHON" -c "
import sys
sys.path.insert(0, '$BATS_TEST_DIRNAME')
from hostile import *
endpoint, server, keys = sys.argv[1:]
host, port = endpoint[6:].split(':')
pair = dict(l.split() for l in open(keys) if not l.startswith('# '))
context = zmq.Context()

def flood_tcp():
    s = context.socket(zmq.DEALER)
    s.linger = 0
    s.curve_serverkey = server.encode()
    s.curve_publickey, s.curve_secretkey = pair['public-key'].encode(), pair['secret-key'].encode()
    s.connect(endpoint)
    for i in range(12800):
        s.send(bytes(65536), zmq.SNDMORE)
    s.send(b'')
    return s

def speaks(s):
    try:
        s.sendall(frame(request('metrics')))
        return bool(s.recv(1 << 16))
    except OSError:
        return False
$1
os._exit(0)" "$ENDPOINT" "$SERVER" "$HOME/.config/mandelq/client.key"
	still_runs "$WORKER"
	mq status "${REMOTE[@]}"
}

@test "who floods from another machine costs those of this one no connection" {
	start_remote 127.0.0.1 --client-memory=64M
	local_and_remote '
s, events = peer(), peer(EVENTS, b"SUB")
events.sendall(frame(b"\1job/"))
assert speaks(s)
flooding = flood_tcp()
end = time.time() + 20
while "connections of other machines are closed" not in open(os.environ["LOG"]).read():
    assert time.time() < end
    time.sleep(0.05)
time.sleep(1)
assert speaks(s)
call("submit", job={"width": 64, "height": 64, "iterations": 50})
assert events.recv(100)
assert resident() < 250, resident()'
	[ "$(grep -c 'all connections are closed' "$LOG")" = 0 ]
}

@test "who floods from this machine does not hide behind another's connection" {
	start_remote 127.0.0.1 --client-memory=64M
	local_and_remote '
quiet = socket.create_connection((host, int(port)))
with Watch() as w:
    sent = flood(PATH, b"DEALER", bytes(64 << 10), 3)
assert w.peak < w.before + 1200, (sent, w.peak)
alive()
gives_back(w.before)'
	grep -q 'all connections are closed' "$LOG"
}

@test "too many connections from other machines go alone" {
	ulimit -n 256
	start_remote
	local_and_remote '
s = peer()
assert speaks(s)
many = [socket.create_connection((host, int(port))) for n in range(180)]
time.sleep(1)
assert speaks(s)
many[0].settimeout(5)
# the greeting, then the end
try:
    while many[0].recv(100):
        pass
except ConnectionResetError:
    pass'
	grep -q 'connections, more than' "$LOG"
	[ "$(grep -c 'all connections are closed' "$LOG")" = 0 ]
}
