// L::Bilinear.
#include "rensa/links/bilinear.h"

#include <fmt/format.h>

#include "rensa/core/error.h"
#include "rensa/functions/connection.h"
#include "rensa/links/initializers.h"

namespace rensa::links {

namespace {

Parameter made(const Initializer& given, const Initializer& otherwise, const Shape& shape,
               const char* name) {
  Parameter parameter(given ? given : otherwise, shape);
  parameter.body()->name = name;
  return parameter;
}

}  // namespace

Bilinear::Bilinear(std::int64_t left, std::int64_t right, std::int64_t out,
                   const BilinearOptions& options) {
  if (left < 0 || right < 0 || out < 0) {
    throw ValueError(fmt::format("Bilinear: sizes {}, {} and {}", left, right, out));
  }
  Initializer normal = initializers::LeCunNormal();
  W = made(options.initialW, normal, {left, right, out}, "W");
  if (options.nobias) return;
  V1 = made(options.initialV1, normal, {left, out}, "V1");
  V2 = made(options.initialV2, normal, {right, out}, "V2");
  b = made(options.initial_bias, 0, {out}, "b");
}

Variable Bilinear::operator()(const Variable& e1, const Variable& e2) const {
  return F::bilinear(e1, e2, W, V1, V2, b);
}

}  // namespace rensa::links
