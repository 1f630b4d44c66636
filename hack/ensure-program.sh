#!/usr/bin/env bash
# Makes sure that there is a program, by installing Debian packages if it is missing,
# and says so; otherwise does nothing.
#
#     hack/ensure-program.sh PROGRAM PURPOSE PACKAGE…
set -euo pipefail

program=$1 purpose=$2
shift 2
if command -v "$program" >/dev/null; then
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "$purpose: there is no $program, and no apt-get to install it (Debian: $*); install it and try again." >&2
  exit 1
fi

sudo=
if ((EUID != 0)); then
  sudo=sudo
fi
echo "$purpose: there is no $program, installing $* with apt-get"
$sudo apt-get update -q
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -q -y --no-install-recommends "$@"
