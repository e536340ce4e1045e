#!/usr/bin/env bats
# What a program is started with: closed descriptors, and a umask that takes the owner's permissions too.
load helper

# without DIGITS COMMAND...: with those descriptors closed.
without() {
	local closed=$1
	shift
	case $closed in *0*) exec <&- ;; esac
	case $closed in *1*) exec >&- ;; esac
	case $closed in *2*) exec 2>&- ;; esac
	exec 3>&- 4>&- "$@"
}

@test "closed standard descriptors stay nobody's files" {
	for closed in 0 1 2 01 02 12 012; do
		rm -rf "$MANDELQ_STATE_DIR" ./*
		without $closed mandelqd --device=cpu --threads=2 2>>"$LOG" >/dev/null </dev/null &
		WORKER=$!
		until_true 20 worker_serves_or_ended
		[ "$(cat "$MANDELQ_STATE_DIR/lock")" = "$WORKER" ]
		[ "$(readlink "/proc/$WORKER"/fd/[012] | grep -cFx -e /dev/null -e "$LOG")" = 3 ]
		# what cannot be read or written is told as ever
		wanted=0
		[[ $closed != *1* ]] || wanted=1
		expect "$wanted" without $closed mandelq submit "${SMALL[@]}"
		until_true 20 state_is 1 done
		expect "$wanted" without $closed mandelq fetch --quiet -o - 1
		expect 0 without $closed mandelq fetch --quiet -o "$PWD/fetched.png" 1
		cmp fetched.png "$MANDELQ_STATE_DIR/pictures/1/picture.png"
		stop_worker
		mandelqd --check >/dev/null
	done
	expect 2 without 0 mandelq submit -
	[[ $output == *"Bad file descriptor"* ]]
}

@test "what could not be printed is told by the exit status" {
	for command in "mandelqd --help" "mandelqd --version" "mandelqd --print-config" \
		"mandelqd --completion=bash" "mandelqd keygen --state-dir=$ROOT/k" \
		"mandelq --help" "mandelq --version" "mandelq --completion=bash" "mandelq keygen --key=k"; do
		# shellcheck disable=SC2086
		expect 1 to_full $command
		[[ $output == *"cannot write to standard output"* ]]
	done
	start_worker
	stop_worker
	expect 2 to_full mandelqd --check
	start_worker
	for command in "submit --size=8" status devices metrics; do
		# shellcheck disable=SC2086
		expect 1 to_full mandelq $command
	done
}

to_full() {
	"$@" >/dev/full
}

@test "no file or socket of a client becomes a standard stream" {
	export MANDELQ_STATE_DIR=$ROOT/none
	for closed in 0 1 2 012; do
		without $closed mandelq render "${ENDLESS[@]}" -o endless.png </dev/null >/dev/null 2>/dev/null &
		until_true 20 compgen -G '.endless.png.mandelq/mandelqd.sock'
		[ "$(readlink /proc/$!/fd/[012] | grep -cFx /dev/null)" = 3 ]
		kill -TERM $!
		wait $! || true
		rm -rf .endless.png.mandelq
	done
}

@test "a umask of 0777 takes nothing from the owner" {
	export MANDELQ_STATE_DIR=$ROOT/w/s PATH
	plain=(env)
	if [ "$(id -u)" = 0 ]; then # who needs no permissions
		install -D -m 755 -t "$ROOT/bin" "$MQ_BUILD/mandelq" "$MQ_BUILD/mandelqd"
		PATH=$ROOT/bin:$PATH
		chmod 711 "$ROOT"
		chmod 777 "$ROOT/w" "$ROOT/home"
		plain=(setpriv --reuid=1001 --regid=1001 --clear-groups)
	fi
	touch "$LOG"
	for time in first second; do
		(umask 0777 && exec "${plain[@]}" mandelqd --device=cpu --threads=2) \
			2>>"$LOG" >/dev/null </dev/null 3>&- 4>&- &
		WORKER=$!
		until_true 20 "${plain[@]}" mandelq status
		(
			umask 0777
			"${plain[@]}" mandelq submit --wait --quiet --keep-counts "${SMALL[@]}"
			"${plain[@]}" mandelq fetch --quiet -o "$time.png" 1
			"${plain[@]}" mandelqd --backup="$time.db"
			"${plain[@]}" mandelq keygen --force
			"${plain[@]}" mandelqd keygen --force
			MANDELQ_STATE_DIR=$ROOT/none "${plain[@]}" mandelq render --quiet "${SMALL[@]}" -o "$time.render.png"
		)
		[ -z "$(find s "$HOME"/.config "$HOME"/.config/mandelq -type d -not -perm 700 -o -type f -not -perm 600)" ]
		kill "$WORKER"
		until_true 10 ended "$WORKER"
		"${plain[@]}" mandelqd --check
	done
	cmp first.png second.png
	cmp first.png first.render.png
	[ "$(stat -c %a ./*.png ./*.db | uniq)" = 600 ]
}

@test "pictures have the permissions that the umask leaves" {
	export MANDELQ_STATE_DIR=$ROOT/none
	(umask 0022 && mq render --quiet "${SMALL[@]}" -o 22.png)
	(umask 0027 && mq render --quiet "${SMALL[@]}" -o 27.png)
	(umask 0002 && mq render --quiet "${SMALL[@]}" -o 2.png)
	[ "$(stat -c %a 22.png 27.png 2.png | xargs)" = "644 640 664" ]
}

@test "a render that gets no descriptors leaves nothing behind" {
	export MANDELQ_STATE_DIR=$ROOT/none
	for limit in $(seq 3 24); do
		(ulimit -n "$limit" && mq render --quiet "${SMALL[@]}" -o picture.png) || true
		[ ! -e picture.png ] || break
		[ -z "$(ls -A)" ] || { echo "with $limit:"; ls -A; return 1; }
	done
	[ "$limit" -gt 8 ]
}
