#!/usr/bin/env bash
# apps/launch.sh N PROGRAM [ARG...]: runs N ranks on this machine. The one place that knows what
# mpirun needs as root, with more ranks than cores, and in a loop (mpirun reads standard input).
# On a cluster use its own launcher instead: srun, or mpirun with your site's options.
set -eu
ranks=$1; shift
options=(--oversubscribe --bind-to none)
if [ "$(id -u)" = 0 ]; then options+=(--allow-run-as-root); fi
exec mpirun "${options[@]}" ${WEFT_MPIRUN_OPTIONS:-} -n "$ranks" "$@" </dev/null
