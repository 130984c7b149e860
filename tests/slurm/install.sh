#!/usr/bin/env bash
# Installs Slurm's daemons and munge for tests/slurm/run.sh (Debian, root; 20 s). Starts none of them.
set -euo pipefail
command -v slurmd >/dev/null && command -v munged >/dev/null && exit 0
apt-get update -qq >&2
# In run level 1 the packages start no daemons; where systemd is, they find no configuration.
RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends slurm-wlm munge >&2
