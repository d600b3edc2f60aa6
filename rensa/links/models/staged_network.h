// StagedNetwork: what networks of published stages have in common.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rensa/links/link.h"

namespace rensa {
namespace links {

/// A stage of a network: "conv1", "pool5".
struct Stage {
  std::string name;  // unique in a network
  /// What it does with the result of the stage in front.
  std::function<Variable(const Variable&)> call;
  std::string after = {};  // the stage whose result it takes; the one before it when left out
};

/// What stages give, by their names.
using Activations = std::map<std::string, Variable>;

/// Calls the stages that `wanted` are and need. Throws ValueError, with all names, for one that is
/// none.
Activations run_stages(const std::vector<Stage>& stages, const Variable& x,
                       const std::vector<std::string>& wanted);
/// What the stage in front of "prob" gives.
Variable run_to_scores(const std::vector<Stage>& stages, const Variable& x);

/// A network whose results in between have published names. `stages()` of Derived lists them;
/// "prob" is the softmax of the scores.
template <class Derived> class StagedNetwork : public Chain<Derived> {
 public:
  /// The scores (n, classes), for F::softmax_cross_entropy. Chainer's gives what "prob" does.
  Variable operator()(const Variable& x) const { return run_to_scores(self().stages(), x); }
  /// What these stages give: model(x, {"pool5", "prob"}); no other is called but what they need.
  Activations operator()(const Variable& x, const std::vector<std::string>& layers) const {
    return run_stages(self().stages(), x, layers);
  }
  /// The names of the stages, in their order.
  std::vector<std::string> available_layers() const {
    std::vector<std::string> names;
    for (const Stage& stage : self().stages()) names.push_back(stage.name);
    return names;
  }

 private:
  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

/// The mean over the places of x (n, channels, h, w): (n, channels).
Variable global_average_pooling_2d(const Variable& x);

}  // namespace links

namespace L = links;

}  // namespace rensa
