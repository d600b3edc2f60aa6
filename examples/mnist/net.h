// The network of the MNIST examples.
#pragma once

#include <rensa/rensa.h>

/// Three fully connected layers; the input size is inferred at the first call.
struct MLP : rensa::Chain<MLP> {
  rensa::L::Linear l1, l2, l3;
  MLP(std::int64_t units, std::int64_t out) : l1(units), l2(units), l3(out) {}
  void members(rensa::Visitor& v) override {
    v("l1", l1);
    v("l2", l2);
    v("l3", l3);
  }
  rensa::Variable operator()(const rensa::Variable& x) const {
    using namespace rensa;
    return l3(F::relu(l2(F::relu(l1(x)))));
  }
};
