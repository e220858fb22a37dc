#!/usr/bin/env bash
# Runs a command, by default ./dev test, for the last commit in a root file system of another release of Debian or Ubuntu, which is made
# if there is none. Needs root, debootstrap, and the network for packages.
#   test/release.sh SUITE ROOT [COMMAND...]    bookworm, trixie, noble
set -euo pipefail
[ $# -ge 2 ] || { echo "usage: test/release.sh SUITE ROOT [COMMAND...]" >&2; exit 2; }
if [ "${IN_NAMESPACE-}" = '' ]; then
  # Mounts and processes of this script end with it.
  exec env IN_NAMESPACE=1 unshare --mount --pid --fork --kill-child "$0" "$@"
fi
suite=$1 root=$2
shift 2
[ $# -gt 0 ] || set -- ./dev test
components=main from=()
if [ "$suite" = noble ]; then
  # Debian's debootstrap lacks Ubuntu's newer releases, which have one script for all. It checks signatures only if the package
  # ubuntu-archive-keyring is installed.
  components=main,universe from=(http://archive.ubuntu.com/ubuntu /usr/share/debootstrap/scripts/gutsy)
fi
[ -e "$root/etc/os-release" ] || debootstrap --variant=minbase --include=ca-certificates --components=$components "$suite" "$root" "${from[@]}"
# What git ignores, such as builds of earlier runs, stays.
git init -q "$root/src"
git -C "$root/src" fetch -q "$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")" HEAD
git -C "$root/src" reset -q --hard FETCH_HEAD
mount -t proc proc "$root/proc"
mount --rbind --make-rslave /dev "$root/dev"
# Names are resolved, and certificates trusted, as on this machine.
cp --remove-destination /etc/resolv.conf "$root/etc/resolv.conf"
certificates=/etc/ssl/certs/ca-certificates.crt
cp $certificates "$root$certificates"
exec chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive NODE_EXTRA_CA_CERTS=$certificates \
  bash -c 'cd /src && exec "$@"' bash "$@"
