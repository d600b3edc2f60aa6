#!/usr/bin/env bash
# Checks that ccache gives no precompiled header that is older than a header in it: compiles a small
# program, edits a comment of its header and the program, and compiles both from nothing once more.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export CCACHE_DIR=$folder/cache
source "$here/ccache.sh"
command -v ccache >/dev/null || { echo "there is no ccache"; exit; }

cat >CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.22)
project(edited CXX)
add_executable(edited edited.cc)
target_include_directories(edited PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_precompile_headers(edited PRIVATE <width.h>)
target_compile_options(edited PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
EOF
for word in one two; do
  printf '#pragma once\nstruct Width {\n  int bits;  // %s\n};\n' "$word" >width.h
  printf '#include "width.h"\nint %s;\nint main() { return Width{0}.bits; }\n' "$word" >edited.cc
  touch --date="2020-01-01" width.h edited.cc  # ccache does not trust a file of this second
  rm -rf build
  cmake -G Ninja -B build . >/dev/null
  cmake --build build
done
