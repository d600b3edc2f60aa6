// GradientSum: the same sum of gradients on every replica.
#pragma once

#include <vector>

#include "rensa/links/link.h"

namespace rensa::training {

/// Replaces the gradients of replicas by their sums: bit-equal on each, added in the order of the
/// replicas. A parameter without a gradient counts as zero where another replica has one. Its steps
/// follow each other: collect() for every replica, fill_missing() for every replica, sum() once,
/// give_back() for every replica; those for the replicas may run in threads of theirs.
class GradientSum {
 public:
  /// One replica on each of the devices, where sum() is one operation or a few for each if one
  /// kernel reaches them all, and goes by copies to the first one else.
  explicit GradientSum(std::vector<Device> devices);

  void collect(int member, const Link& model);
  void fill_missing(int member);
  void sum();
  void give_back(int member);

 private:
  struct Gradient {
    ParameterRef parameter;
    bool present;  // before the sum
    Array array;   // undefined where there is none
  };
  std::vector<Gradient>& own(int member) { return gradients_[static_cast<std::size_t>(member)]; }
  void sum_by_copies();

  std::vector<Device> devices_;
  std::vector<std::vector<Gradient>> gradients_;  // by member, who alone writes its own
};

}  // namespace rensa::training
