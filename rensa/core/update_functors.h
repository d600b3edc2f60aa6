// The functors of update_rules.def. Read by the host compiler, nvcc and NVRTC.
#pragma once

#include "rensa/core/functors.h"

namespace rensa {

namespace update {
#define RENSA_UPDATE_RULE(name, states, ...)                                             \
  struct name {                                                                          \
    static constexpr int num_states = states;                                            \
    template <class V> static RENSA_FN void apply(V& p, V g, V& s0, V& s1, const V* h) { \
      (void)s0, (void)s1;                                                                \
      __VA_ARGS__                                                                        \
    }                                                                                    \
  };
#include "rensa/core/update_rules.def"
#undef RENSA_UPDATE_RULE
}  // namespace update

}  // namespace rensa
