#!/usr/bin/env bats
# One small job from end to end, looked at by valgrind: no byte is read before it is written, none after
# it is freed, and nothing is lost. Takes a build without sanitizers.
load helper

@test "one job from end to end under valgrind" {
	command -v valgrind || skip "there is no valgrind"
	! grep -q '^MQ_CFLAGS.*-fsanitize=' "$MQ_BUILD/Makefile" || skip "this build has a sanitizer of its own"
	export MANDELQ_CPU_ISA=scalar
	# Threads that libzmq and OpenSSL keep at the end own what is still reachable.
	# Threads take turns: else those that render keep the main loop from its own.
	valgrind --quiet --fair-sched=yes --error-exitcode=99 --leak-check=full --show-leak-kinds=definite \
		--errors-for-leak-kinds=definite --child-silent-after-fork=yes \
		"$MQ_BUILD/mandelqd" --device=cpu --threads=2 2>"$LOG" >/dev/null </dev/null 3>&- 4>&- &
	WORKER=$!
	until_true 60 mq status
	id=$(mq submit --size=300x200 --iterations=100 --keep-counts 2>/dev/null)
	mq wait --timeout=60 "$id" 2>/dev/null
	mq fetch "$id" -o p.png
	pngcheck -q p.png
	mq fetch "$id" --counts --region=10,10,20,20 -o c.npy
	mq fetch "$id" --preview -o s.png
	mq submit "${ENDLESS[@]}" 2>/dev/null
	# one that answers late is asked again
	until_true 60 mq cancel 2
	until_true 60 mq status --json
	kill -TERM "$WORKER"
	until_true 20 ended "$WORKER"
	wait "$WORKER" || { echo "exit $?"; cat "$LOG"; return 1; }
	! grep '^==' "$LOG"
}
