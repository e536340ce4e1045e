# Several devices on one queue: on one machine without several GPUs, CPU devices stand for them.
load helper

JOB=(--size=3000 --view=-2,0.5,-1.25,1.25 --iterations=300 --palette=gray)

@test "two devices share the tiles of one job, and the pixels are the same" {
	undisturbed "${JOB[@]}"
	start_worker --device=cpu
	submit_and_wait "${JOB[@]}"
	[ "$(field 1 .output.sha256)" = "$expected" ]
	[ "$(mq devices --json | jq -c 'map([.name, .error])')" = '[["cpu",null],["cpu",null]]' ]
}

@test "a device that fails is set aside with a reason, and the other goes on" {
	undisturbed "${JOB[@]}"
	MANDELQ_FAILPOINTS=cpu-submit:3:eio start_worker --device=cpu
	submit_and_wait "${JOB[@]}"
	[ "$(field 1 .output.sha256)" = "$expected" ]
	[ "$(mq devices --json | jq 'map(select(.error == "the device is broken, by a failpoint")) | length')" = 1 ]
	[[ $(mq devices) == *failed*broken* ]]
	submit_and_wait "${JOB[@]}" --name=next
	[ "$(field 2 .output.sha256)" = "$expected" ]
}

@test "without a device left the worker ends, and goes on when it is started again" {
	undisturbed "${JOB[@]}"
	MANDELQ_FAILPOINTS=cpu-submit:3:eio start_worker
	mq submit "${JOB[@]}"
	until_true 20 ended "$WORKER"
	start_worker
	mq wait 1
	[ "$(field 1 .output.sha256)" = "$expected" ]
}
