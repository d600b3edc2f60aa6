// L::Dropout and L::SimplifiedDropconnect; L::Flatten.
#pragma once

#include <cstdint>
#include <optional>

#include "rensa/array/index.h"
#include "rensa/links/link.h"

namespace rensa {
namespace links {

/// F::dropout, for a Sequential.
class Dropout : public Chain<Dropout> {
 public:
  explicit Dropout(double ratio = 0.5);
  void members(Visitor&) override {}
  Variable operator()(const Variable& x) const;

  double ratio;  // the share that is dropped
};

/// The axes from `start_axis` on as one; (n, k) of a batch.
class Flatten : public Chain<Flatten> {
 public:
  explicit Flatten(int start_axis = 1);
  void members(Visitor&) override {}
  /// Throws ShapeError where x has not so many axes.
  Variable operator()(const Variable& x) const;

 private:
  int start_axis_;
};

struct SimplifiedDropconnectLinkOptions {
  double ratio = 0.5;             // the share of weights that are dropped
  bool nobias = false;            // no b
  Initializer initialW = {};      // HeNormal(1 / sqrt(2)) when left out
  Initializer initial_bias = {};  // 0 when left out
};

/// F::simplified_dropconnect with parameters W (out, in) and b (out,); the input size may be
/// `none`. Nothing is dropped when config().train is off.
class SimplifiedDropconnect : public Chain<SimplifiedDropconnect> {
 public:
  SimplifiedDropconnect(None, std::int64_t out,
                        const SimplifiedDropconnectLinkOptions& options = {});
  SimplifiedDropconnect(std::int64_t in, std::int64_t out,
                        const SimplifiedDropconnectLinkOptions& options = {});
  void members(Visitor& v) override { v("W", W), v("b", b); }

  /// With the weights of `mask`, (n, out, in) or (out, in), in place of those drawn.
  Variable operator()(const Variable& x, const std::optional<Array>& mask = std::nullopt,
                      bool use_batchwise_mask = true) const;

  Parameter W, b;
  double ratio;  // the share of weights that are dropped

 private:
  std::int64_t out_;
};

}  // namespace links

// Made once, in noise_links.cc: what users' files would compile again for each of their own.
extern template class Chain<links::Dropout>;
extern template class Chain<links::Flatten>;

namespace L = links;

}  // namespace rensa
