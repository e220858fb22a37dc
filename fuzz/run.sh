#!/usr/bin/env bash
# Builds the fuzz targets and runs them, two at a time: about a minute in all, or with DIVAN_LONG=1 five minutes each.
# fuzz/run.sh [--seconds N] [TARGET...]      N: for each target
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

AT_ONCE=2
SECONDS_IN_ALL=50
SECONDS_EACH_LONG=300

out=build/fuzz
corpus=$out/corpus
crashes=$out/crashes

build() {
  export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
  [ -e $out/build.ninja ] || cmake --preset fuzz -Wno-dev >/dev/null
  ninja -C $out "$@" | { grep -vE '^ninja: (Entering|no work)' || true; }
}

# fuzz TARGET SECONDS: prints one line about the run or, after a failure, the end of its log and the input.
fuzz() {
  local name=$1 seconds=$2 log=$out/$1.log status=0 artifact
  local dictionary=()
  mkdir -p "$corpus/$name" "$crashes"
  [ ! -e "fuzz/corpus/$name.dict" ] || dictionary=("-dict=fuzz/corpus/$name.dict")
  local command=("$out/${name}_fuzz" -timeout=10 -rss_limit_mb=2048)
  local seeds=("fuzz/corpus/$name")
  [ -d "${seeds[0]}" ] || seeds=()
  "${command[@]}" -max_total_time="$seconds" -max_len=4096 -print_final_stats=1 "${dictionary[@]}" \
    -artifact_prefix="$crashes/$name-" "$corpus/$name" "${seeds[@]}" >"$log" 2>&1 || status=$?
  if [ $status = 0 ]; then
    printf '%-16s %9s runs, %5s edges, %4s inputs in the corpus\n' "$name" \
      "$(awk '/number_of_executed_units/ {print $2}' "$log")" \
      "$(grep -o 'cov: [0-9]*' "$log" | tail -1 | cut -c6-)" "$(find "$corpus/$name" -type f | wc -l)"
    return
  fi
  tail -40 "$log" | cut -c1-300
  artifact=$(sed -n 's/.*Test unit written to //p' "$log" | tail -1)
  if [ -n "$artifact" ]; then
    cp "$log" "$artifact.log"
    echo "${command[*]} $artifact" | tee "$artifact.repeat"
  fi
  echo "fuzz: $name FAILED: ${artifact:-see $log}"
  return 1
}

if [ "${1:-}" = --one ]; then
  fuzz "$2" "$3"
  exit
fi

seconds=
if [ "${1:-}" = --seconds ]; then seconds=$2; shift 2; fi
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  for source in fuzz/*_fuzz.cc; do targets+=("$(basename "$source" _fuzz.cc)"); done
fi
if [ "${DIVAN_LONG:-0}" = 1 ]; then
  seconds=${seconds:-$SECONDS_EACH_LONG}
else
  seconds=${seconds:-$((SECONDS_IN_ALL * AT_ONCE / ${#targets[@]}))}
fi

build "${targets[@]/%/_fuzz}"
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
# Settings files are synced for every input.
if [ -d /dev/shm ]; then export TMPDIR=/dev/shm; fi
printf '%s\n' "${targets[@]}" | xargs -P "$AT_ONCE" -I '{}' fuzz/run.sh --one '{}' "$seconds" || {
  echo "fuzz: faults were found: $crashes"
  exit 1
}
