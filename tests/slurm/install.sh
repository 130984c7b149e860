#!/usr/bin/env bash
# Installs Slurm's daemons and munge for tests/slurm/run.sh (Debian, root; 20 s), where no systemd would
# start them. Starts none of them.
set -euo pipefail
command -v slurmd >/dev/null && command -v munged >/dev/null && exit 0
if [ -d /run/systemd/system ]; then
  echo "this machine has systemd, which the packages slurm-wlm and munge would tell to start their daemons, now and with" \
    "the system; install them yourself, then: systemctl disable --now munge slurmctld slurmd" >&2
  exit 1
fi
apt-get update -qq >&2
# In run level 1 the packages start no daemons.
RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends slurm-wlm munge >&2
