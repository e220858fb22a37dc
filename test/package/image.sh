#!/usr/bin/env bash
# Builds the image of deploy/Containerfile, and runs it as docs/operations.md does. Needs root, podman with runc, debootstrap, curl, jq and the network.
# The base image is a root file system of the same Debian release. Images and containers are in a folder that is removed at the end.
#   test/package/image.sh [ROOT]    ROOT: a root file system of Debian 12 (as of debootstrap), which is copied
set -euo pipefail
[ $# -le 1 ] || { echo "usage: test/package/image.sh [ROOT]" >&2; exit 2; }
clone=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
folder=$(mktemp -d -t divan-image.XXXXXX)
trap 'set +e; engine rm --force --all --time 0 >/dev/null 2>&1; engine unmount --all >/dev/null 2>&1; umount "$folder/storage/overlay" 2>/dev/null; rm -rf --one-file-system "$folder"' EXIT

# Not more than a machine allows that is a container or virtual machine itself.
limits=(--ulimit "nofile=$(ulimit -Hn)" --ulimit nproc=4096)
engine() { podman --root "$folder/storage" --runroot "$folder/run" --cgroup-manager cgroupfs --runtime runc "$@"; }
say() { echo "== $*"; }
fail() { echo "FAILED: $*" >&2; engine logs divan >&2 || true; exit 1; }
expect() { [ "$2" = "$3" ] || fail "$1: $2; expected $3"; }
# To the server in the container, from its network, which has no other host.
request() { nsenter --target "$(engine inspect --format '{{.State.Pid}}' divan)" --net curl -sS -u "$admin" "http://127.0.0.1:5984$1" "${@:2}"; }

say "the base image"
root=${1-$folder/root}
[ $# = 1 ] || debootstrap --variant=minbase bookworm "$root" >"$folder/log" 2>&1 || { tail -n 20 "$folder/log" >&2; fail debootstrap; }
# With the certificates that this machine trusts besides Debian's.
tar --one-file-system -C "$root" -c . -C / ./usr/local/share/ca-certificates | engine import --quiet - docker.io/library/debian:12-slim >/dev/null

say "the image"
git -C "$clone" archive --prefix=context/ HEAD | tar -x -C "$folder"
engine build --quiet --pull=never --format docker --network host --isolation chroot -f "$folder/context/deploy/Containerfile" -t divan "$folder/context" >"$folder/log" 2>&1 ||
  { tail -n 40 "$folder/log" >&2; fail "the build"; }
for program in divan divan-js; do
  libraries=$(engine run --rm "${limits[@]}" --network none --entrypoint ldd divan "/usr/local/bin/$program")
  expect "libraries that $program lacks" "$(grep 'not found' <<<"$libraries" || true)" ''
done
# A library that nothing needs makes the image larger, and is updated for nothing.
sed -n '/ca-certificates tzdata/,/^ &&/p' "$folder/context/deploy/Containerfile" | grep -oE '\blib[a-z0-9.+-]+' | sort >"$folder/listed"
engine run --rm "${limits[@]}" --network none --entrypoint sh divan -c '
  for program in divan divan-js; do ldd /usr/local/bin/$program; done | sed -n "s/.*=> \([^ ]*\) .*/\1/p" | sort -u | xargs -n 1 realpath |
  while read -r file; do dpkg -S "$file" "/usr${file#/usr}" "${file#/usr}" 2>/dev/null; done | sed "s/:.*//" | sort -u' >"$folder/used"
expect "libraries that neither program uses" "$(comm -23 "$folder/listed" "$folder/used" | tr '\n' ' ')" ''

say "the licences of what the programs contain"
licences=$(engine run --rm --entrypoint sh "${limits[@]}" --network none divan -c 'cd /usr/share/doc/divan && cat LICENSE copyright && zcat third-party-licenses.txt.gz')
for text in 'Apache License' BSD-3-clause '==== preact ' '==== libcli11-dev '; do grep -qF "$text" <<<"$licences" || fail "no $text in /usr/share/doc/divan"; done

start() {
  engine run -d --name divan "${limits[@]}" --network none --read-only --cap-drop all --security-opt no-new-privileges -v divan:/var/lib/divan divan >/dev/null
  for ((i = 0; i < 600; ++i)); do
    ! engine exec divan divan status --data-dir /var/lib/divan >"$folder/status" 2>&1 || return 0
    sleep 0.1
  done
  cat "$folder/status" >&2
  fail "the server did not start"
}

say "a server, with a root file system that is read-only"
start
admin=$(engine exec divan cat admin)
expect "its user" "$(engine exec divan id -u)" 5984
expect "a database" "$(request /shop -X PUT)" '{"ok":true}'
expect "a view" "$(request /shop/_design/d -X PUT -d '{"views":{"v":{"map":"function (doc) { emit(doc.n) }"}}}' | jq .ok)" true
expect "a document" "$(request /shop/a -X PUT -d '{"n":1}' | jq .ok)" true
expect "its row" "$(request /shop/_design/d/_view/v | jq -c '[.rows[].key]')" '[1]'
engine healthcheck run divan || fail "the health check"

say "its end, and another start with the same volume"
engine stop --time 60 divan >/dev/null
expect "its exit status" "$(engine inspect --format '{{.State.ExitCode}}' divan)" 0
engine rm divan >/dev/null
start
expect "the administrator" "$(engine exec divan cat admin)" "$admin"
expect "the document" "$(request /shop/a | jq .n)" 1
say "passed"
