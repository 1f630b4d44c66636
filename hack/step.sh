#!/usr/bin/env bash
# Runs one step of a longer job, says when it starts and how long it took.
#
#   hack/step.sh NAME COMMAND [ARG...]
#
# The exit status is the command's own.
set -euo pipefail

name=$1
shift

echo
echo "==> $name"
start=$SECONDS
status=0
"$@" || status=$?
took=$((SECONDS - start))

if ((status)); then
  echo "<== $name: FAILED (exit status $status) after $took s" >&2
else
  echo "<== $name: ok, took $took s"
fi
exit "$status"
