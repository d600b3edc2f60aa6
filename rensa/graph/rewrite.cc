// The rewrites of a recorded list: the patterns, then joined chains.
#include "rensa/graph/rewrite.h"

#include "rensa/graph/patterns.h"

namespace rensa {

JoinedChains rewrite(Recording& recording) {
  RecordedList list(recording);
  for (const Pattern& pattern : patterns()) {
    for (std::size_t i = list.size(); i-- > 0;) {
      if (!list.is_taken_out(i)) pattern.apply(list, i);
    }
  }
  list.close();
  // A CPU's recordings are for tests, and a compiler's vector functions may round otherwise.
  return recording.is_on_gpus() ? join_chains(recording) : JoinedChains();
}

}  // namespace rensa
