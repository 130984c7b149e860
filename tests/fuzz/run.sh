#!/usr/bin/env bash
# tests/fuzz/run.sh SECONDS [READER...]: builds the fuzzer and runs it on each reader for so long. Fails
# where a reader crashes, breaks its word (tests/fuzz/*_readers.cpp), takes more than 10 s for an input,
# or asks for 8 MiB at once or 1 GiB in all for an input of 16 KiB at most. What it finds new is kept in
# build/fuzz/corpus; what fails, in build/fuzz/findings.
#
#   WEFT_FUZZ_KEEP=1   afterwards puts some inputs of each reader into tests/fuzz/corpus
#
# Needs clang 16 or newer with its runtime libraries (Debian: clang-16 libclang-rt-16-dev).
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:?usage: tests/fuzz/run.sh SECONDS [READER...]}
shift
readers=("$@")
[ ${#readers[@]} -gt 0 ] || readers=(manifest plan step_lines shard_record index_check index_file
  safetensors_header csv)

compiler=
for version in 19 18 17 16; do
  if [ -z "$compiler" ] && command -v clang++-$version >/dev/null; then compiler=clang++-$version; fi
done
compiler=${WEFT_CLANG:-$compiler}
[ -n "$compiler" ] || { echo "no clang++ of version 16 to 19 here; install clang-16 and libclang-rt-16-dev" >&2; exit 1; }

kokkos=$(apps/setup.sh)
cmake --preset fuzz -DCMAKE_CXX_COMPILER="$compiler" ${kokkos:+-DKokkos_ROOT="$kokkos"}
cmake --build --preset fuzz --target weft_fuzz -j "${WEFT_JOBS:-$(nproc)}"

export UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=detect_stack_use_after_return=0
findings=build/fuzz/findings
mkdir -p "$findings"
failed=()
for reader in "${readers[@]}"; do
  corpus=build/fuzz/corpus/$reader
  mkdir -p "$corpus" "tests/fuzz/corpus/$reader"
  log=build/fuzz/$reader.log
  echo "== $reader, $seconds s"
  WEFT_FUZZ_READER=$reader WEFT_FUZZ_SEEDS=$corpus build/fuzz/tests/fuzz/weft_fuzz \
    -max_total_time="$seconds" -timeout=10 -malloc_limit_mb=8 -rss_limit_mb=1024 -max_len=16384 \
    -artifact_prefix="$findings/$reader-" -print_final_stats=1 \
    "$corpus" "tests/fuzz/corpus/$reader" >"$log" 2>&1 || { failed+=("$reader"); tail -n 40 "$log"; }
  grep -E "number_of_executed_units|new_units_added|peak_rss_mb" "$log" || true
done

# What replaces the kept inputs: the seeds, and of the others 50 of all sizes up to 1 KiB.
keep() {
  local found=build/fuzz/corpus/$1 kept=tests/fuzz/corpus/$1 seeds inputs number
  seeds=("$found"/seed-*)
  [ -f "${seeds[0]}" ] || { echo "no seeds in $found: $kept stays as it is" >&2; return 1; }
  mapfile -t inputs < <(find "$found" -type f -size -1025c ! -name 'seed-*' -printf '%s %f\n' |
    sort -n | cut -d' ' -f2)
  rm -f "$kept"/*
  cp "${seeds[@]}" "$kept"
  if [ ${#inputs[@]} -gt 0 ]; then
    for number in $(seq 0 49); do cp "$found/${inputs[$((number * ${#inputs[@]} / 50))]}" "$kept"; done
  fi
}
if [ "${WEFT_FUZZ_KEEP:-0}" = 1 ]; then
  for reader in "${readers[@]}"; do keep "$reader"; done
fi
[ ${#failed[@]} = 0 ] || { echo "FAILED: ${failed[*]}; inputs in $findings" >&2; exit 1; }
echo "no findings"
