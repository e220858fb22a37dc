#!/usr/bin/env bash
# Kills the server of a build with SIGKILL while it works, and looks whether anything is lost; see README.md.
#   test/crash/run.sh BUILD_DIR [--kills N] [--seed S]
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: test/crash/run.sh BUILD_DIR [--kills N] [--seed S]" >&2; exit 2; }
exec node "$(dirname "${BASH_SOURCE[0]}")/main.mjs" "$@"
