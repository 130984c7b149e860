#!/usr/bin/env bash
# tests/run.sh [CTEST OPTION...]: sets the machine up, builds, and runs all tests. Safe to repeat.
# Ends with CTest's summary of the release build; the sanitized builds come before it, mutations after.
#
#   tests/run.sh -L unit        only the unit tests of the release build
#   WEFT_SANITIZERS=0           leave out the asan and tsan builds
#   WEFT_MUTATIONS=1            afterwards the mutation leg, too (tests/mutation/run.sh)
#   WEFT_WERROR=1               warnings are errors
#   WEFT_SLURM=1                installs Slurm (Debian, root) for the test of the job scripts on it, else skipped
#   WEFT_TEST_CIFAR10=DIR       the real CIFAR-10 (official binary files): its tests run, else skip
#   WEFT_TEST_BANK=DIR, WEFT_TEST_AG_NEWS=DIR, WEFT_TEST_TEXT=DIR   the same for the real tables and texts
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=${WEFT_JOBS:-$(nproc)}
werror=$([ -n "${WEFT_WERROR:-}" ] && echo ON || echo OFF)

say() { printf '\n== %s\n' "$*"; }

say "setting up"
kokkos=$(apps/setup.sh)
if [ "${WEFT_SLURM:-0}" = 1 ]; then tests/slurm/install.sh; fi

# build PRESET [TARGET]
build() {
  local preset=$1 target=${2:-all}
  say "building $preset"
  mkdir -p "build/$preset"
  cmake --preset "$preset" ${kokkos:+-DKokkos_ROOT="$kokkos"} -DWEFT_WERROR="$werror" >"build/$preset/configure.log" 2>&1 ||
    { cat "build/$preset/configure.log"; exit 1; }
  cmake --build --preset "$preset" --target "$target" -j "$jobs"
}

if [ "${WEFT_SANITIZERS:-1}" = 1 ] && [ $# = 0 ]; then
  # OpenMP's own threads are not instrumented: what runs under tsan uses Serial, with ranks as threads.
  build asan unit_tests
  say "unit tests under address and undefined-behaviour sanitizers"
  ctest --test-dir build/asan -L unit --output-on-failure
  build tsan protocol_tests
  say "protocol tests under the thread sanitizer"
  ctest --test-dir build/tsan -L protocol --output-on-failure
fi

build release
say "all tests"
ctest --test-dir build/release --output-on-failure "$@"

if [ "${WEFT_MUTATIONS:-0}" = 1 ] && [ $# = 0 ]; then
  say "builds with a broken rule, which tests must notice"
  Kokkos_ROOT="$kokkos" tests/mutation/run.sh
fi
