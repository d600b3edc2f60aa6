// GradientSum: the same sum of gradients on every replica.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "rensa/links/link.h"
#include "rensa/training/early_sum.h"

namespace rensa::training {

/// Replaces the gradients of replicas by their sums: bit-equal on each, added in the order of the
/// replicas. A parameter without a gradient counts as zero where another replica has one. Its steps
/// follow each other: collect() for every replica, fill_missing() for every replica, sum() once,
/// give_back() for every replica; those for the replicas may run in threads of theirs. Where the
/// replicas' backward passes run at the same time, plan_early() comes first and early() for every
/// replica, and finish_early() after sum(): what can be summed while they run is.
class GradientSum {
 public:
  /// One replica on each of the devices, where sum() is one operation or a few for each if one
  /// kernel reaches them all, and goes by copies to the first one else.
  /// `pack_bytes`: of what is summed early, at once.
  GradientSum(std::vector<Device> devices, std::int64_t pack_bytes);

  void plan_early(const Link& model);
  /// Who is to be told of the gradients of a backward pass, which finds the replica's cleared but
  /// for those of earlier parts of its batch; null for nobody.
  GradientWatch* early(int member, const Link& model);
  void finish_early(int member);

  void collect(int member, const Link& model);
  void fill_missing(int member);
  void sum();
  void give_back(int member);

 private:
  struct Gradient {
    /// What is summed at once.
    struct Part {
      bool present;  // whether backward made it; else it is zeros, or undefined where all lack it
      Array array;
    };
    ParameterRef parameter;
    Part main, late;  // late: what came after the main part had been taken for an early sum
  };
  std::vector<Gradient>& own(int member) { return gradients_[static_cast<std::size_t>(member)]; }
  void add_operands(std::size_t i, Gradient::Part Gradient::*part,
                    std::vector<std::vector<Operand>>& arrays);
  void sum_by_copies();

  std::vector<Device> devices_;
  std::int64_t pack_bytes_;
  std::vector<std::vector<Gradient>> gradients_;  // by member, who alone writes its own
  // From the first plan_early() on, of several devices that share memory; it has nothing of a sum
  // that was not planned.
  std::optional<EarlySum> early_;
};

}  // namespace rensa::training
