#!/usr/bin/env bash
# Checks that a user's file with <rensa/rensa.h> and a model compiles within a limit of CPU seconds
# (the best of three compiles counts).
#   tools/check_compile_time.sh [LIMIT]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
limit=${1:-3}
best=
TIMEFORMAT='%U %S'
for _ in 1 2 3; do
  seconds=$({ time "${CXX:-g++}" -std=c++20 -O2 -I. -c tests/consumer/network.cc -o /dev/null; } 2>&1 |
    awk 'END {print $1 + $2}')
  if [[ -z $best ]] || awk "BEGIN {exit !($seconds < $best)}"; then best=$seconds; fi
done
echo "tests/consumer/network.cc compiles in $best s of CPU time, the limit is $limit s"
awk "BEGIN {exit !($best <= $limit)}"
