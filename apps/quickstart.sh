#!/usr/bin/env bash
# apps/quickstart.sh: from a fresh machine to a trained model in one command. Sets the machine up,
# builds the release preset, trains on 4 ranks (tp=2, dp=2), then runs the same plan on one rank and
# on another layout, and shows that the bits agree; then a vision transformer on a grid of layouts.
# Safe to repeat: what is done is not done again.
#
#   WEFT_DATA=DIR          CIFAR-10 in its official binary form; without it a synthetic set is made
#   WEFT_QUICKSTART_STEPS  steps of the training (default 300)
set -euo pipefail
cd "$(dirname "$0")/.."
steps=${WEFT_QUICKSTART_STEPS:-300}
plan=apps/plans/cifar10-mlp.toml

say() { printf '\n== %s\n' "$*"; }

say "1. setting up (compiler, MPI, BLIS, Kokkos)"
kokkos=$(apps/setup.sh)

mkdir -p build/quickstart
say "2. building build/release/weft"
cmake --preset release ${kokkos:+-DKokkos_ROOT="$kokkos"} >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
cmake --build --preset release --target weft

say "3. data"
if [ -n "${WEFT_DATA:-}" ]; then
  echo "WEFT_DATA: $WEFT_DATA"
else
  export WEFT_DATA=build/quickstart/synthetic-cifar10
  if [ -f "$WEFT_DATA/test_batch.bin" ]; then
    echo "synthetic images in $WEFT_DATA"
  else
    build/release/weft data make cifar10 "$WEFT_DATA"
  fi
fi

# state_hash and loss_hash of a summary.
hashes_of() { sed 's/.*"state_hash":"\([0-9a-f]*\)".*"loss_hash":"\([0-9a-f]*\)".*/\1 \2/' "$1"; }

# train TP DP: one run of the plan; its state hash goes to stdout.
train() {
  local tp=$1 dp=$2 run
  run=build/quickstart/run-$(date +%Y%m%d-%H%M%S)-tp$tp-dp$dp
  apps/launch.sh $((tp * dp)) build/release/weft train "$plan" --run "$run" --json \
    --set layout.tp="$tp" --set layout.dp="$dp" --set run.steps="$steps" | tail -1 >"build/quickstart/summary.json"
  hashes_of build/quickstart/summary.json
}

say "4. training on 4 ranks: tp=2, dp=2"
four=$(train 2 2)
say "5. the same plan on one rank"
one=$(train 1 1)
say "6. the same plan on another layout: tp=4, dp=1"
other=$(train 4 1)

say "7. state_hash and loss_hash of the three runs"
printf 'tp=2 dp=2  %s\ntp=1 dp=1  %s\ntp=4 dp=1  %s\n' "$four" "$one" "$other"
if [ "$four" = "$one" ] && [ "$four" = "$other" ]; then
  echo "the bits agree: parameters, optimizer state and every loss are the same on every layout."
else
  echo "THE BITS DIFFER. This is a fault of weft: please report it with the three summaries in build/quickstart."
  exit 1
fi

say "8. a vision transformer on every layout of a grid, with tensor, data and pipeline parallel"
apps/launch.sh 4 build/release/weft layouts apps/plans/cifar10-vit-12.toml --steps 4 --warmup 1 \
  --grid "tp=1,2 dp=1,2 pp=1,2 zero=0,1 sequence_parallel=true"

say "9. killed in the middle on tp=2 dp=2, resumed on tp=1 dp=2"
run=build/quickstart/run-$(date +%Y%m%d-%H%M%S)-killed
checkpoints="--set checkpoint.every_steps=$(((steps + 5) / 6)) --set run.steps=$steps"
apps/launch.sh 4 build/release/weft train "$plan" --run "$run" --set layout.tp=2 --set layout.dp=2 $checkpoints </dev/null &
launcher=$!
until compgen -G "$run/checkpoints/step-*" >/dev/null || ! kill -0 $launcher 2>/dev/null; do sleep 0.05; done
kill $launcher 2>/dev/null || true
wait $launcher || true
apps/launch.sh 2 build/release/weft train "$plan" --run "$run" --resume auto --json --set layout.dp=2 $checkpoints </dev/null |
  tail -1 >build/quickstart/summary.json
resumed=$(hashes_of build/quickstart/summary.json)
build/release/weft ckpt ls "$run"
printf 'undisturbed  %s\nresumed      %s\n' "$four" "$resumed"
[ "$four" = "$resumed" ] || { echo "THE BITS DIFFER. This is a fault of weft: please report it with $run."; exit 1; }
echo "the bits agree: nothing was lost."
