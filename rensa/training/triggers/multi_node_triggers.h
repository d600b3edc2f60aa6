// Triggers that fire alike on all ranks of a group.
#pragma once

#include "rensa/array/communicator.h"
#include "rensa/training/triggers/triggers.h"

namespace rensa::triggers {

/// EarlyStoppingTrigger that decides by the mean over ranks of what each has reported; a rank that
/// has not reported the key does not count. Asked by all ranks at the same time. Rank 0 alone is
/// `verbose`.
class MultiNodeEarlyStoppingTrigger : public EarlyStoppingTrigger {
 public:
  /// Throws as EarlyStoppingTrigger does.
  explicit MultiNodeEarlyStoppingTrigger(const Communicator& communicator,
                                         EarlyStoppingOptions options = {});
};

}  // namespace rensa::triggers
