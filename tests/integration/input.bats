#!/usr/bin/env bats
# Bad input: exit 2, one line that names the option, and nothing is stored.
load helper

test_setup() {
	start_worker
}

nothing_stored() {
	[ "$(mq status --json | jq length)" = 0 ]
}

# bad OPTION VALUE [OTHER-OPTION...]
bad() {
	local option=$1 value=$2
	shift 2
	refused 2 "$option" mq submit "$option=$value" "$@"
}

digits() {
	printf '0.%0*d' "$1" 1
}

@test "sizes that are no size" {
	for size in 0 -5 10x0 0x10 nan inf 1.5 abc 10x10x10 10x 16777217 1x16777217 99999999999999999999 ""; do
		bad --size "$size"
	done
	nothing_stored
}

@test "views that are no view" {
	for view in 0,0,0,1 0,1,1,1 1,0,0,1 0,1,1,0 1,2,3 1,2,3,4,5 nan,1,0,1 0,inf,0,1 0,1,0,0x10 ""; do
		bad --view "$view"
	done
	for center in 0 0,0,0 nan,0 0,abc; do bad --center "$center"; done
	for zoom in 0 -1 nan abc; do bad --zoom "$zoom"; done
	expect 2 mq submit --view=-2,2,-2,2 --center=0,0
	nothing_stored
}

@test "numbers over the limits are refused before anything is converted" {
	SECONDS=0
	bad --view "$(digits 20000),1,0,1"
	bad --center "0,$(digits 20001)"
	bad --view 0,1e100001,0,1
	bad --zoom 1e-100001
	bad --zoom 1e999999999999999999999
	[ "$SECONDS" -lt 20 ]
	nothing_stored
}

@test "a number of 20000 digits is taken" {
	expect 0 mq submit --size=16 --iterations=50 --center="$(printf '0.%0*d' 19999 1),0" --zoom=1
}

@test "a view deeper than double precision is refused with the deepest zoom" {
	refused 2 zoom mq submit --size=1000 --center=-0.743643887037151,0.131825904205330 --zoom=1e20
	# What is named is taken, and ten times that is not.
	deepest=$(grep -oE '[0-9][0-9.]*e\+?[0-9]+' "$ROOT/err" | tail -n 1)
	[ -n "$deepest" ]
	expect 0 mq submit --size=1000 --center=-0.743643887037151,0.131825904205330 --zoom="$deepest" --iterations=1
	refused 2 zoom mq submit --size=1000 --center=-0.743643887037151,0.131825904205330 --zoom="${deepest%e*}e$((${deepest#*e} + 1))"
	[ "$(mq status --json | jq length)" = 1 ]
}

@test "iterations, colours and the rest" {
	for n in 0 -1 1.5 abc 4294967295 99999999999999999999; do bad --iterations "$n"; done
	bad --palette nosuch
	for period in 0 nan abc; do bad --palette-period "$period"; done
	bad --palette-offset abc
	for colour in 12345 gggggg 1234567; do bad --inside "$colour"; done
	for n in 0 17 -1 x; do bad --supersample "$n"; done
	refused 2 supersample mq submit --size=16 --supersample=2 --keep-counts
	for paper in abc 0x0cm@300 10x10 10x10cm@0 -1x5cm@300; do bad --print "$paper"; done
	bad --priority abc
	nothing_stored
}

@test "names and request ids are UTF-8 without control characters" {
	for text in $'a\tb' $'a\nb' $'\xff\xfe' $'\x7f' $'\xed\xa0\x80' "$(printf 'x%.0s' {1..201})"; do
		bad --name "$text" --size=16
		bad --request-id "$text" --size=16
	done
	bad --request-id ""
	for command in status watch; do
		refused 2 "--name is not UTF-8" mq $command --name=$'a\xff'
	done
	nothing_stored
}

@test "unknown options, commands and operands" {
	refused 2 --siz mq submit --siz=10
	expect 2 mq submit --size
	expect 2 mq frobnicate
	expect 2 mq
	expect 2 mq status abc
	expect 2 mq cancel
	expect 2 mq fetch 1
	expect 2 mq fetch 1 -o x.png --region=1,2,3
	[ ! -e x.png ]
	nothing_stored
}

# Code, part of the line, command.
@test "what newcomers type is answered with what to type" {
	echo hello >ok.txt
	while IFS='|' read -r code says command; do
		eval "set -- $command"
		refused "$code" "$says" mq "$@"
	done <<-'END'
		2|there is no command "sumbit"; did you mean submit?|sumbit
		2|there is no command "rendre"; did you mean render?|help rendre
		2|there is no command "Status"; did you mean status?|Status
		2|there is no command "xyzzy"; see mandelq --help|xyzzy
		2|did you mean --size?|submit -size=400
		2|-o is not for this command; mandelq render and fetch have it|submit -o x.png
		2|--iterations=10k: auto, or a whole number|submit --iterations=10k
		2|--iterations=1e6: auto, or a whole number|submit --iterations=1e6
		2|--iterations=0: auto, or a whole number|submit --iterations=0
		2|--priority=1000001: a whole number from -1000000 to 1000000 is needed|submit --priority=1000001
		2|--priority=-1000001: a whole number|submit --priority=-1000001
		2|--priority=1e3: a whole number|submit --priority=1e3
		2|priority 2000000: a whole number from -1000000 to 1000000|priority 1 2000000
		2|priority soon: a whole number|priority 1 soon
		2|foo: No such file or directory; an operand is a picture (.png)|submit foo
		2|options begin with --|submit 800x600
		2|options begin with --|submit size=800
		2|ok.txt: this is no PNG file; an operand is a picture (.png)|submit ok.txt
		2|with submit, a file of jobs (.json)|render foo -o x.png
		2|--like: no job can be read from a picture: cannot open foo|submit --like=foo
		2|--center: 2 numbers with commas|submit --center -0.75 0.1
		2|--size=0: N or WxH|submit foo --size=0
		2|--size=0: N or WxH|submit foo.json --size=0
		2|--size=0: N or WxH|render foo --size=0 -o x.png
		2|"tcp://127.0.0.1" is no endpoint: ipc://PATH is one, tcp://HOST:PORT another|status --endpoint=tcp://127.0.0.1
		2|"tcp://:5" is no endpoint|status --endpoint=tcp://:5
		2|"tcp://h:0" is no endpoint|status --endpoint=tcp://h:0
		2|"tcp://h:65536" is no endpoint|status --endpoint=tcp://h:65536
		2|"tcp://h:5x" is no endpoint|status --endpoint=tcp://h:5x
		2|"tcp://::1:5" is no endpoint|status --endpoint=tcp://::1:5
		2|a tcp endpoint needs keys|status --endpoint=tcp://h:5 --key=none
		2|a tcp endpoint needs keys|status --endpoint=tcp://[::1]:65535 --key=none
		2|"http://h:5" is no endpoint: ipc://PATH is one|status --endpoint=http://h:5
		2|pause needs the id of a job, or --all: mandelq pause ID|pause
		2|resume needs the id of a job, or --all: mandelq resume ID|resume
		2|cancel needs the id of a job: mandelq cancel ID|cancel
		3|--after: no job 99|submit --after=99
		3|--like: no job 99|submit --like=99
		3|--like: no job 99|render --like=99 -o x.png
	END
	nothing_stored
}

@test "a picture that cannot fit the disk is refused with what to do" {
	stop_worker
	MANDELQ_FAILPOINTS=disk-free:*:enospc start_worker
	refused 1 "needs at least 480 kB on the disk of $MANDELQ_STATE_DIR, which has 0 B free: make room there (mandelq clean), or take a smaller --size" mq submit --size=8944 --palette=ember
}

@test "a name that says another format is warned of" {
	expect 0 mq submit --size=16 --iterations=10 --keep-counts --wait
	for name in y.jpg y.PNG y.png y y.v2 dir.jpg/y y.npy; do
		mkdir -p dir.jpg
		expect 0 mq fetch 1 -o $name --force
		[[ $name != y.jpg && $name != y.npy ]] || [[ $output == *"warning: -o $name: a PNG is written"* ]]
		[[ $name == y.jpg || $name == y.npy ]] || [[ $output != *warning* ]]
	done
	expect 0 mq fetch 1 --counts -o c.png
	[[ $output == *"warning: -o c.png: a .npy file is written"* ]]
	expect 0 mq fetch 1 --smooth -o c.npy
	[[ $output != *warning* ]]
	expect 0 mq render --size=16 --iterations=10 -o r.tiff
	[[ $output == *"warning: -o r.tiff: a PNG is written"* ]]
}

@test "values may follow their option, negative ones too" {
	expect 0 mq submit --size 16 --view -2,2,-2,2 --palette-offset -0.5 --priority -3 --iterations 10
	[ "$(mq status --json | jq .[0].priority)" = -3 ]
}

@test "help and version" {
	run mq --help
	[ "$status" = 0 ]
	[[ $output == *submit* && $output == *render* ]]
	for command in submit status wait fetch cancel render; do
		run mq "$command" --help
		[ "$status" = 0 ]
		[[ $output == *--endpoint* ]]
	done
	[[ $(mq --version) == *0.1.0* ]]
	[[ $(mandelqd --version) == *0.1.0* ]]
}

@test "the worker refuses bad options before it starts" {
	stop_worker
	for option in --threads=0 --threads=x --device=gpu --device=cuda:x --device-memory=12Q --idle-release=-1 --nosuch; do
		expect 2 timeout 20 mandelqd --device=cpu "$option"
	done
	expect 2 timeout 20 mandelqd --device=cpu --config="$ROOT/absent.conf"
	printf 'threads = 1\nnosuch = 2\n' >bad.conf
	expect 2 timeout 20 mandelqd --device=cpu --config=bad.conf
	[[ $output == *bad.conf:2* ]]
	# values as names: with their line, and before anything is made
	while read -r name value; do
		printf '# one wrong\n%s = %s\n' "$name" "$value" >bad.conf
		MANDELQ_STATE_DIR=$ROOT/none refused 2 "bad.conf:2: --$name" timeout 20 mandelqd --config=bad.conf
	done <<-'END'
		threads x
		device-memory 12Q
		client-memory 1M
		idle-release -1
		stuck-timeout soon
		max-jobs 0
		keep-for 7y
		log-level loud
		device gpu
		endpoint nowhere
		endpoint tcp://127.0.0.1
	END
	printf 'device = cpu\ndevice = cuda:x\n' >bad.conf
	MANDELQ_STATE_DIR=$ROOT/none refused 2 "bad.conf:2: --device" timeout 20 mandelqd --config=bad.conf
	[ ! -e "$ROOT/none" ]
	for isa in sse nosuch AVX2; do MANDELQ_CPU_ISA=$isa refuses_to_start MANDELQ_CPU_ISA; done
}

@test "the configuration file gives what the command line does not" {
	stop_worker
	mkdir "$ROOT/other"
	printf '# comment\nstate-dir = %s\nthreads = 1\ndevice = cpu\n' "$ROOT/other" >mandelqd.conf
	env -u MANDELQ_STATE_DIR mandelqd --config=mandelqd.conf 2>>"$LOG" </dev/null >/dev/null 3>&- 4>&- &
	WORKER=$!
	export MANDELQ_STATE_DIR=$ROOT/other
	until_true 10 mq status
	stop_worker
}

@test "a state directory on a network file system is refused" {
	skip "needs a network file system"
}
