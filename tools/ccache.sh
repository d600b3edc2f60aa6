# Sourced by scripts that build: has CMake compile through ccache, where there is one.
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
  export CCACHE_SLOPPINESS=pch_defines,time_macros  # what it asks for where headers are precompiled
  # To #pragma once a header with an edited comment is another header, so what was compiled is looked
  # up by the bytes of the files that it includes, not by what the preprocessor makes of them. What
  # was kept without this setting stays apart.
  export CCACHE_DEPEND=true CCACHE_NAMESPACE=depend
  # What one build has compiled serves the others, of other checkouts too.
  export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=true
fi
