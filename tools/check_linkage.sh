#!/usr/bin/env bash
# Checks that the given programs need no library of NVIDIA's to start.
set -euo pipefail
fault=0
for program in "$@"; do
  # ldd follows the libraries' own needs too; unresolved names show as "not found".
  if listed=$(ldd "$program" | grep -E 'lib(cud|cublas|cufft|curand|cusolver|cusparse|cupti|nccl|nv)'); then
    echo "$program needs to start:"
    echo "$listed"
    fault=1
  fi
done
exit "$fault"
