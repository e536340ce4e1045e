#!/usr/bin/env bats
# A client that was written from mandelq-protocol(7) alone.
load helper

CLIENT=$MQ_TOP/examples/client.py

@test "the example client renders the picture that mandelq renders" {
	start_worker
	run "$PYTHON" "$CLIENT" "ipc://$MANDELQ_STATE_DIR/mandelqd.sock" theirs.png width=1300 height=1000 \
		'view=["-2.25","0.75","-1","1"]' iterations=500 'palette="spectrum"'
	[ "$status" = 0 ] && [ -z "$output" ] || { echo "exit $status: $output"; return 1; }
	# it has told the worker that it keeps it
	[ "$(field 1 '.fetched | type')" = string ]
	id=$(submit_and_wait --size=1300x1000 --view=-2.25,0.75,-1,1 --iterations=500 --palette=spectrum)
	mq fetch -o ours.png "$id"
	cmp ours.png theirs.png
	[ "$(ls)" = "$(printf 'ours.png\ntheirs.png')" ]
}

@test "it says in one line what the worker refuses" {
	start_worker
	run "$PYTHON" "$CLIENT" "ipc://$MANDELQ_STATE_DIR/mandelqd.sock" no.png width=0
	[ "$status" = 1 ] && [[ $output == "submit: invalid: "*width* ]] && [ "${#lines[@]}" = 1 ] || { echo "$output"; return 1; }
	[ ! -e no.png ]
}

@test "a worker that is killed meanwhile costs it a repeated request, no more" {
	start_worker
	"$PYTHON" "$CLIENT" "ipc://$MANDELQ_STATE_DIR/mandelqd.sock" long.png width=1024 height=4096 \
		'view=["-0.75000015","-0.75000005","0.0004998","0.0005002"]' iterations=20000 'palette="gray"' \
		2>err 3>&- 4>&- &
	client=$!
	until_true 30 state_is 1 running
	kill_worker
	start_worker
	until_true 60 ended "$client"
	wait "$client" || { cat err; return 1; }
	mq fetch -o ours.png 1
	cmp ours.png long.png
	[ "$(mq status --json | jq length)" = 1 ]
}

@test "it notices bytes that were changed on their way" {
	cat >liar.py <<-'CODE'
		import json, sys, zmq
		s = zmq.Context().socket(zmq.ROUTER)
		s.bind(sys.argv[1])
		answers = {"submit": {"id": 1}, "status": {"jobs": [{"id": 1, "state": "done"}]}, "close": {},
		           "open": {"handle": 1, "ready": True, "bytes": 3, "sha256": sys.argv[2]},
		           "read": {"bytes": 3, "crc32": int(sys.argv[3])}}
		while True:
		    peer, request = s.recv_multipart()
		    r = json.loads(request)
		    reply = {"mandelq": 1, "seq": r["seq"], "status": "ok", "result": answers[r["verb"]]}
		    s.send_multipart([peer, json.dumps(reply).encode()] + ([b"abc"] if r["verb"] == "read" else []))
	CODE
	good=ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad
	# crc32("abc") = 891568578
	for case in "$good 891568578 0" "$good 891568579 1" "${good/b/c} 891568578 1"; do
		read -r sha crc expected <<<"$case"
		"$PYTHON" liar.py "ipc://$ROOT/liar" "$sha" "$crc" 3>&- 4>&- &
		liar=$!
		rm -f x.png
		run timeout 30 "$PYTHON" "$CLIENT" "ipc://$ROOT/liar" x.png
		kill "$liar"
		wait "$liar" 2>/dev/null || true
		[ "$status" = "$expected" ] || { echo "$case: exit $status: $output"; return 1; }
		if [ "$expected" = 0 ]; then [ "$(cat x.png)" = abc ]; else [ ! -e x.png ]; fi
	done
}
