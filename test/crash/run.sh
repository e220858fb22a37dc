#!/usr/bin/env bash
# Kills the server of a build with SIGKILL while it works, and checks that no data is lost; see README.md.
#   test/crash/run.sh BUILD_DIR [--only all|updates] [--kills N] [--seed S]
set -euo pipefail
usage="usage: test/crash/run.sh BUILD_DIR [--only all|updates] [--kills N] [--seed S]"
parts=(main updates_main)
args=()
while [ $# -gt 0 ]; do
  case $1 in
    --only)
      case ${2:-} in
        all) parts=(main) ;;
        updates) parts=(updates_main) ;;
        *) echo "$usage" >&2; exit 2 ;;
      esac
      shift 2
      ;;
    *) args+=("$1"); shift ;;
  esac
done
[ ${#args[@]} -ge 1 ] || { echo "$usage" >&2; exit 2; }
for part in "${parts[@]}"; do node "$(dirname "${BASH_SOURCE[0]}")/$part.mjs" "${args[@]}"; done
