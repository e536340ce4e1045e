#!/usr/bin/env bats
# Promise 1: same job, same pixels; and they are those of mandelq-job(5).
load helper

# compare WIDTH HEIGHT LIMIT (bounds XMIN XMAX YMIN YMAX | center RE IM ZOOM): the worker's counts, smooth
# counts and gray picture of one job against the reference.
compare() {
	local id view
	if [ "$4" = bounds ]; then view=(--view="$5,$6,$7,$8"); else view=(--center="$5,$6" --zoom="$7"); fi
	id=$(submit_and_wait --size="$1x$2" --iterations="$3" "${view[@]}" --palette=gray --keep-counts)
	mq fetch "$id" --counts -o c.npy --force
	mq fetch "$id" --smooth -o s.npy --force
	mq fetch "$id" -o p.png --force
	"$PYTHON" "$BATS_TEST_DIRNAME/reference.py" counts rc.npy "$@"
	"$PYTHON" "$BATS_TEST_DIRNAME/reference.py" smooth rs.npy "$@"
	"$PYTHON" "$BATS_TEST_DIRNAME/reference.py" gray rp.npy "$@"
	python '
c, rc, s, rs = (np.load(n) for n in ("c.npy", "rc.npy", "s.npy", "rs.npy"))
assert len(np.unique(rc)) > 5, "a view that tests nothing"
assert c.shape == rc.shape and (c == rc).all(), (c != rc).sum()
assert (abs(s - rs) <= np.spacing(rs)).all(), abs(s - rs).max()
assert (load("p.png") == np.load("rp.npy")).all()'
}

@test "counts, smooth counts and gray are those of the reference" {
	start_worker
	compare 16 12 200 bounds -2.25 0.75 -1.125 1.125
	compare 13 17 300 bounds -0.7463 -0.7450 0.1102 0.1119
	compare 12 8 1000 center -0.743643887037151 0.131825904205330 1e6
	# neither symmetric nor square, and numbers that are no doubles
	compare 12 10 120 bounds -0.1 0.3333333333333333333333 0.6 1.0999999999999999999
}

@test "close to the deepest zoom the grid is still that of the exact decimals" {
	start_worker
	compare 8 6 3000 center -0.743643887037158704752191506114774 0.131825904205311970493132056385139 2e11
}

@test "close to where cardioid and disc meet, counts are exact" {
	start_worker
	id=$(submit_and_wait --size=1x1 --view=-0.7505,-0.7495,0.0005,0.0015 --iterations=10000 --palette=gray --keep-counts)
	mq fetch "$id" --counts -o c.npy
	"$PYTHON" "$BATS_TEST_DIRNAME/reference.py" counts r.npy 1 1 10000 bounds -0.7505 -0.7495 0.0005 0.0015
	python 'assert np.load("c.npy") == np.load("r.npy") == 3142, np.load("c.npy")'
}

@test "supersampling is the mean in linear light of the larger picture" {
	start_worker
	for palette in ember spectrum gray; do
		big=$(submit_and_wait --size=300x210 --view=-2.25,0.75,-1.05,1.05 --iterations=200 --palette="$palette")
		small=$(submit_and_wait --size=100x70 --view=-2.25,0.75,-1.05,1.05 --iterations=200 --palette="$palette" --supersample=3)
		mq fetch "$big" -o big.png --force
		mq fetch "$small" -o small.png --force
		python '
v = np.arange(256) / 255
decode = np.rint(65535 * np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)).astype(np.int64)
# the byte whose linear value is nearest, the larger one of two
encode = np.searchsorted((decode[:-1] + decode[1:]) / 2, np.arange(65536), side="right")
big, small = load("big.png"), load("small.png")
linear = decode[big].reshape(70, 3, 100, 3, -1).sum(axis=(1, 3))
assert (encode[(linear + 4) // 9] == small.reshape(70, 100, -1)).all()
assert len(np.unique(small)) > 20'
	done
}

@test "equal jobs give equal files whatever the threads, the device memory and the order" {
	jobs=("--size=900x1300 --view=-0.75,-0.741,0.1,0.113 --iterations=700 --supersample=2"
		"--size=1024x2500 --view=-2.0,0.048,-2.5,2.5 --iterations=300 --palette=gray --keep-counts")
	start_worker
	submit_and_wait ${jobs[0]}
	submit_and_wait ${jobs[1]}
	first=$(mq status --json | jq -r '.[].output.sha256')
	stop_worker
	export MANDELQ_STATE_DIR=$ROOT/t
	# the last --threads counts
	start_worker --threads=1 --device-memory=16M
	mq submit ${jobs[0]}
	mq submit ${jobs[1]}
	mq wait
	[ "$(mq status --json | jq -r '.[].output.sha256')" = "$first" ]
}

@test "every instruction set of this CPU gives the same counts and files" {
	view=(--size=640x480 --view=-0.7475,-0.7435,0.11,0.113 --iterations=3000)
	sets=scalar
	grep -qw avx2 /proc/cpuinfo && sets="$sets avx2"
	grep -qw avx512dq /proc/cpuinfo && sets="$sets avx512"
	for isa in $sets; do
		export MANDELQ_STATE_DIR=$ROOT/$isa
		MANDELQ_CPU_ISA=$isa start_worker
		submit_and_wait "${view[@]}" --keep-counts
		mq fetch 1 --counts -o "$isa.npy"
		mq fetch 1 --smooth -o "$isa-smooth.npy"
		mq fetch 1 -o "$isa.png"
		stop_worker
		cmp "$isa.npy" scalar.npy
		cmp "$isa-smooth.npy" scalar-smooth.npy
		cmp "$isa.png" scalar.png
	done
	[ "$sets" != scalar ] || skip "this CPU has no AVX2 to compare with"
}

@test "without the shortcuts the counts are the same" {
	view=(--size=200x150 --view=-1.8,0.2,-0.75,0.75 --iterations=2000 --palette=gray)
	start_worker
	submit_and_wait "${view[@]}"
	first=$(field 1 .output.sha256)
	stop_worker
	export MANDELQ_STATE_DIR=$ROOT/t
	start_worker --no-shortcuts
	submit_and_wait "${view[@]}"
	[ "$(field 1 .output.sha256)" = "$first" ]
}

@test "pictures one pixel high or wide, and of one pixel" {
	start_worker
	for size in 1x1 1x2000 2000x1; do
		for palette in gray ember; do
			id=$(submit_and_wait --size="$size" --iterations=100 --palette="$palette")
			mq fetch "$id" -o p.png --force
			pngcheck -q p.png
			python 'im = Image.open("p.png"); im.load(); assert "%dx%d" % im.size == argv[0]' "$size"
			mq fetch "$id" --preview -o preview.png --force
			pngcheck -q preview.png
		done
	done
}

@test "every palette renders, in colours of its own" {
	start_worker
	for palette in gray ember ocean aurora sunset forest porcelain spectrum; do
		submit_and_wait "${SMALL[@]}" --palette="$palette" --inside=010203
	done
	[ "$(mq status --json | jq -r '.[].output.sha256' | sort -u | wc -l)" = 8 ]
	mq fetch 2 -o p.png
	python 'assert tuple(load("p.png")[100, 200]) == (1, 2, 3)'
	mq fetch 1 -o g.png
	python 'im = load("g.png"); assert im.ndim == 2 and im[100, 200] == 0'
}

@test "a picture that is its own mirror image equals the one rendered row by row" {
	# Strips of a tile each: the upper ones are rendered, the lower ones are the same upside down. The
	# eight of the first job are few enough to be looked at in one go.
	job=(--view=-2,2,-2,2 --iterations=200 --keep-counts)
	start_worker
	submit_and_wait "${job[@]}" --palette=gray --size=2048x4096
	submit_and_wait "${job[@]}" --size=2048x2720 # 170 rows a strip
	mq fetch 2 --smooth -o mirrored.npy
	mirrored=$(field 1 .output.sha256)$(field 2 .output.sha256)
	stop_worker
	start_worker --no-shortcuts
	submit_and_wait "${job[@]}" --palette=gray --size=2048x4096
	submit_and_wait "${job[@]}" --size=2048x2720 # 170 rows a strip
	mq fetch 4 --smooth -o plain.npy
	[ "$mirrored" = "$(field 3 .output.sha256)$(field 4 .output.sha256)" ]
	cmp mirrored.npy plain.npy
}
