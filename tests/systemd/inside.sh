#!/bin/bash
# Runs in the container that boot.bats boots, as a service of it: uses mandelqd.service as its users do,
# and breaks it. Writes "ok NAME" or "not ok NAME" a part to /out/results, and all that was said to
# standard output. A part that fails does not keep the others from running.
set -uo pipefail
cd /tmp
MEMBER=(setpriv --reuid=4711 --regid=4711 --groups="$(getent group mandelq | cut -d: -f3)")
STRANGER=(setpriv --reuid=4712 --regid=4712 --clear-groups)
# Some 3140 steps a pixel, in four tiles of one strip: a second or two of work for two threads.
LONG=(--size=1024x4096 --view=-0.75000015,-0.75000005,0.0009998,0.0010002 --iterations=10000 --palette=gray)
DROPIN=/run/systemd/system/mandelqd.service.d

mq() {
	timeout 60 "${MEMBER[@]}" mandelq "$@"
}

show() {
	systemctl show --value --property="$1" mandelqd
}

# until_true SECONDS COMMAND...
until_true() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || { echo "not within its time: $*"; return 1; }
		sleep 0.05
	done
}

field() {
	mq status --json "$1" | jq -r ".[0].$2"
}

has_tiles() {
	local state
	state=$(field "$1" state)
	[ "$state" = running ] && [ "$(field "$1" tiles_done)" -ge 1 ]
}

restarts_are() {
	[ "$(show NRestarts)" = "$1" ] && [ "$(show ActiveState)" = active ]
}

# submit_running: a job of which a tile is done and others are not.
submit_running() {
	local id
	id=$(mq submit "${LONG[@]}" "$@") && until_true 30 has_tiles "$id" >&2 && echo "$id"
}

# same_picture ID: the job ends well, with the bytes of the one that nothing disturbed.
same_picture() {
	mq wait --timeout=50 "$1" && mq fetch --force -o /tmp/again.png "$1" && cmp /tmp/long.png /tmp/again.png
}

# --- the parts ---

starts() {
	local uid
	mkdir -p /etc/mandelq && echo "threads = 2" >/etc/mandelq/mandelqd.conf || return
	systemctl restart mandelqd || return # a first boot may have started it
	uid=$(stat -c %u "/proc/$(show MainPID)")
	[ "$(show ActiveState)/$(show SubState)/$(show NotifyAccess)" = active/running/main ] && [ "$uid" != 0 ] &&
		[ "$(stat -c '%A %u %G' /run/mandelq)" = "drwxr-x--- $uid mandelq" ] &&
		[ "$(stat -c '%A %u %G' /run/mandelq/mandelqd.sock)" = "srw-rw---- $uid mandelq" ] &&
		[ "$(stat -L -c '%A %u' /var/lib/mandelq)" = "drwx------ $uid" ]
}

member() {
	local id
	id=$(mq submit "${LONG[@]}") && mq wait --timeout=50 "$id" && mq fetch -o /tmp/long.png "$id" &&
		[ "$(head -c 4 /tmp/long.png | tail -c 3)" = PNG ]
}

stranger() {
	local status=0
	timeout 20 "${STRANGER[@]}" mandelq status || status=$?
	[ "$status" = 4 ]
}

sigkill() {
	local id pid
	pid=$(show MainPID)
	id=$(submit_running) && systemctl kill --signal=KILL mandelqd && until_true 20 restarts_are 1 &&
		[ "$(show MainPID)" != "$pid" ] && same_picture "$id"
}

# The failpoint holds for one start: its file is gone before the next.
watchdog() {
	local id
	mkdir -p $DROPIN
	printf '[Service]\nWatchdogSec=3\nEnvironmentFile=-/run/hang.env\n' >$DROPIN/hang.conf
	echo "MANDELQ_FAILPOINTS=store-commit:4:hang" >/run/hang.env
	systemctl daemon-reload && systemctl restart mandelqd && rm /run/hang.env || return
	id=$(mq submit "${LONG[@]}") || return
	until_true 20 restarts_are 1 || return
	journalctl -u mandelqd -o cat | grep -q "Watchdog timeout" || return
	same_picture "$id" || return
	rm $DROPIN/hang.conf && systemctl daemon-reload
}

# What the log is about stands in fields of the journal.
journal_fields() {
	local id
	id=$(mq submit --size=64) && mq wait --timeout=50 "$id" || return
	journalctl --sync
	[ "$(journalctl -u mandelqd -o cat MANDELQ_JOB="$id" | grep -c "^job $id[ :]")" = 3 ] &&
		[ "$(journalctl -u mandelqd -o json MANDELQ_JOB="$id" -n 1 | jq -r '.PRIORITY + .SYSLOG_IDENTIFIER')" = 6mandelqd ]
}

drains() {
	local id begin
	id=$(submit_running) || return
	begin=$SECONDS
	systemctl stop mandelqd || return
	[ $((SECONDS - begin)) -le 12 ] &&
		[ "$(show Result)/$(show ExecMainStatus)/$(show ActiveState)" = success/0/inactive ] &&
		[ ! -e /run/mandelq ] && systemctl start mandelqd && same_picture "$id"
}

# mandelqd(8)'s way to serve other machines.
remote() {
	local server client id
	server=$(mandelqd keygen --state-dir=/var/lib/mandelq) && client=$(mandelq keygen --key=/tmp/client.key) || return
	echo "$client nobody" >/var/lib/mandelq/authorized_clients
	echo "endpoint = tcp://127.0.0.1:5555" >/etc/mandelq/mandelqd.conf
	mkdir -p $DROPIN
	printf '[Service]\nPrivateNetwork=no\nRestrictAddressFamilies=AF_UNIX AF_INET AF_INET6\n' >$DROPIN/remote.conf
	systemctl daemon-reload && systemctl restart mandelqd || return
	[ "$(stat -c %U /var/lib/mandelq/server.key)" != root ] || return
	# which is nothing to a user's own worker
	HOME=/tmp/own "${MEMBER[@]}" mandelqd --print-config |
		grep "endpoint = tcp://127.0.0.1:5555 ; /etc/mandelq/mandelqd.conf:1, not for this worker" || return
	mandelqd --print-config --state-dir=/var/lib/mandelq | grep -x "endpoint = tcp://127.0.0.1:5555 ; .*:1" || return
	id=$(mandelq submit --endpoint=tcp://127.0.0.1:5555 --key=/tmp/client.key --server-key="$server" --size=64) &&
		mq wait --timeout=50 "$id" && [ "$(field "$id" owner)" = "$(id -u nobody)" ] || return
	rm $DROPIN/remote.conf && systemctl daemon-reload
}

wrong_configuration() {
	systemctl stop mandelqd && echo "nosuch = 1" >/etc/mandelq/mandelqd.conf || return
	! systemctl start mandelqd && sleep 3 &&
		[ "$(show NRestarts)/$(show ExecMainStatus)/$(show ActiveState)" = 0/2/failed ] &&
		journalctl -u mandelqd -o cat | grep -q "mandelqd.conf:1" || return
	rm /etc/mandelq/mandelqd.conf
}

for part in starts member stranger sigkill watchdog journal_fields drains remote wrong_configuration; do
	echo "--- $part"
	systemctl reset-failed mandelqd 2>/dev/null
	if (set -x; $part); then echo "ok $part"; else echo "not ok $part"; fi >>/out/results
done 2>&1
echo "--- journal"
journalctl --no-pager -o short-precise -u mandelqd | tail -n 60
