// What tests of patterns share: arrays to work on, and a program recorded, rewritten and run.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "rensa/array/random_basics.h"
#include "rensa/autograd/function_node.h"
#include "rensa/functions/functions.h"
#include "rensa/graph/plan.h"
#include "rensa/graph/rewrite.h"
#include "rensa/operations/elementwise/elementwise.h"
#include "tests/testing.h"

namespace rensa::testing {

inline std::string bytes_of(const Array& array) {
  Array host = array.ascontiguous().get();
  return {static_cast<const char*>(host.data()), static_cast<std::size_t>(host.nbytes())};
}

/// Whether products in float32, or as two TF32 numbers, may go by large tiles there: of Hopper and
/// later, but for GPUs of desktops, which have less shared memory. In TF32 those of Hopper alone.
inline bool has_large_tiles(Device device, UseTf32 tf32 = false) {
  if (device.is_cpu()) return false;
  int capability = std::stoi(device.compute_capability());
  return tf32 ? capability == 90 : capability >= 90 && capability < 120;
}

struct Case {
  Device device;
  Dtype dtype;
  Shape shape;
  bool channels_last;

  std::string describe() const {
    return device.str() + " " + std::string(dtype_name(dtype)) + " " + shape.str() +
           (channels_last ? " channels last" : "");
  }
  Array numbers() const {
    Array x = xp::random::normal(0, 1, shape, float64, device).astype(dtype);
    return channels_last && x.ndim() > 2 ? F::channels_last(x) : x;
  }
  /// One for each channel.
  Array weights(double mean, Dtype of = float32) const {
    return xp::random::normal(mean, 1, {shape[1]}, float64, device).astype(of);
  }
};

/// Whole vectors of channels, none, more elements than a thread has at once, one place, no places;
/// on a GPU also sums that many blocks share.
inline std::vector<Case> cases() {
  std::vector<Case> all;
  for (Device device : test_devices()) {
    std::vector<Shape> shapes = {{2, 16, 5, 5}, {3, 7, 4, 4}, {4, 24, 17, 13},
                                 {2, 3, 1, 1},  {5, 11},      {300, 40}};
    if (device.is_cuda() && !quick()) {
      shapes.insert(shapes.end(),
                    {{20, 6, 100, 60}, {3, 96, 64, 64}, {40000, 40}, {2, 2056, 3, 3}});
    }
    for (Dtype dtype : {float32, float16, bfloat16, float64}) {
      for (const Shape& shape : shapes) {
        for (bool last : {false, true}) {
          if (!last || shape.ndim() > 2) all.push_back({device, dtype, shape, last});
        }
      }
    }
  }
  return all;
}

using Program = std::function<Arrays()>;

class Rewritten {
 public:
  /// Records the program, rewrites the list and runs it; what it gives is held against what the
  /// program gave.
  explicit Rewritten(const Program& program) {
    ThreadState::current().recorder = &recording_;
    Arrays results = program();
    ThreadState::current().recorder = nullptr;
    recorded = recording_.operations.size();
    std::vector<std::string> want;
    for (const Array& result : results) want.push_back(bytes_of(result));
    rewrite(recording_);
    Plan plan = make_plan(recording_, true);
    for (Array& result : results) result.fill(0);
    for (const auto& operation : recording_.operations) launch(*operation);
    for (std::size_t k = 0; k < want.size(); ++k) {
      EXPECT_TRUE(bytes_of(results[k]) == want[k]) << "result " << k;
    }
  }

  std::size_t left() const { return recording_.operations.size(); }
  template <class Kind, class Is> int count(const Is& is) const {
    int found = 0;
    for (const auto& operation : recording_.operations) {
      auto* kind = dynamic_cast<const Kind*>(operation.get());
      found += kind && is(*kind);
    }
    return found;
  }
  int count_elementwise(Ufunc ufunc) const {
    using operations::Elementwise;
    return count<Elementwise>([&](const Elementwise& op) { return op.ufunc == ufunc; });
  }

  std::size_t recorded;  // operations

 private:
  Recording recording_;
};

}  // namespace rensa::testing
