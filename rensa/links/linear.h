// L::Linear: a fully connected layer.
#pragma once

#include <cstdint>

#include "rensa/array/index.h"
#include "rensa/links/link_hook.h"

namespace rensa {
namespace links {

struct LinearOptions {
  bool nobias = false;            // no b
  Initializer initialW = {};      // LeCunNormal when left out
  Initializer initial_bias = {};  // 0 when left out
};

/// y = x @ W.T + b. W is (out, in), b (out,). The input size may be left out, or be `none`: W is
/// then made at the first call.
class Linear : public Chain<Linear>, public Hookable<Linear> {
 public:
  explicit Linear(std::int64_t out, const LinearOptions& options = {});
  Linear(None, std::int64_t out, const LinearOptions& options = {});
  Linear(std::int64_t in, std::int64_t out, const LinearOptions& options = {});
  void members(Visitor& v) override;

  /// The first `n_batch_axes` axes of x count samples; the others are flattened. Throws ShapeError,
  /// DtypeError, DeviceError.
  Variable operator()(const Variable& x, int n_batch_axes = 1) const;

  Parameter W, b;

 private:
  std::int64_t out_;
};

}  // namespace links

// Made once, in linear.cc: what users' files would compile again for each of their own.
extern template class Chain<links::Linear>;

namespace L = links;

}  // namespace rensa
