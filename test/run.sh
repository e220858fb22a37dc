#!/usr/bin/env bash
# Runs the end-to-end tests against the binaries in a build directory.
#   test/run.sh BUILD_DIR [FILE_test.mjs ...]
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: test/run.sh BUILD_DIR [FILE_test.mjs ...]" >&2; exit 2; }
DIVAN_BUILD_DIR=$(realpath "$1")
export DIVAN_BUILD_DIR
shift
[ -x "$DIVAN_BUILD_DIR/divan" ] || { echo "test/run.sh: there is no $DIVAN_BUILD_DIR/divan" >&2; exit 2; }
cd "$(dirname "${BASH_SOURCE[0]}")"
for folder in . ../clients/js; do
  [ -d $folder/node_modules ] || (cd $folder && npm ci --no-audit --no-fund --loglevel=error)
done

# This directory is removed with all files that tests leave.
TMPDIR=$(mktemp -d -t divan-test.XXXXXX)
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

all=0
if [ $# -eq 0 ]; then
  all=1
  set -- *_test.mjs
  export DIVAN_OPERATIONS=$TMPDIR/operations # support/openapi.mjs
fi
node --test --test-concurrency=2 --test-reporter=./support/reporter.mjs --test-reporter-destination=stdout "$@"
[ $all = 1 ] || exit 0
if [ "${DIVAN_TEST_STORE-}" = fdb ]; then
  echo "crash SKIPPED: of the embedded store alone"
else
  node support/operations.mjs "$DIVAN_OPERATIONS"
  crash/run.sh "$DIVAN_BUILD_DIR"
fi
