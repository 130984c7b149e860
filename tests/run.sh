#!/usr/bin/env bash
# tests/run.sh [CTEST OPTION...]: sets the machine up, builds, and runs all tests. Safe to repeat.
# Ends with CTest's summary of the release build; the sanitized builds come before it, mutations after.
#
#   tests/run.sh -L unit        only the unit tests of the release build
#   WEFT_SANITIZERS=0           leave out the asan and tsan builds
#   WEFT_MINUTES=85             leave out those of the two that would not end in time, judged by how long the
#                               release build took; says so, here and at the end
#   WEFT_MUTATIONS=1            afterwards the mutation leg, too (tests/mutation/run.sh)
#   WEFT_WERROR=1               warnings are errors
#   WEFT_SLURM=1                installs Slurm (Debian, root) for the test of the job scripts on it, else skipped
#   WEFT_CHROMIUM=1             installs Chromium (Debian, root) for the test of a report's page, else skipped
#   WEFT_TENSORBOARD=1          installs TensorBoard (PyPI) as a second reader of event files; else only that of the
#                               tests
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
if [ "${WEFT_CHROMIUM:-0}" = 1 ]; then tests/browser/install.sh; fi
if [ "${WEFT_TENSORBOARD:-0}" = 1 ]; then
  WEFT_TENSORBOARD=$(tests/io/install_tensorboard.sh "$PWD/build/tensorboard")
  export WEFT_TENSORBOARD
fi

# build PRESET [TARGET]
build() {
  local preset=$1 target=${2:-all}
  say "building $preset"
  mkdir -p "build/$preset"
  cmake --preset "$preset" ${kokkos:+-DKokkos_ROOT="$kokkos"} -DWEFT_WERROR="$werror" >"build/$preset/configure.log" 2>&1 ||
    { cat "build/$preset/configure.log"; exit 1; }
  cmake --build --preset "$preset" --target "$target" -j "$jobs"
}

# fits NAME COST: whether there is time for it, and for the release tests afterwards; in percent of the time of
# a release build from nothing.
release_s=0
release_tests=140
left_out=
fits() {
  local name=$1 cost=$2
  [ -n "${WEFT_MINUTES:-}" ] || return 0
  [ $((SECONDS + (cost + release_tests) * release_s / 100)) -le $((WEFT_MINUTES * 60)) ] && return 0
  left_out="$left_out $name"
  say "LEFT OUT: $name does not fit in $WEFT_MINUTES minutes, of which $((SECONDS / 60)) have gone"
  return 1
}

before_s=$SECONDS
build release
release_s=$((SECONDS - before_s))

if [ "${WEFT_SANITIZERS:-1}" = 1 ] && [ $# = 0 ]; then
  # OpenMP's own threads are not instrumented: what runs under tsan uses Serial, with ranks as threads.
  if fits asan 130; then
    build asan unit_tests
    say "unit tests under address and undefined-behaviour sanitizers"
    ctest --test-dir build/asan -L unit --output-on-failure
  fi
  if fits tsan 100; then
    build tsan protocol_tests
    say "protocol tests under the thread sanitizer"
    ctest --test-dir build/tsan -L protocol --output-on-failure
  fi
fi

say "all tests${left_out:+, without the sanitized builds$left_out}"
ctest --test-dir build/release --output-on-failure "$@"

if [ "${WEFT_MUTATIONS:-0}" = 1 ] && [ $# = 0 ]; then
  say "builds with a broken rule, which tests must notice"
  Kokkos_ROOT="$kokkos" tests/mutation/run.sh
fi
