# For scripts with the arguments PACKAGE.deb SUITE [ROOT]: a root file system of the release, or a copy of ROOT, in which no service is
# started. Sets package, suite, folder and root; the folder is removed at the end. Needs root, debootstrap and the network.
[ $# = 2 ] || [ $# = 3 ] || { echo "usage: $0 PACKAGE.deb SUITE [ROOT]" >&2; exit 2; }
if [ "${IN_NAMESPACE-}" = '' ]; then
  # Mounts and processes of the script end with it.
  exec env IN_NAMESPACE=1 unshare --mount --pid --fork --kill-child "$0" "$@"
fi
package=$1 suite=$2
folder=$(mktemp -d -t divan-package.XXXXXX)
root=$folder/root
trap 'set +e; umount "$root/proc" "$root/var/lib/divan" 2>/dev/null; rm -rf --one-file-system "$folder"' EXIT

say() { echo "== $*"; }
fail() { echo "FAILED: $*" >&2; exit 1; }
# Runs a command, and shows the end of its output if it fails.
logged() { "$@" >"$folder/log" 2>&1 || { tail -n 20 "$folder/log" >&2; fail "$*"; }; }
inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"; }

say "a root file system of $suite"
mkdir "$root"
if [ $# = 3 ]; then
  cp -a --one-file-system "$3/." "$root"
else
  logged debootstrap --variant=minbase "$suite" "$root"
fi
mount -t proc proc "$root/proc"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" && chmod +x "$root/usr/sbin/policy-rc.d"
