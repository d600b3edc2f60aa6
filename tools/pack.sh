#!/usr/bin/env bash
# Packs the programs of a build with the shared libraries they need, stripped, so that they run on a
# machine of the same kind that has none of these: RENSA_BUILD_DIR=OUT ./dev gpu all
#   tools/pack.sh BUILD_DIR OUT
# A build with -D BUILD_SHARED_LIBS=ON packs smallest.
set -euo pipefail
build=$1 out=$2
programs=()
while IFS= read -r -d '' program; do
  programs+=("${program#"$build"/}")
done < <(find "$build/tests" "$build/examples" "$build/benchmarks" -type f -executable \
  -not -path '*/CMakeFiles/*' -not -path '*/consumer/*' -not -name '*.so*' -print0 2>/dev/null)
((${#programs[@]})) || { echo "no programs in $build" >&2; exit 1; }

rm -rf "$out"
mkdir -p "$out/lib"
for program in "${programs[@]}"; do
  mkdir -p "$out/$(dirname "$program")"
  strip -o "$out/$program" "$build/$program"
done
# What the tests read.
cp -r "$(dirname "$0")/../tests/answers" "$out/tests/answers"
cp "$(dirname "$0")/../docs/waiting.md" "$out/tests/answers"
[[ ! -d $build/tests/fake_nvml ]] || cp -rL "$build/tests/fake_nvml" "$out/tests"
# All but what every system of this kind has in a version of its own, and NVIDIA's.
(cd "$build" && ldd "${programs[@]}") | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u |
  grep -vE '/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s|mvec)\.so|lib(cud|cublas|cufft|curand|cusolver|cusparse|cupti|nccl|nv))' |
  while IFS= read -r library; do
    strip -o "$out/lib/$(basename "$library")" "$library"
  done
du -sh "$out"
