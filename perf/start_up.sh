#!/usr/bin/env bash
# perf/start_up.sh [RANKS [REPEATS]]: seconds from the launch to the end of the first step on RANKS
# ranks (default 8): wire-up, plan, probe, first step. Data are mapped, so their loading is the first
# batch's rows. WEFT_DATA names the data folder.
set -euo pipefail
cd "$(dirname "$0")/.."
ranks=${1:-8}
repeats=${2:-5}
: "${WEFT_DATA:?name a CIFAR-10 folder}"
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

for ((i = 0; i < repeats; ++i)); do
  begin=$(date +%s.%N)
  apps/launch.sh "$ranks" build/release/weft train apps/plans/cifar10-mlp.toml --run "$work/$i" --json \
    --set numerics.shards=8 --set numerics.lanes=8 --set batch.global=128 --set layout.tp=2 \
    --set layout.dp=$((ranks / 2)) --set run.steps=1 >"$work/$i.json" 2>"$work/$i.text"
  end=$(date +%s.%N)
  first=$(sed 's/.*"first_step_done_ms":\([0-9.]*\).*/\1/' "$work/$i.json" | tail -1)
  echo "$begin $end $first" | awk '{ printf "whole program %.2f s, start-up to the end of the first step inside it %.2f s\n", $2 - $1, $3 / 1000 }'
done
