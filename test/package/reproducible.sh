#!/usr/bin/env bash
# Builds the package of the last commit twice, in different folders, time zones and languages, the second time without ccache, and
# compares the bytes. Needs what ./dev package needs.
#   test/package/reproducible.sh [FOLDER]    FOLDER: where both are built, instead of a temporary one that is removed
set -euo pipefail
[ $# -le 1 ] || { echo "usage: test/package/reproducible.sh [FOLDER]" >&2; exit 2; }
clone=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
folder=${1-$(mktemp -d -t divan-reproducible.XXXXXX)}
[ $# = 1 ] || trap 'rm -rf "$folder"' EXIT

# build NAME SOURCE COMMAND...: the package, in a clone of that name and of that repository's last commit.
build() {
  local to=$folder/$1 source=$2
  shift 2
  mkdir -p "$to"
  git init -q "$to"
  git -C "$to" fetch -q "$source" HEAD
  git -C "$to" reset -q --hard FETCH_HEAD
  (cd "$to" && "$@" ./dev package)
}

build first "$clone" env TZ=UTC LC_ALL=C.UTF-8
umask 077
build a/longer/name/for/the/second "$folder/first" env TZ=Asia/Kathmandu LC_ALL=POSIX CCACHE_DISABLE=1
first=$(echo "$folder"/first/build/release/*.deb) second=$(echo "$folder"/a/longer/name/for/the/second/build/release/*.deb)
if cmp "$first" "$second"; then
  echo "Both are the same: $(sha256sum <"$first" | cut -c1-64) $(basename "$first")"
else
  for package in "$first" "$second"; do dpkg-deb --raw-extract "$package" "$package.files"; done
  diff -rq "$first.files" "$second.files"
  exit 1
fi
