#!/usr/bin/env bash
# Tests the service of the installed package under systemd: boot.sh runs it in a virtual machine.
set -euo pipefail
export SYSTEMD_COLORS=0 SYSTEMD_URLIFY=0
say() { echo "== $*"; }
fail() { echo "FAILED: $*"; journalctl -u divan --no-pager -n 30 -o cat; systemctl status divan --no-pager -n 0 || true; exit 1; }
expect() { [ "$2" = "$3" ] || fail "$1: $2; expected $3"; }
of_service() { systemctl show -P "$1" divan; }
request() { curl -sS -u "$(cat /var/lib/divan/admin)" "http://127.0.0.1:5984$1" "${@:2}"; }
# wait_for TEXT COMMAND...: until the command succeeds, five minutes at most.
wait_for() {
  local what=$1
  shift
  for ((i = 0; i < 300; ++i)); do
    ! "$@" >/dev/null 2>&1 || return 0
    sleep 1
  done
  fail "waited in vain for $what"
}
# The service runs, and its main process is not that one.
runs_without() { [ "$(of_service ActiveState)" = active ] && [ "$(of_service MainPID)" != "$1" ] && request /_up | grep -q ok; }
drop_in() { mkdir -p /etc/systemd/system/divan.service.d && printf '[Service]\n%s\n' "$@" >/etc/systemd/system/divan.service.d/test.conf && systemctl daemon-reload; }

say "$(. /etc/os-release && echo "$PRETTY_NAME"), $(systemctl --version | head -n 1)"
wait_for 'the service' runs_without 0
expect 'enabled' "$(systemctl is-enabled divan)" enabled
expect 'the user' "$(stat -c %U "/proc/$(of_service MainPID)")" divan
expect 'the status' "$(of_service StatusText)" 'Listening on http://127.0.0.1:5984'

say 'a database, and a view of it, which divan-js computes in the sandbox of the service'
expect 'a database' "$(request /shop -X PUT | jq .ok)" true
expect 'a design document' "$(request /shop/_design/d -X PUT -d '{"views":{"v":{"map":"function (doc) { emit(doc.n) }"}}}' | jq .ok)" true
expect 'a document' "$(request /shop/a -X PUT -d '{"n":1}' | jq .ok)" true
expect 'its row' "$(request /shop/_design/d/_view/v | jq -c '[.rows[].key]')" '[1]'

say 'SIGKILL'
process=$(of_service MainPID)
kill -KILL "$process"
wait_for 'the restart' runs_without "$process"
expect 'the document' "$(request /shop/a | jq .n)" 1

say 'a restart by request, which keeps the process'
process=$(of_service MainPID)
starts=$(journalctl -u divan -o cat | grep -c 'listens on')
request /_node/_local/_restart -X POST >/dev/null
wait_for 'another start' sh -c "[ \$(journalctl -u divan -o cat | grep -c 'listens on') -gt $starts ]"
wait_for 'the service' runs_without 0
expect 'the process' "$(of_service MainPID)" "$process"

say 'a process that does not run any longer: the watchdog'
drop_in WatchdogSec=3 TimeoutAbortSec=3
systemctl restart divan
process=$(of_service MainPID)
kill -STOP "$process"
wait_for 'the restart' runs_without "$process"
rm -r /etc/systemd/system/divan.service.d
systemctl daemon-reload
systemctl restart divan
expect 'the document' "$(request /shop/a | jq .n)" 1

say 'a JavaScript process that uses more memory than the service may: the server replaces it'
drop_in MemoryMax=400M MemorySwapMax=0 'Environment=DIVAN_DIVAN_JS_MEMORY_BYTES=4294967296 DIVAN_COUCHDB_OS_PROCESS_TIMEOUT=600000'
systemctl restart divan
process=$(of_service MainPID)
expect 'a database' "$(request /large -X PUT | jq .ok)" true
request /large/_design/d -X PUT -d '{"views":{"v":{"map":"function (doc) { const all = []; for (;;) all.push(new Array(100000).fill(doc.n)) }"}}}' >/dev/null
request /large/a -X PUT -d '{"n":1}' >/dev/null
request '/large/_design/d/_view/v?update=lazy' >/dev/null
wait_for 'the kernel to end it' sh -c 'dmesg | grep -q "oom-kill:.*divan-js"'
expect 'the process' "$(of_service MainPID) $(of_service ActiveState)" "$process active"
expect 'the view' "$(request /shop/_design/d/_view/v | jq -c '[.rows[].key]')" '[1]'
rm -r /etc/systemd/system/divan.service.d
systemctl daemon-reload
systemctl restart divan

say 'a backup by the timer'
install -m 600 /dev/stdin /etc/divan/backup.env <<<"DIVAN_USER=$(cat /var/lib/divan/admin)"
systemctl enable -q --now divan-backup.timer
systemctl start divan-backup.service || fail 'the backup'
[ "$(find /var/lib/divan-backup -name 'divan-*.backup' -size +0 -user divan | wc -l)" = 1 ] || fail "no backup: $(ls -l /var/lib/divan-backup)"

say 'a removal, and another installation'
apt-get remove -y -qq divan >/dev/null
expect 'the timer' "$(systemctl is-active divan-backup.timer)" inactive
drop_in ExecStart= ExecStart=/bin/false
dpkg -i /package.deb >/tmp/dpkg.log 2>&1 || fail "the installation of a service that does not start: $(cat /tmp/dpkg.log)"
grep -q 'divan.service did not start' /tmp/dpkg.log || fail "no reason: $(cat /tmp/dpkg.log)"
rm -r /etc/systemd/system/divan.service.d
systemctl mask -q divan
dpkg -i /package.deb >/tmp/dpkg.log 2>&1 || fail "the installation of a service that is masked: $(cat /tmp/dpkg.log)"
systemctl unmask -q divan
dpkg -i /package.deb >/dev/null
wait_for 'the service' runs_without 0
expect 'the document' "$(request /shop/a | jq .n)" 1
expect 'the timer' "$(systemctl is-active divan-backup.timer)" active

say 'the end'
systemctl stop divan
expect 'the result' "$(of_service Result) $(of_service ExecMainStatus)" 'success 0'
expect 'units that failed' "$(systemctl list-units --state=failed --plain --no-legend)" ''
say passed
