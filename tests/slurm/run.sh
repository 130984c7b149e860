#!/usr/bin/env bash
# tests/slurm/run.sh PROGRAM: apps/batch's job scripts on a real Slurm of one node, which it starts
# and ends itself. Two jobs, one by srun and one by mpirun, each go through: the signal before the
# time limit, requeue, a failed node, a killed rank, scancel, and end with the bits of an undisturbed
# run. Takes about three minutes. Ends with 77 (skipped) unless WEFT_SLURM=1 asks for it; then it is a
# failure where Slurm is not installed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
scripts=$(cd "$here/../../apps/batch" && pwd)
WEFT=$(readlink -f "${1:?usage: tests/slurm/run.sh PROGRAM}")
export WEFT
if [ "${WEFT_SLURM:-0}" != 1 ]; then
  echo "SKIPPED: starts daemons and takes three minutes; WEFT_SLURM=1 asks for it"
  exit 77
fi
# Of a job that this may run in, of a user's habits: nothing of them is meant for this cluster.
unset "${!SLURM_@}" "${!SBATCH_@}" "${!SCANCEL_@}" "${!SQUEUE_@}" "${!SINFO_@}"

folder=
declare -A job=()  # METHOD: id of its last one
fail() {
  echo "FAILED: $*" >&2
  for log in "$folder"/*.log; do echo "--- $log" >&2; tail -n 15 "$log" >&2; done
  exit 1
}

# wait_until SECONDS WHAT COMMAND...
wait_until() {
  local deadline=$((SECONDS + $1)) what=$2; shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt "$deadline" ] || fail "waited in vain for $what"
    sleep 0.2
  done
}

. "$here/cluster.sh"
for command in munged slurmctld slurmd sbatch; do
  if ! need "$command"; then
    echo "FAILED: no $command here; tests/slurm/install.sh installs Slurm's daemons (Debian, root)" >&2
    exit 1
  fi
done
# As /proc shows it. Never empty: processes are ended by it.
folder=$(mktemp -d "${TMPDIR:-/tmp}/weft-slurm.XXXXXX") && folder=$(readlink -f "$folder") && [ -n "$folder" ] || exit 1
export SLURM_CONF=$folder/slurm.conf  # from here on no command reaches another cluster
chmod 755 "$folder"  # munge wants its socket within everyone's reach
trap 'code=$?; stop_cluster; rm -rf "$folder"; exit $code' EXIT
trap 'exit 130' INT TERM HUP

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none
methods="srun mpirun"
declare -A script=([srun]=weft.sbatch [mpirun]=weft-mpirun.sbatch)
declare -A signal=([srun]=USR1@20 [mpirun]=B:USR1@20)
declare -A layout=([srun]=layout.tp=2 [mpirun]=layout.dp=2)

# Far more steps than a minute has; the last job ends them soon after where it begins.
write_plan() {  # METHOD STEPS
  cat >"$folder/$1.toml" <<PLAN
[task]
dataset = "cifar10"
split = { train = 320, validation = 80, seed = 7 }
[model]
kind = "vit"
layers = 2
hidden = 32
heads = 4
mlp_ratio = 2
patch = 8
dropout = 0.1
[batch]
global = 16
micro = 2
[numerics]
shards = 4
lanes = 4
[optimizer]
kind = "adamw"
lr = 1e-3
clip_norm = 0.5
[eval]
every_epochs = 0
[run]
steps = $2
[checkpoint]
every_steps = 100
keep = 2
PLAN
}

# --- What is asked of Slurm and of a run folder

submit() {  # METHOD MINUTES
  job[$1]=$(cd "$folder" && sbatch --parsable --ntasks=2 --time="$2" --signal="${signal[$1]}" \
    --output="$folder/$1.log" "$scripts/${script[$1]}" "$1.toml" "$1" --data data --set "${layout[$1]}") ||
    fail "sbatch refuses ${script[$1]}"
}
field() { scontrol -o show job "${job[$1]}" | grep -o " $2=[^ ]*" | head -1 | cut -d= -f2; }  # METHOD NAME
has() { [ "$(field "$1" "$2")" = "$3" ]; }                                                # METHOD NAME VALUE
num_starts() { grep -c resumed_from_step "$folder/$1/events.jsonl" 2>/dev/null; }
has_started() { [ "$(num_starts "$1")" -ge "$2" ]; }
newest() { ls "$folder/$1/checkpoints" 2>/dev/null | grep '^step-' | tail -1; }
has_saved_after() { [[ "$(newest "$1")" > "$2" ]]; }
log_has() { grep -qE -- "$2" "$folder/$1.log"; }
expect() { "${@:2}" || fail "expected $1"; }
ranks() {  # METHOD: process ids
  local process
  for process in $(cluster_processes); do
    [ "$(readlink "/proc/$process/exe")" = "$WEFT" ] &&
      tr '\0' ' ' <"/proc/$process/cmdline" | grep -q -- "--run $1 " && echo "$process"
  done
}
no_ranks() { [ -z "$(ranks "$1")" ]; }  # METHOD
end_without_requeue() {  # METHOD STATE RESTARTS
  wait_until 90 "the $1 job to end" has "$1" JobState "$2"
  expect "the $1 job not to be requeued" has "$1" Restarts "$3"
  wait_until 30 "the ranks of the $1 job to end" no_ranks "$1"
}
lengthen() {  # METHOD, while it is pending
  wait_until 30 "the $1 job to be pending" has "$1" JobState PENDING
  scontrol update jobid="${job[$1]}" TimeLimit=30 || fail "no new time limit"
}
say() { echo "== $SECONDS s: $*"; }

# --- The lives of two jobs

start_cluster
srun --mpi=list 2>&1 | grep -q pmix || fail "Slurm here has no PMIx plugin; weft.sbatch needs it"
"$WEFT" data make cifar10 "$folder/data" --rows 80 >/dev/null || fail "no data"
for m in $methods; do write_plan "$m" 1000000; submit "$m" 1; done
for m in $methods; do wait_until 30 "the ranks of $m to begin" has_started "$m" 1; done

say "signal before the time limit: all ranks save, end with 3, requeue"
declare -A saved
for m in $methods; do wait_until 120 "the $m job to be requeued" has "$m" Restarts 1; done
for m in $methods; do
  saved[$m]=$(newest "$m")
  expect "the $m job to save for the signal" log_has "$m" "for SIGUSR1, saved .*/${saved[$m]}\$"
  expect "the $m script to requeue" log_has "$m" "${script[$m]}: stopped and saved; back into the queue"
  expect "its summary to say so" grep -q '"stopped": "SIGUSR1"' "$folder/$m/summary.json"
done
expect "both ranks to end with 3" log_has srun "tasks 0-1: Exited with exit code 3"
for m in $methods; do lengthen "$m"; done
for m in $methods; do
  wait_until 90 "the $m job to resume" log_has "$m" "resumed from $m/checkpoints/${saved[$m]} "
  wait_until 90 "a checkpoint of the $m job" has_saved_after "$m" "${saved[$m]}"
done

say "the node fails: Slurm requeues, the job goes on from the last checkpoint"
kill_node
for m in $methods; do
  saved[$m]=$(newest "$m")
  wait_until 20 "Slurm to requeue the $m job" has "$m" Restarts 2
done
start_node
for m in $methods; do
  wait_until 120 "the $m job to resume after the node failed" log_has "$m" "resumed from $m/checkpoints/${saved[$m]} "
  wait_until 90 "a checkpoint of the $m job" has_saved_after "$m" "${saved[$m]}"
done

say "a rank is killed: the job fails, all ranks end"
for m in $methods; do
  victim=$(ranks "$m" | tail -1)
  kill -9 "$victim" || fail "no rank of $m to kill"
done
for m in $methods; do
  end_without_requeue "$m" FAILED 2
  expect "the exit code of a killed rank" has "$m" ExitCode 137:0
  saved[$m]=$(newest "$m")
done

say "submitted again, then cancelled: saved, not requeued"
for m in $methods; do submit "$m" 30; done
for m in $methods; do
  wait_until 90 "the $m job to resume after a rank died" log_has "$m" "resumed from $m/checkpoints/${saved[$m]} "
done
sleep 2
for m in $methods; do scancel "${job[$m]}"; done
for m in $methods; do
  end_without_requeue "$m" CANCELLED 0
  saved[$m]=$(newest "$m")
  wait_until 30 "the $m job to save for scancel" \
    log_has "$m" "for SIG(TERM|USR1), saved .*/${saved[$m]}\$"
done

say "submitted again, to the end; beside it the undisturbed runs of as many steps"
declare -A undisturbed
for m in $methods; do
  write_plan "$m" $((10#${saved[$m]#step-} + 100))
  submit "$m" 30
  "$WEFT" train "$folder/$m.toml" --run "$folder/$m-undisturbed" --data "$folder/data" \
    --set checkpoint.every_steps=0 >"$folder/$m-undisturbed.log" 2>&1 </dev/null &
  undisturbed[$m]=$!
done
hashes() { grep -E '"(state|loss)_hash"' "$folder/$1/summary.json"; }
for m in $methods; do
  wait_until 300 "the $m job to be through" has "$m" JobState COMPLETED
  wait "${undisturbed[$m]}" || fail "the undisturbed run of $m"
  echo "$m: "$(hashes "$m")
  expect "hashes of the $m job" test -n "$(hashes "$m")"
  expect "the $m job to end with the undisturbed run's bits" test "$(hashes "$m")" = "$(hashes "$m-undisturbed")"
done
say "passed"
