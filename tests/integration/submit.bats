#!/usr/bin/env bats
# Submitting, and what status says of a job.
load helper

test_setup() {
	start_worker
}

@test "an empty queue is an empty array" {
	run mq status --json
	[ "$status" = 0 ]
	[ "$(jq -c . <<<"$output")" = "[]" ]
	expect 0 mq status
	expect 0 mq wait
}

@test "submit prints the id alone on standard output, counting from 1" {
	[ "$(mq submit "${SMALL[@]}" 2>/dev/null)" = 1 ]
	[ "$(mq submit "${SMALL[@]}" 2>/dev/null)" = 2 ]
	mq wait
	[ "$(mq submit "${SMALL[@]}" --wait 2>/dev/null)" = 3 ]
	[ "$(field 3 .state)" = done ]
}

@test "status of a finished job has every field with its type" {
	id=$(submit_and_wait "${SMALL[@]}" --name="Größe 1")
	mq status --json "$id" >row.json
	jq -e '.[0] |
		(.id == 1) and (.name == "Größe 1") and (.state == "done") and (.reason == null) and
		(.width == 300) and (.height == 200) and (.iterations == 500) and
		(.tiles_total | type == "number" and . >= 1) and (.tiles_done == .tiles_total) and
		(.tiles_split | type == "number") and (.progress == 1) and
		(.eta_seconds | . == null or type == "number") and
		(.compute_seconds | type == "number" and . >= 0) and
		(.elapsed_seconds | type == "number" and . > 0) and
		([.created, .started, .finished] | all(test("^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\\.[0-9]+)?Z$"))) and
		(.created <= .started) and (.started <= .finished) and (.error == null) and
		(.output.path | type == "string") and (.output.bytes | type == "number") and
		(.output.sha256 | test("^[0-9a-f]{64}$"))' row.json
	path=$(jq -r '.[0].output.path' row.json)
	[ "$(stat -c %s "$path")" = "$(jq -r '.[0].output.bytes' row.json)" ]
	[ "$(sha "$path")" = "$(jq -r '.[0].output.sha256' row.json)" ]
}

@test "status of a running job has null for what is not known" {
	id=$(mq submit "${ENDLESS[@]}")
	until_true 10 state_is "$id" running
	mq status --json "$id" | jq -e '.[0] |
		(.finished == null) and (.output == null) and (.error == null) and (.name | type == "string") and
		(.started | type == "string") and (.progress >= 0 and .progress < 1)'
	# its first tile is not done yet, and time passes all the same
	[ "$(field "$id" .tiles_done)" = 0 ]
	until_true 10 eval '(($(field "$id" ".elapsed_seconds | floor") >= 1))'
	mq status | grep -qE '^ *1 +running.* [1-9][0-9]*\.[0-9] s'
	second=$(mq submit "${SMALL[@]}")
	mq status --json "$second" | jq -e '.[0] | (.state == "queued") and (.started == null) and (.elapsed_seconds == null) and (.progress == 0)'
}

@test "status lists all jobs, oldest first, and those that are asked for" {
	for _ in 1 2 3; do mq submit "${SMALL[@]}" >/dev/null; done
	[ "$(mq status --json | jq -c 'map(.id)')" = "[1,2,3]" ]
	[ "$(mq status --json 3 | jq -c 'map(.id)')" = "[3]" ]
	mq status | grep -q 300
}

@test "status and the log say which devices are used" {
	mq status 2>&1 | grep -qi cpu
	grep -qi cpu "$LOG"
}

@test "decimals are kept exactly, as strings" {
	re=-0.74364388703715870475219150611477412345678901234567890
	id=$(mq submit --size=16 --center="$re,0.1" --zoom=5 --iterations=50)
	mq status --json "$id" | jq -e --arg re "${re%0}" '.[0].settings | (.center == [$re, "0.1"]) and (.zoom == "5")'
}

@test "--iterations=auto is resolved when the job is submitted" {
	id=$(mq submit --size=16 --iterations=auto)
	mq status --json "$id" | jq -e '.[0] | (.iterations | type == "number" and . > 0) and .settings.iterations == .iterations'
}

@test "a view whose pixels are not square is warned about and rendered as asked" {
	mq submit --size=60x20 --view=-2,1,-1.5,1.5 --wait >out 2>err
	[ "$(cat out)" = 1 ]
	grep -qi square err
	mq fetch 1 -o p.png
	python 'assert load("p.png").shape == (20, 60, 3)'
	mq submit --size=60x20 --view=-3,3,-1,1 >/dev/null 2>err
	run grep -ci square err
	[ "$output" = 0 ]
}

@test "--print sets the size and the resolution that the picture says" {
	id=$(submit_and_wait --print=5x4cm@100 --iterations=50)
	mq fetch "$id" -o p.png
	python '
im = Image.open("p.png")
assert im.size == (197, 157), im.size
assert all(abs(v - 100) < 0.1 for v in im.info["dpi"]), im.info["dpi"]'
}

@test "the same request id and job again is the same job, a different one is refused" {
	first=$(mq submit "${SMALL[@]}" --request-id=poster-1)
	[ "$(mq submit "${SMALL[@]}" --request-id=poster-1 2>/dev/null)" = "$first" ]
	expect 5 mq submit "${SMALL[@]}" --iterations=501 --request-id=poster-1
	[ "$(mq status --json | jq length)" = 1 ]
	[ "$(mq submit "${SMALL[@]}" --request-id=poster-2 2>/dev/null)" = 2 ]
}

@test "--like=ID, --like=PICTURE.png and PICTURE.png give the same file again" {
	submit_and_wait "${SMALL[@]}" --palette=ocean --palette-period=17.5 --palette-offset=0.25 \
		--inside=102030 --supersample=2 --name=first
	mq fetch 1 -o p.png
	submit_and_wait --like=1
	submit_and_wait --like=p.png
	submit_and_wait p.png
	for id in 2 3 4; do [ "$(field "$id" .output.sha256)" = "$(sha p.png)" ]; done
	id=$(submit_and_wait --like=1 --iterations=77)
	mq status --json "$id" | jq -e '.[0] | .iterations == 77 and .width == 300 and .settings.palette == "ocean"'
}

@test "a picture carries its settings, and no id, name, time or version" {
	submit_and_wait "${SMALL[@]}" --name=secret-name --request-id=secret-request
	mq fetch 1 -o p.png
	python '
import json
text = Image.open("p.png").text
assert list(text) == ["mandelq"], list(text)
job = json.loads(text["mandelq"])
assert job["width"] == 300 and job["iterations"] == 500, job
assert not {"id", "name", "created", "version", "device", "request_id"} & set(job), job'
	run grep -aqE 'secret|0\.1\.0' p.png
	[ "$status" = 1 ]
}

@test "a higher priority is rendered sooner" {
	mq submit "${ENDLESS[@]}"
	for _ in 1 2 3; do mq submit "${LONG[@]}" --priority=-1 >/dev/null; done
	high=$(mq submit "${LONG[@]}" --priority=5)
	mq cancel 1
	mq wait "$high"
	[ "$(field 4 .state)" != done ]
	[ "$(field 3 .state)" != done ]
}
