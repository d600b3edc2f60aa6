// A small model for the tests of training.
#pragma once

#include "rensa/data/data.h"
#include "rensa/functions/functions.h"
#include "rensa/links/links.h"
#include "rensa/links/reporter.h"

namespace rensa::testing {

/// loss = mean((w * x - t)^2), reported.
struct Line : Chain<Line> {
  Parameter w{Initializer(0.0), {}};
  void members(Visitor& v) override { v("w", w); }
  Variable operator()(const Variable& x, const Variable& t) const {
    Variable d = x * w - t;
    Variable loss = (d * d).mean();
    report({{"loss", loss}}, *this);
    return loss;
  }
};

/// t = 2 x, x = 1 .. n.
inline datasets::TupleDataset line_data(std::int64_t n) {
  Array x = xp::arange(1, n + 1, 1, float32, cpu());
  return datasets::TupleDataset(x, x * 2.f);
}

}  // namespace rensa::testing
