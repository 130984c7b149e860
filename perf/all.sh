#!/usr/bin/env bash
# perf/all.sh CIFAR10 OUT [TOPIC...]: every measurement of perf/README.md's table once more, one after
# the other on this machine, each topic's lines in OUT/TOPIC.txt; half an hour on two cores. Nothing
# else should run. With TOPICs only those. CIFAR10: the official binary files; OUT: on a local disk with
# 4 GiB of room. Builds what it needs. PyTorch's twin runs where WEFT_PEERS_PYTHON names a Python that
# has torch, numpy and h5py.
set -euo pipefail
[ $# -ge 2 ] || { sed -n '2,6s/^# //p' "$0" >&2; exit 2; }
data=$(realpath "$1") && mkdir -p "$2" && out=$(realpath "$2") && shift 2
cd "$(dirname "$0")/.."
export WEFT_DATA=$data
perf=build/release/perf
weft=build/release/weft

exact_price() {
  $perf/bench_exact_price 768 2 12 128 2 1
  $perf/bench_exact_price 768 2 12 512 1 1
}
vit_step() {
  local hidden shards
  for hidden in 384 192; do
    for shards in 2 4 8; do $perf/bench_vit_step $hidden 7 $shards 3 1 1; done
  done
}
scaling() { perf/bench_scaling.sh 3 4; }
bubble() {
  local kib
  for kib in 2 64 768; do apps/launch.sh 4 $perf/bench_bubble 20 7 $kib 1 </dev/null; done
}
stages() {
  local work_ms
  for work_ms in 3 6; do apps/launch.sh 4 $perf/bench_stage_split $work_ms 8 8 5 </dev/null; done
  perf/stage_split.sh
}
comm() {
  local ranks
  for ranks in 2 4; do apps/launch.sh $ranks $perf/bench_comm 15 </dev/null; done
}
new_scratch() { rm -rf "$out/scratch" && mkdir "$out/scratch"; }
stream_file() { new_scratch && $perf/bench_stream_file "$out/scratch"; }
checkpoint() {
  local layout
  for layout in "1 1 0" "2 1 0" "1 2 0" "4 1 0" "2 2 0" "2 2 1" "1 4 1" \
    "4 1 0 1 4 1" "1 4 1 4 1 0" "2 2 1 4 1 0" "1 2 0 2 1 0"; do
    # shellcheck disable=SC2086
    set -- $layout
    new_scratch
    # shellcheck disable=SC2086
    apps/launch.sh $(($1 * $2)) $perf/bench_checkpoint "$out/scratch" 488 9 $layout </dev/null
  done
}
async_save() {
  local layout
  for layout in "1 1 0" "1 2 0" "2 1 0"; do
    # shellcheck disable=SC2086
    set -- $layout
    new_scratch
    # shellcheck disable=SC2086
    apps/launch.sh $(($1 * $2)) $perf/bench_async_save "$out/scratch" 244 3 8 $layout </dev/null
  done
}
replica_check() { $perf/bench_replica_check; }
start_up() { perf/start_up.sh 8 5; }
measuring() {
  $perf/bench_measuring apps/plans/cifar10-mlp.toml "$data" 100
  $perf/bench_measuring apps/plans/cifar10-vit.toml "$data" 12
}
pytorch() {
  [ -n "${WEFT_PEERS_PYTHON:-}" ] || { echo "left out: WEFT_PEERS_PYTHON is not set"; return; }
  local steps
  for steps in 1 21; do
    $weft train apps/plans/cifar10-vit.toml --set task.augment=false --set run.steps=$steps \
      --set "task.split={train=45000,validation=160,seed=7}" --run "$out/twin-$steps" 2>&1 | sed -n '/ms median/p'
  done
  OMP_NUM_THREADS=1 "$WEFT_PEERS_PYTHON" perf/peers/vit_pytorch.py \
    "$out/twin-1/checkpoints/step-000000001" "$out/twin-21" "$data"
}

cmake --build --preset release >/dev/null
[ $# -gt 0 ] || set -- exact_price vit_step scaling bubble stages comm stream_file checkpoint async_save replica_check start_up measuring pytorch
for topic in "$@"; do
  [ "$(type -t "$topic")" = function ] || { echo "perf/all.sh: no topic $topic" >&2; exit 2; }
  echo "== $topic, $(date -u +%H:%M), load $(cut -d' ' -f1 /proc/loadavg)"
  $topic 2>&1 | tee "$out/$topic.txt"
done
rm -rf "$out/scratch" "$out"/twin-*
