#!/usr/bin/env bash
# perf/bench_scaling.sh [REPEATS [STEPS]]: two data-parallel and two tensor-parallel ranks against one,
# on the vision transformer of hidden 384. The layouts take turns in one run, so that the machine's
# moods meet all alike; the table's speed-up is the figure.
set -euo pipefail
cd "$(dirname "$0")/.."
repeats=${1:-3} steps=${2:-6}
data=${WEFT_DATA:-build/perf-data/synthetic-cifar10}
[ -f "$data/test_batch.bin" ] || build/release/weft data make cifar10 "$data"
for transport in ucx mpi; do
  apps/launch.sh 2 build/release/weft layouts \
    apps/plans/cifar10-vit.toml --data "$data" --set model.hidden=384 \
    --set numerics.lanes=2 --set batch.global=64 --repeat "$repeats" --steps "$steps" \
    --grid "tp=1,2 dp=1,2 pp=1 zero=0,1 sequence_parallel=false,true transport=$transport"
done
