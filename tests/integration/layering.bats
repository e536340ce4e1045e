#!/usr/bin/env bats
# ARCHITECTURE.md's layers, by what files include and what programs link.
MQ_TOP=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
MQ_BUILD=${MQ_BUILD:-$MQ_TOP/build/check}

setup() {
	cd "$MQ_TOP"
}

# only_includes PATTERN FILE...: every #include "..." of the files matches the pattern.
only_includes() {
	local pattern=$1 bad
	shift
	[ -e "$1" ] || { echo "no such file: $1"; return 1; }
	bad=$(grep -nHE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$@" |
		grep -vE "include[[:space:]]*\"($pattern)\"" || true)
	[ -z "$bad" ] || { echo "$bad"; return 1; }
}

core='config\.h|src/[a-z_]+\.h'

@test "the core includes nothing but itself" {
	only_includes "$core" src/*.[ch]
}

@test "store, image and kernels include the core and themselves, never each other" {
	only_includes "$core|src/store/[a-z_]+\.h" src/store/*.[ch]
	only_includes "$core|src/image/[a-z_]+\.h" src/image/*.[ch]
	only_includes "$core|kernels/[a-z0-9_]+\.(h|cuh)" kernels/*.[ch] kernels/*.cu*
}

@test "the client includes the core and itself" {
	only_includes "$core|client/[a-z_]+\.h" client/*.[ch]
}

@test "the worker includes nothing of the client" {
	only_includes "$core|src/store/store\.h|src/image/[a-z_]+\.h|kernels/backend\.h|worker/[a-z_]+\.h" worker/*.[ch]
}

@test "SQL and SQLite stand in src/store alone, libpng in src/image alone" {
	run grep -lE '#[[:space:]]*include <sqlite3\.h>' -r src client worker kernels --include=*.[ch]
	for file in $output; do [[ $file == src/store/* ]]; done
	run grep -lE '#[[:space:]]*include <png\.h>' -r src client worker kernels --include=*.[ch]
	for file in $output; do [[ $file == src/image/* ]]; done
}

@test "mandelq links neither SQLite, libpng, ISA-L, zstd nor CUDA" {
	run ldd "$MQ_BUILD/mandelq"
	[ "$status" = 0 ]
	[[ ! $output =~ (sqlite|libpng|libisal|libzstd|libcuda) ]]
	run nm --undefined-only "$MQ_BUILD/mandelq"
	[[ ! $output =~ (sqlite3_|png_|isal_|ZSTD_) ]]
	run nm --defined-only "$MQ_BUILD/mandelq"
	[[ ! $output =~ (mq_store_|mq_png_|mq_cpu_|mq_cuda_) ]]
}

@test "the pixel path calls no function of libm but fma and floor" {
	for library in libmqscalar.a libmqavx2.a libmqavx512.a libmqkernels.a; do
		run nm --undefined-only "$MQ_BUILD/$library"
		[ "$status" = 0 ]
		[[ ! $output =~ \ U\ (log|log2|exp|pow|sqrt|sin|cos|atan2|hypot)f?$'\n' ]]
	done
}
