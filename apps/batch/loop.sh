#!/usr/bin/env bash
# apps/batch/loop.sh COMMAND...: runs the command again and again while it ends with 3, stopped and
# saved. For machines without a batch system that requeues; the time limit then frees the machine's
# memory and ports now and then, or makes a rehearsal of the real thing:
#   apps/batch/loop.sh mpirun -n 4 weft train PLAN --run runs/a --resume auto --set run.time_limit=1h
# SIGTERM or SIGUSR1 to the loop stops the command in order, and the loop after it, with 3.
set -u
words=" $* "
if [[ $words != *" --run"[\ =]* || $words != *" --resume"[\ =]* ]]; then
  echo "loop.sh: expected a command with --run DIR and --resume auto; found:$words" >&2
  echo "loop.sh: without them each start would be a run of its own, without end" >&2
  exit 2
fi

asked=0 command=
trap 'asked=1; kill -USR1 "$command" 2>/dev/null' TERM USR1
while :; do
  "$@" </dev/null &
  command=$!
  # A trap ends wait early.
  while kill -0 "$command" 2>/dev/null; do wait "$command"; done
  wait "$command"
  code=$?
  if [ "$code" != 3 ] || [ "$asked" = 1 ]; then exit "$code"; fi
  echo "loop.sh: stopped and saved; once more" >&2
done
