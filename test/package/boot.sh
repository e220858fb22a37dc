#!/usr/bin/env bash
# Installs the package in a virtual machine with systemd, and tests the service there (in_machine.sh). Needs root, debootstrap,
# qemu-system-x86 and the network, which the machine does not have. It is emulated, which takes minutes.
#   test/package/boot.sh PACKAGE.deb SUITE [ROOT]    ROOT: a root file system of the release, which is copied
set -euo pipefail
# shellcheck source-path=SCRIPTDIR
. "$(dirname "${BASH_SOURCE[0]}")/root.sh"

cp "$package" "$root/package.deb"
logged inside apt-get update
logged inside apt-get install -y -qq --no-install-recommends systemd-sysv dbus linux-image-cloud-amd64 curl jq /package.deb
rm "$root/usr/sbin/policy-rc.d"

install -m 755 "$(dirname "${BASH_SOURCE[0]}")/in_machine.sh" "$root/usr/local/sbin/in_machine"
cat >"$root/etc/systemd/system/in_machine.service" <<'UNIT'
[Unit]
After=multi-user.target
[Service]
ExecStart=/usr/local/sbin/in_machine
ExecStopPost=/usr/bin/systemctl poweroff --no-block
StandardOutput=tty
StandardError=inherit
TTYPath=/dev/ttyS0
[Install]
WantedBy=multi-user.target
UNIT
inside systemctl enable -q in_machine
inside systemctl mask -q serial-getty@ttyS0
echo divan >"$root/etc/hostname"
umount "$root/proc"

say "a virtual machine"
truncate -s 4G "$folder/disk"
logged mke2fs -q -t ext4 -d "$root" "$folder/disk"
timeout 1200 qemu-system-x86_64 -accel tcg -cpu Westmere -smp 2 -m 2G -nic none -display none -no-reboot -serial "file:$folder/console" \
  -kernel "$root/vmlinuz" -initrd "$root/initrd.img" -append 'root=/dev/vda rw console=ttyS0 quiet systemd.show_status=false' \
  -drive "file=$folder/disk,if=virtio,format=raw,cache=unsafe" 2>"$folder/log" || { tail -n 20 "$folder/log" "$folder/console" >&2; fail "the virtual machine"; }
cat "$folder/console"
grep -q '^== passed' "$folder/console"
