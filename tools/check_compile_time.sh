#!/usr/bin/env bash
# Checks that users' files with <rensa/rensa.h> and a model, their own and a published one, compile each
# within a limit of CPU seconds (the best of up to twenty compiles counts: a shared machine is now fast, now slow).
#   tools/check_compile_time.sh [LIMIT]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
limit=${1:-3}
TIMEFORMAT='%U %S'
for file in tests/consumer/network.cc examples/classify/classify.cc; do
  best=
  for _ in {1..20}; do
    seconds=$({ time "${CXX:-g++}" -std=c++20 -O2 -I. -Iexamples -c "$file" -o /dev/null; } 2>&1 |
      awk 'END {print $1 + $2}')
    if [[ -z $best ]] || awk "BEGIN {exit !($seconds < $best)}"; then best=$seconds; fi
    if awk "BEGIN {exit !($best <= $limit)}"; then break; fi
  done
  echo "$file compiles in $best s of CPU time, the limit is $limit s"
  awk "BEGIN {exit !($best <= $limit)}"
done
