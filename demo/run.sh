#!/usr/bin/env bash
# The demo: a database of all Debian packages, whose indexes build themselves. Called by ./dev demo [--exit | --live].
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

divan=build/release/divan
work=build/demo
lines=$work/packages.jsonl
exit_at_end=0 live=0
case ${1:-} in
  '') ;;
  --exit) exit_at_end=1 ;;
  --live) live=1 ;;
  *) echo "demo: unknown flag $1" >&2; exit 2 ;;
esac

step() { printf '\n\033[1m%s\033[0m\n' "$*"; }

# Values of a member in the small, flat JSON answers of the server.
member() { sed -n "s/.*\"$1\":\"\\{0,1\\}\\([^,\"}]*\\).*/\\1/p" | sed -n 1p; }

get() { curl -sSf -u "$user" "$url/$1"; }

# Rows of a grouped view, the largest value first: "VALUE KEY".
largest() { sed -n 's/^{"key":"\(.*\)","value":\([0-9]*\)},\{0,1\}$/\2 \1/p' | sort -rn | sed -n "1,$1p"; }

start_server() {
  rm -rf "$work/data"
  mkdir -p "$work"
  user=admin:$(od -An -N12 -tx1 /dev/urandom | tr -d ' \n')
  local port=5984
  if (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null; then port=0; fi
  DIVAN_LOG_FILE=$work/server.log "$divan" serve --data-dir "$work/data" --port $port --admin "$user" >"$work/server.out" &
  server=$!
  trap 'kill $server 2>/dev/null; wait $server 2>/dev/null || true' EXIT
  for _ in $(seq 100); do
    url=$(sed -n 's/.*listens on \([^ ]*\).*/\1/p' "$work/server.out")
    [ -n "$url" ] && return
    kill -0 $server 2>/dev/null || { cat "$work/server.out" "$work/server.log" >&2; exit 1; }
    sleep 0.1
  done
  echo "The server did not start; see $work/server.log" >&2
  exit 1
}

make_lines() {
  mkdir -p "$work"
  [ -s "$lines" ] && return
  if [ -z "$(apt-cache dumpavail | head -n 1)" ]; then
    echo "The package index is empty: fetching it ..."
    if [ "$(id -u)" = 0 ]; then apt-get update -qq; else sudo apt-get update -qq; fi
  fi
  apt-cache dumpavail | LC_ALL=C awk -f demo/packages.awk >"$lines.new"
  mv "$lines.new" "$lines"
}

# A progress bar for the build of the design document's views, as the server reports it.
show_build() {
  local info done total width=30 filled bar tasks
  while :; do
    info=$(get packages/_design/packages/_info)
    tasks=$(get _active_tasks)
    done=$(member changes_done <<<"$tasks")
    total=$(member total_changes <<<"$tasks")
    if [ -n "$done" ] && [ "${total:-0}" -gt 0 ]; then
      filled=$((width * done / total))
      bar=$(printf '%*s' "$filled" '' | tr ' ' '#')$(printf '%*s' $((width - filled)) '' | tr ' ' .)
      if [ -t 2 ]; then
        printf '\r\033[KIndexing [%s] %3d %%  %d of %d changes' "$bar" $((100 * done / total)) "$done" "$total" >&2
      else
        printf 'Indexing %3d %%  %d of %d changes\n' $((100 * done / total)) "$done" "$total" >&2
      fi
    fi
    case $info in *'"total":0}'*) break ;; esac
    sleep 0.3
  done
  [ -t 2 ] && printf '\r\033[K' >&2
  return 0
}

step "1. The package index as JSON lines"
make_lines
echo "$(wc -l <"$lines") packages, $(du -h "$lines" | cut -f 1) ($lines)"

step "2. A server, and the packages loaded into it"
start_server
echo "$url, data in $work/data, log in $work/server.log"
"$divan" load packages "$lines" --url "$url" --user "$user"

step "3. A design document with three views and a full-text index; nobody queries them"
began=$(date +%s%N)
curl -sSf -u "$user" -X PUT "$url/packages/_design/packages" --data-binary @demo/design.json
show_build
echo "ken noticed, and the views were built in $((($(date +%s%N) - began) / 1000000)) ms."

view=packages/_design/packages/_view
step "4. Answers"
echo "Packages by section (_count), the largest sections:"
get "$view/by_section?group=true" | largest 5 | sed 's/^/  /'
echo "Installed size of section games in KiB (_stats):"
get "$view/size_by_section?key=%22games%22" | sed -n 's/^{"key":null,"value":\(.*\)}$/  \1/p'
echo "The packages that most others depend on (reverse dependencies, _count):"
get "$view/reverse_dependencies?group=true" | largest 5 | sed 's/^/  /'
echo "Packages that depend on sqlite3:"
get "$view/reverse_dependencies?key=%22sqlite3%22&reduce=false&limit=5" | sed -n 's/^{"id":"\([^"]*\)".*/  \1/p'

echo "Packages about strategy games, with a search of their descriptions, the largest first:"
"$divan" search packages packages/text '"strategy game" OR wargame*' --sort -size --limit 5 --url "$url" --user "$user" |
  sed 's/^/  /'

step "5. The rows of /_db_updates"
get _db_updates | sed -n 's/^\({.*}\),\{0,1\}$/  \1/p'

step "6. The jobs that ran"
"$divan" jobs --url "$url" --user "$user"
"$divan" jobs list views --url "$url" --user "$user" | cut -c 1-160

[ $exit_at_end = 1 ] && exit 0
step "The server continues to run (Ctrl-C ends it). Its dashboard:"
auth=${url/\/\//\/\/$user@}
cat <<TXT
  $url/_utils/
  name admin, password ${user#admin:}

URLs to try:
  $auth/packages
  $auth/$view/by_section?group=true
  $auth/packages/_changes?feed=continuous&since=now
  $auth/_db_updates?feed=continuous
  $auth/_active_tasks
  $auth/_jobs
  $auth/_node/_local/_prometheus
TXT
trap - EXIT
if [ $live = 1 ]; then
  echo
  echo "Documents change, a trigger adds jobs for these changes, and two workers do them."
  node demo/live.mjs "$url" "$user" &
  load=$!
  trap 'kill $load $server' INT TERM
  wait $load || true
else
  trap 'kill $server' INT TERM
fi
wait $server || true
