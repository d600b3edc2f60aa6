// JointUpdate: how several optimizers, each with a model of its own, make one update together.
#pragma once

#include <memory>
#include <vector>

#include "rensa/optimizers/update_rule.h"

namespace rensa {

class GradientWatch;
class ParameterRef;
struct UpdateCall;

/// Optimizers one on each rank of a group, whose models are to stay equal or are parts of one. Each
/// update asks its methods in the order in which they stand here.
class JointUpdate {
 public:
  virtual ~JointUpdate() = default;
  /// Whether all ranks have the same parameters, and hooks of single ones.
  virtual bool of_equal_models() const { return true; }
  /// Whether a parameter without a gradient is to count as one whose gradient is zero.
  virtual bool fills_zeros() const { return false; }
  /// Who is told of gradients by Optimizer::backward; null for nobody.
  virtual GradientWatch* watch() { return nullptr; }
  /// Given the parameters that are updated; of equal models the same on every rank.
  virtual void begin(const std::vector<ParameterRef>& parameters) = 0;
  /// Whether this rank updates the parameter; if not, no state is kept for it here.
  virtual bool owns(const std::shared_ptr<UpdateRule>&) const { return true; }
  /// Makes the gradients, which are this rank's own and bear the loss scale, those of all ranks,
  /// for the parameters that this one updates. Those of the others may stay what they are. Whether
  /// there is to be an update; the same on every rank.
  virtual bool join(const UpdateCall& call) = 0;
  /// The sum over the ranks of a number that is a sum over the parameters that each updates.
  virtual Array total(const Array& own) const { return own; }
  /// After the update: gives all ranks the parameters that this one has updated.
  virtual void share(const UpdateCall&) {}
};

}  // namespace rensa
