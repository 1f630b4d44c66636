#!/usr/bin/env bash
# Builds a pinned tool from a module of its own under hack/ into bin/tools.
#
#   hack/build-tool.sh NAME MODULE PACKAGE
#
# MODULE is a directory of hack/ whose go.mod pins PACKAGE's version.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
name=$1 module=$2 package=$3
out="$root/bin/tools"
mkdir -p "$out"

echo "tools: building $name from hack/$module ..."
start=$SECONDS
# To a temporary name of this process first: whoever runs the tool meanwhile, or
# builds it at the same time, sees a whole binary.
tmp="$out/.$name.$$"
trap 'rm -f "$tmp"' EXIT
(cd "$root/hack/$module" && CGO_ENABLED=0 go build -ldflags "-s -w" -o "$tmp" "$package")
mv "$tmp" "$out/$name"
echo "tools: built $name in $((SECONDS - start)) s"
