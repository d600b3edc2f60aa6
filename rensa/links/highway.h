// L::Highway: a layer with a gate around it.
#pragma once

#include <cstdint>
#include <functional>

#include "rensa/links/linear.h"

namespace rensa {
namespace links {

struct HighwayOptions {
  bool nobias = false;                                     // no biases
  std::function<Variable(const Variable&)> activate = {};  // F::relu when left out
  Initializer init_Wh = {}, init_Wt = {};                  // LeCunNormal when left out
  Initializer init_bh = {};                                // 0 when left out
  Initializer init_bt = -1;                                // below 0: layers begin by passing x on
};

/// y = activate(plain(x)) * t + x * (1 - t), t = sigmoid(transform(x)): Srivastava et al., "Highway
/// networks".
class Highway : public Chain<Highway> {
 public:
  explicit Highway(std::int64_t in_out, const HighwayOptions& options = {});
  void members(Visitor& v) override { v("plain", plain), v("transform", transform); }

  Variable operator()(const Variable& x) const;

  Linear plain, transform;
  std::function<Variable(const Variable&)> activate;
};

}  // namespace links

namespace L = links;

}  // namespace rensa
