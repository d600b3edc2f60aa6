// L::Maxout, L::PReLU and L::Swish: activations with parameters.
#pragma once

#include <cstdint>

#include "rensa/links/linear.h"

namespace rensa {
namespace links {

struct MaxoutOptions {
  Initializer initialW = {};     // of (out * pool, in); LeCunNormal when left out
  Initializer initial_bias = 0;  // of (out * pool,)
  bool nobias = false;           // no b
};

/// The greatest of each `pool` outputs of a Linear: Goodfellow et al., "Maxout networks". The input
/// size may be `none`.
class Maxout : public Chain<Maxout> {
 public:
  Maxout(std::int64_t in, std::int64_t out, int pool, const MaxoutOptions& options = {});
  Maxout(None, std::int64_t out, int pool, const MaxoutOptions& options = {});
  void members(Visitor& v) override { v("linear", linear); }

  Variable operator()(const Variable& x) const;

  Linear linear;  // its outputs are those of which the greatest is taken

 private:
  int pool_;
};

/// F::prelu with a parameter W of the given shape, that of x's axes behind the first one or of the
/// first few of them, `init` at first.
class PReLU : public Chain<PReLU> {
 public:
  explicit PReLU(const Shape& shape = {}, Initializer init = 0.25);
  void members(Visitor& v) override { v("W", W); }

  Variable operator()(const Variable& x) const;

  Parameter W;
};

/// F::swish with a parameter beta of the given shape, as PReLU's W; of `none` it is made at the
/// first call, one value for each element of a sample.
class Swish : public Chain<Swish> {
 public:
  explicit Swish(const Shape& beta_shape, Initializer beta_init = 1.0);
  explicit Swish(None, Initializer beta_init = 1.0);
  void members(Visitor& v) override { v("beta", beta); }

  /// Throws ShapeError as F::swish, and for an x without axes where beta is to be made.
  Variable operator()(const Variable& x) const;

  Parameter beta;
};

}  // namespace links

namespace L = links;

}  // namespace rensa
