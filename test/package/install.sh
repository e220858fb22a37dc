#!/usr/bin/env bash
# Installs, upgrades, downgrades, removes and purges the package in a root file system of a Debian release. Needs root, debootstrap
# and the network. Nothing outside of the root file system changes, which is removed at the end.
#   test/package/install.sh PACKAGE.deb SUITE [ROOT]    ROOT: a root file system of the release, which is copied
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "${BASH_SOURCE[0]}")/root.sh"

install_package() { cp "$1" "$root/package.deb"; inside apt-get install -y -qq "${@:2}" /package.deb >"$root/apt.log" 2>&1; }
version() { inside dpkg-query -W -f '${Version}' divan; }
expect() { [ "$2" = "$3" ] || fail "$1: $2; expected $3"; }

# The package with another version.
with_version() {
  local to=$1 files
  files=$(mktemp -d -p "$root")
  dpkg-deb --raw-extract "$package" "$files"
  sed -i "s/^Version: .*/Version: $to/" "$files/DEBIAN/control"
  sed -i "s/^new=.*/new=$to/" "$files/DEBIAN/preinst"
  dpkg-deb --root-owner-group -Znone --build "$files" "$root/$to.deb" >/dev/null
}

# Without systemd: the command of the unit, as its user.
start() {
  local command
  command=$(sed -n 's/^ExecStart=//p' "$root/lib/systemd/system/divan.service")
  : >"$root/server.log" # not that of an earlier start
  # Not by inside(), whose process would be the shell's.
  # shellcheck disable=SC2086
  chroot "$root" env -i PATH=/usr/bin setpriv --reuid divan --regid divan --init-groups --no-new-privs --bounding-set=-all $command --port 0 >"$root/server.log" 2>&1 &
  server=$!
  for ((i = 0; i < 600; ++i)); do
    url=$(sed -n 's/.* listens on \(http:[^ ]*\).*/\1/p' "$root/server.log")
    [ -z "$url" ] || return 0
    kill -0 $server 2>/dev/null || break
    sleep 0.1
  done
  cat "$root/server.log" >&2
  fail "the server did not start"
}
stop() { kill -TERM $server; wait $server || fail "the server ended with status $?"; }
tool() { inside divan "$@" --url "$url" --data-dir /var/lib/divan; }

say install
install_package "$package" || { cat "$root/apt.log" >&2; fail "apt-get install"; }
expect 'the data directory' "$(inside stat -c '%U:%G %a' /var/lib/divan)" 'divan:divan 700'
expect 'the settings' "$(inside stat -c '%U:%G %a' /etc/divan/divan.ini)" 'root:divan 640'
expect 'the service' "$(inside systemctl is-enabled divan)" enabled
start
expect 'the administrator' "$(inside stat -c '%U %a' /var/lib/divan/admin)" 'divan 600'
printf '{"_id":"a","n":1}\n{"_id":"b","n":2}\n' | tool load shop - --quiet
tool status | grep '^shop ' >/dev/null || fail "no database in the status"
stop

say upgrade
inside systemctl disable --quiet divan
newer=99.0.0
with_version $newer
install_package "$root/$newer.deb" || { cat "$root/apt.log" >&2; fail "the upgrade"; }
expect 'the version' "$(version)" $newer
expect 'the service, which was disabled' "$(inside systemctl is-enabled divan)" disabled
inside systemctl enable --quiet divan
start
tool status | grep -E '^shop +2' >/dev/null || fail "the documents are lost: $(tool status)"
stop
expect 'the settings after the upgrade' "$(inside stat -c '%U:%G %a' /etc/divan/divan.ini)" 'root:divan 640'
rm "$root/etc/divan/divan.ini"
newest=99.0.1
with_version $newest
install_package "$root/$newest.deb" || { cat "$root/apt.log" >&2; fail "the upgrade without a settings file"; }
[ ! -e "$root/etc/divan/divan.ini" ] || fail "the settings file that was removed is there again"
newer=$newest
printf '; no settings\n' >"$root/etc/divan/divan.ini"
inside chgrp divan /etc/divan/divan.ini

say 'downgrade, which is refused'
expect_refusal() {
  if install_package "$package" --allow-downgrades; then fail "the downgrade was not refused"; fi
  grep -q "divan: the store in /var/lib/divan is of version $newer" "$root/apt.log" || { cat "$root/apt.log" >&2; fail "no reason"; }
}
expect_refusal
expect 'the version' "$(version)" $newer
start
stop

say remove
inside apt-get remove -y -qq divan >/dev/null 2>&1
inside sh -c 'mkdir -p /etc/systemd/system/timers.target.wants && ln -s /usr/lib/systemd/system/divan-backup.timer /etc/systemd/system/timers.target.wants/'
[ ! -e "$root/usr/bin/divan" ] || fail "the program is still there"
[ -e "$root/var/lib/divan/store" ] && [ -e "$root/etc/divan/divan.ini" ] || fail "data or settings were removed"
expect_refusal

say 'install again, and purge'
install_package "$root/$newer.deb" || fail "the installation after a removal"
expect 'the service' "$(inside systemctl is-enabled divan)" enabled
start
tool status | grep -E '^shop +2' >/dev/null || fail "the documents are lost"
stop
touch "$root/etc/divan/backup.env"
# A file system of its own.
mount --bind "$root/var/lib/divan" "$root/var/lib/divan"
inside apt-get purge -y -qq divan >"$root/apt.log" 2>&1 || { cat "$root/apt.log" >&2; fail "apt-get purge"; }
umount "$root/var/lib/divan"
rmdir "$root/var/lib/divan" || fail "purge leaves $(ls -A "$root/var/lib/divan")"
[ ! -e "$root/etc/divan" ] || fail "purge leaves $(ls -A "$root/etc/divan")"
[ -z "$(find "$root/etc/systemd" -name 'divan*')" ] || fail "purge leaves $(find "$root/etc/systemd" -name 'divan*')"
say "passed: $(basename "$package") on $suite"
