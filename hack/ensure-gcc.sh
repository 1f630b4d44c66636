#!/usr/bin/env bash
# Makes sure that there is a C compiler: the race detector links against C.
# Installs gcc with apt-get if there is none, and says so; otherwise does nothing.
set -euo pipefail

cc=$(go env CC)
if command -v "${cc%% *}" >/dev/null; then
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "race detector: there is no C compiler ($cc), and no apt-get to install one; install gcc and try again." >&2
  exit 1
fi

sudo=
if ((EUID != 0)); then
  sudo=sudo
fi
echo "race detector: there is no C compiler ($cc), installing gcc with apt-get"
$sudo apt-get update -q
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -q -y --no-install-recommends gcc libc6-dev
