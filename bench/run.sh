#!/usr/bin/env bash
# Called by ./dev bench [NAME...] with a release build; see README.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p build/bench
exec node bench/main.mjs "$@"
