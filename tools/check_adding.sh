#!/usr/bin/env bash
# Checks that the diffs in docs/ work: makes a copy of the tree in a temporary folder, applies all of
# them, builds it and runs the tests. Takes as long as a build; needs git.
#   tools/check_adding.sh [PRESET]
# PRESET is one of CMakePresets.json: cpu when left out, cuda where nvcc is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${1:-cpu}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/tree" "$folder/diffs"
tar -c --exclude=./build --exclude=./.git . | tar -x -C "$folder/tree"
python3 tools/check_docs.py --write-diffs "$folder/diffs"
cd "$folder/tree"
for diff in "$folder"/diffs/*.diff; do
  echo "applying $(basename "$diff"):"
  git apply --stat "$diff"
  git apply "$diff"
done

source tools/ccache.sh
cmake --preset "$preset" -D RENSA_BUILD_BENCHMARKS=OFF -D RENSA_BUILD_EXAMPLES=OFF
cmake --build "build/$preset" --target array_tests rensa_tests
for program in array_tests rensa_tests; do
  "build/$preset/tests/$program" --gtest_brief=1
done
