// The guide's net, which several benchmarks train.
#pragma once

#include <rensa/rensa.h>

namespace rensa::benchmarks {

/// MLP 784-1000-1000-10.
struct MLP : Chain<MLP> {
  static constexpr std::int64_t kIn = 784, kUnits = 1000, kClasses = 10;
  L::Linear l1{kIn, kUnits}, l2{kUnits, kUnits}, l3{kUnits, kClasses};
  void members(Visitor& v) override { v("l1", l1), v("l2", l2), v("l3", l3); }
  Variable operator()(const Variable& x) const { return l3(F::relu(l2(F::relu(l1(x))))); }
};

}  // namespace rensa::benchmarks
