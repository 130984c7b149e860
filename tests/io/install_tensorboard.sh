#!/usr/bin/env bash
# install_tensorboard.sh DIR: TensorBoard (PyPI, 180 MB) in a Python environment of its own in DIR, for
# tests/apps/test_tensorboard.cpp. Prints that Python's path.
set -euo pipefail
python=$1/bin/python3
if ! "$python" -c 'import tensorboard' 2>/dev/null; then
  if ! python3 -c 'import ensurepip' 2>/dev/null; then
    apt-get update -qq >&2
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >&2
  fi
  python3 -m venv "$1" >&2
  "$python" -m pip install --quiet tensorboard setuptools >&2
fi
echo "$python"
