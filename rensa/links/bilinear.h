// L::Bilinear: a layer of the products of two inputs' elements.
#pragma once

#include <cstdint>

#include "rensa/links/link.h"

namespace rensa {
namespace links {

struct BilinearOptions {
  bool nobias = false;            // without the terms that are linear in one input, and b
  Initializer initialW = {};      // LeCunNormal when left out
  Initializer initialV1 = {};     // LeCunNormal when left out
  Initializer initialV2 = {};     // LeCunNormal when left out
  Initializer initial_bias = {};  // 0 when left out
};

/// F::bilinear with parameters W (left, right, out), V1 (left, out), V2 (right, out) and b (out,).
class Bilinear : public Chain<Bilinear> {
 public:
  Bilinear(std::int64_t left, std::int64_t right, std::int64_t out,
           const BilinearOptions& options = {});
  void members(Visitor& v) override { v("W", W), v("V1", V1), v("V2", V2), v("b", b); }

  /// Throws as F::bilinear.
  Variable operator()(const Variable& e1, const Variable& e2) const;

  Parameter W, V1, V2, b;
};

}  // namespace links

namespace L = links;

}  // namespace rensa
