// GradientSum: the same sum of gradients on every replica.
#pragma once

#include <memory>
#include <vector>

#include "rensa/links/link.h"
#include "rensa/operations/all_reduce/all_reduce.h"
#include "rensa/training/replica_team.h"

namespace rensa::training {

/// Used by the members of a team, each for its own model, within a job.
class GradientSum {
 public:
  explicit GradientSum(const std::vector<Device>& devices);

  /// Replaces the gradients of `model`, the member's, by their sums over all members: bit-equal on
  /// each. A parameter without a gradient counts as zero where another member has one.
  void operator()(ReplicaTeam& team, int member, Link& model);

 private:
  struct Gradient {
    ParameterRef parameter;
    bool present;  // before the sum; read by all members after the first barrier
    Array array;   // undefined where there is none
  };
  void fill_missing(int member);
  void sum_by_copies();
  void sum_by_nccl(int member);

  std::vector<std::vector<Gradient>> gradients_;  // by member; each writes its own between barriers
  std::unique_ptr<cuda::AllReduceGroup> nccl_;    // null: by copies
};

}  // namespace rensa::training
