#!/usr/bin/env bats
# A start that is refused has changed nothing: what it made is gone again, and what was there is as it was.
load helper

# All of a folder: names, kinds, modes, links, and what is in the files.
tree() {
	[ -e "$1" ] || { echo none; return; }
	(cd "$1" && find . -printf '%P %y %m %l\n' | sort && find . -type f -print0 | sort -z | xargs -0r sha256sum)
}

# Lines of TEXT|VARIABLE=VALUE or nothing|OPTION...
bad_input() {
	cat <<-END
		there is no cuda:999||--device=cuda:999
		there is no GPU-5f01a2ff||--device=GPU-5f01a2ff-0010-800b-c33c-deadbeef1234
		16 times at most||$(printf -- '--device=cpu %.0s' {1..16})
		is none of auto||--device=gpu
		MANDELQ_CPU_ISA|MANDELQ_CPU_ISA=nosuch|--device=cpu
		nowhere||--endpoint=nowhere
		relative||--endpoint=ipc://relative
		cannot bind||--endpoint=ipc://$ROOT/nowhere/sock
		longer than||--endpoint=ipc://$ROOT/$(printf '%0108d' 0)
		is no socket||--endpoint=ipc://$ROOT/file
		is no socket||--endpoint=ipc://$ROOT/taken
		a worker answers||--endpoint=$LIVE
		$KEYS||--endpoint=tcp://127.0.0.1:0
		--threads||--threads=0
		absent.conf||--config=$ROOT/absent.conf
		live.d||--config=$ROOT/live.d
		a.conf:2||--config=$ROOT/a.conf
		a.conf:2|MANDELQ_ENDPOINT=nowhere|--config=$ROOT/a.conf
	END
}

# Failures on the way, which need not be anybody's fault.
broken_start() {
	for point in state-folder state-fsync store-open store-begin; do
		echo "mandelqd|MANDELQ_FAILPOINTS=$point:1:enospc|"
	done
}

# refused_all DIRECTORY: each line of standard input is refused with its text, and DIRECTORY stays as it is.
refused_all() {
	local text variable options before
	before=$(tree "$1")
	while IFS='|' read -r text variable options; do
		# shellcheck disable=SC2086
		run timeout 20 env ${variable:+"$variable"} mandelqd --device=cpu --threads=1 $options </dev/null
		case $status in
		1 | 2) ;;
		*) echo "exit $status: $variable $options: $output"; return 1 ;;
		esac
		[[ $output == *"$text"* ]] || { echo "no '$text' with $variable $options: $output"; return 1; }
		[ "$(tree "$1")" = "$before" ] ||
			{ echo "left behind by $variable $options:"; diff <(echo "$before") <(tree "$1"); return 1; }
	done
}

test_setup() {
	KEYS="run mandelqd keygen"
	LIVE=ipc://$ROOT/live
	printf 'threads = 1\nidle-release = -1\n' >"$ROOT/a.conf"
	echo mine >"$ROOT/file"
	echo mine >"$ROOT/taken.events"
	mandelqd --device=cpu --threads=1 --state-dir="$ROOT/live.d" --endpoint="$LIVE" \
		2>/dev/null >/dev/null </dev/null 3>&- 4>&- &
	until_true 10 mq status --endpoint="$LIVE"
}

@test "refused with a state directory that is not there: no part of its path is left" {
	export MANDELQ_STATE_DIR=$ROOT/new/deep/s
	{ bad_input; broken_start; } | refused_all "$ROOT/new"
	# a path that cannot be made as a whole
	for dir in "$ROOT/new/$(printf '%0300d' 0)" "$ROOT/file/s"; do
		echo "--state-dir||--state-dir=$dir"
	done | refused_all "$ROOT/new"
	[ ! -e "$ROOT/new" ]
	[ "$(cat "$ROOT/file" "$ROOT/taken.events")" = "$(printf 'mine\nmine')" ]
	[ ! -e "$ROOT/taken" ]
	expect 0 mq status --endpoint="$LIVE"
	# and it can be made after all
	start_worker
	stop_worker
}

@test "refused with an empty state directory: it stays empty, with other people's files in it" {
	mkdir -m 700 "$MANDELQ_STATE_DIR"
	{ bad_input; broken_start; } | refused_all "$MANDELQ_STATE_DIR"
	echo mine >"$MANDELQ_STATE_DIR/mandelqd.sock.events"
	mkdir "$MANDELQ_STATE_DIR/work"
	echo mine >"$MANDELQ_STATE_DIR/work/notes"
	echo "is no socket||" | refused_all "$MANDELQ_STATE_DIR"
}

@test "refused where a worker was killed: nothing is recovered, no stale socket is removed" {
	start_worker
	[ "$(submit_and_wait "${SMALL[@]}")" = 1 ]
	mq submit "${ENDLESS[@]}" 2>/dev/null
	until_true 10 state_is 2 running
	kill_worker
	bad_input | refused_all "$MANDELQ_STATE_DIR"
	mandelqd keygen 2>/dev/null >/dev/null
	printf '%s\n' "is no address||--endpoint=tcp://nosuch:1" "cannot listen||--endpoint=tcp://192.0.2.1:0" | refused_all "$MANDELQ_STATE_DIR"
	chmod 640 "$MANDELQ_STATE_DIR/server.key"
	echo "others may read||--endpoint=tcp://127.0.0.1:0" | refused_all "$MANDELQ_STATE_DIR"
	chmod 600 "$MANDELQ_STATE_DIR/server.key"
	echo garbage >"$MANDELQ_STATE_DIR/server.key"
	echo "no key pair||--endpoint=tcp://127.0.0.1:0" | refused_all "$MANDELQ_STATE_DIR"
	start_worker
	[ "$(field 1 .state)" = done ]
	mq cancel 2
	stop_worker
	sqlite3 "$MANDELQ_STATE_DIR/mandelq.db" 'PRAGMA user_version=999' >/dev/null
	echo "mandelq.db||" | refused_all "$MANDELQ_STATE_DIR"
}

@test "refused where another one serves: nothing is taken away from it" {
	start_worker
	[ "$(submit_and_wait "${SMALL[@]}")" = 1 ]
	for endpoint in "$MANDELQ_STATE_DIR/mandelqd.sock" "$ROOT/other.sock"; do
		echo "in use by another mandelqd (process $WORKER)||--endpoint=ipc://$endpoint"
	done | refused_all "$MANDELQ_STATE_DIR"
	mq fetch 1 -o x.png
	stop_worker
}

@test "a place that cannot be used is told from a broken disk by the exit status" {
	plain=()
	if [ "$(id -u)" = 0 ]; then # who may do anything
		install -D -m 755 -t "$ROOT/bin" "$MQ_BUILD/mandelqd"
		PATH=$ROOT/bin:$PATH
		chmod 711 "$ROOT"
		plain=(setpriv --reuid=1001 --regid=1001 --clear-groups)
	fi
	place=$MANDELQ_STATE_DIR
	mkdir -m 777 "$place"
	ln -s loop "$ROOT/loop"
	for dir in /proc/nosuch "$ROOT/file" "$ROOT/file/s" "$ROOT/loop" "$ROOT/$(printf '%0300d' 0)"; do
		refused 2 "--state-dir" mandelqd --device=cpu --state-dir="$dir"
	done
	chmod 755 "$ROOT"
	refused 2 "Permission denied" "${plain[@]}" mandelqd --device=cpu --state-dir="$ROOT/bin/s"
	chmod 555 "$place"
	refused 2 "Permission denied" "${plain[@]}" mandelqd --device=cpu
	chmod 777 "$place"
	for file in lock mandelq.db mandelq.db-wal stuck.log work pictures; do
		case $file in work | pictures) mkdir "$place/$file" ;; *) : >"$place/$file" ;; esac
		chmod 0 "$place/$file"
		before=$(tree "$place")
		refused 2 "$place/$file: Permission denied" "${plain[@]}" mandelqd --device=cpu
		[ "$(tree "$place")" = "$before" ]
		rm -rf "${place:?}/$file"
	done
	mkdir "$place/lock"
	refused 2 "/lock" mandelqd --device=cpu
	rmdir "$place/lock"
	: >"$place/work"
	refused 2 "/work" mandelqd --device=cpu
	rm "$place/work"
	# started again, these may do better
	for point in state-mkdir state-folder state-fsync store-open; do
		for why in enospc eio; do
			refused 1 "" env MANDELQ_FAILPOINTS="$point:1:$why" mandelqd --device=cpu --state-dir="$ROOT/new"
		done
	done
	# the place of a socket too
	refused 2 "--endpoint" mandelqd --device=cpu --endpoint=ipc://"$ROOT/nosuch/sock"
	refused 2 "--endpoint" mandelqd --device=cpu --endpoint=ipc://"$ROOT/file/sock"
	refused 2 "--endpoint" "${plain[@]}" mandelqd --device=cpu --endpoint=ipc://"$ROOT/bin/sock"
}
