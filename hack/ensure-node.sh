#!/usr/bin/env bash
# Makes sure that there are Node.js and npm: a test runs the example in JavaScript.
# Installs them with apt-get if they are missing, and says so; otherwise does
# nothing.
set -euo pipefail

if command -v node >/dev/null && command -v npm >/dev/null; then
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "examples: there is no Node.js or no npm, and no apt-get to install them; install Node.js 18 or newer and try again." >&2
  exit 1
fi

sudo=
if ((EUID != 0)); then
  sudo=sudo
fi
echo "examples: Node.js or npm is missing, installing them with apt-get"
$sudo apt-get update -q
DEBIAN_FRONTEND=noninteractive $sudo apt-get install -q -y --no-install-recommends nodejs npm
