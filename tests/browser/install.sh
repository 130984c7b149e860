#!/usr/bin/env bash
# Installs Chromium and a font for tests/browser (Debian, root; 300 MB).
set -euo pipefail
command -v chromium >/dev/null && exit 0
apt-get update -qq >&2
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >&2
