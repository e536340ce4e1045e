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

# Whatever the machine has, no device has the UUID of zeros.
@test "a GPU by its UUID: one that is not there is refused with the reason, no UUID before anything is made" {
	zeros=GPU-00000000-0000-0000-0000-000000000000
	# the cause: no driver, no CUDA in this build, or the devices that there are
	for name in $zeros gpu-00000000; do
		refused 2 "--device: there is no $name: " timeout 20 mandelqd --device=cpu --device=$name
		grep -qE ': .*(CUDA|driver|cuda:0 GPU-)' "$ROOT/err"
	done
	[ "$(MANDELQ_STATE_DIR=$ROOT/none mandelqd --device=$zeros --print-config | grep '^device =')" = "device = $zeros ; command line" ]
	for name in GPU- GPU-xyz GPU-0000-0000 ${zeros}0 MIG-00000000; do
		MANDELQ_STATE_DIR=$ROOT/none refused 2 "is none of auto, cpu, cuda, cuda:N, GPU-UUID" \
			timeout 20 mandelqd --device=cpu --device=$name
	done
	[ ! -e "$ROOT/none" ]
}

@test "devices shows UUIDs, of which a CPU has none" {
	start_worker
	mq devices --json | jq -e '.[0] | has("uuid") and .uuid == null'
	mq devices >table
	head -n 1 table | grep -q ' UUID  *MODEL'
	[ "$(awk 'NR == 2 { print substr($0, at, 2) } { at = index($0, "UUID") }' table)" = "- " ]
}
