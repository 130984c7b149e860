#!/usr/bin/env bash
# perf/stage_split.sh [REPEATS [STEPS]]: a vision transformer of one patch, whose first stage has
# about twice the other's work where blocks are split evenly, on two ranks. Every split of its six
# blocks by turns in one run; then `layout.stages = "measured"` from the even one: what it chose, what
# it predicted and achieved. WEFT_DATA names a CIFAR-10 folder.
set -euo pipefail
cd "$(dirname "$0")/.."
repeats=${1:-5} steps=${2:-60}
: "${WEFT_DATA:?name a CIFAR-10 folder}"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
plan=(apps/plans/cifar10-vit.toml --data "$WEFT_DATA" --set model.patch=32 --set model.hidden=48
  --set model.heads=4 --set model.layers=6 --set model.dropout=0.0 --set task.augment=false
  --set numerics.lanes=1 --set batch.micro=128 --set batch.global=1024
  --set "run.steps=$steps" --set layout.pp=2 --set checkpoint.every_steps=0 --set eval.every_epochs=0)

apps/launch.sh 2 build/release/weft layouts "${plan[@]}" --repeat "$repeats" --steps "$steps" --warmup 10 \
  --grid "pp=2 stages=[1,5],[2,4],[3,3],[4,2],[5,1]"
for ((i = 0; i < repeats; ++i)); do
  apps/launch.sh 2 build/release/weft train "${plan[@]}" --set layout.stages=measured --run "$work/$i" \
    2>&1 | grep '^stages'
done
