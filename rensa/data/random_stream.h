// RandomStream: random numbers for one example, or for one epoch's order.
#pragma once

#include <cstdint>

#include "rensa/core/philox.h"

namespace rensa {

/// Random numbers that follow from `seed` alone: a small value without a lock, so that examples may
/// draw in any thread and at any time. For many numbers at once there is
/// xp::random::default_rng(random.bits()).
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed) : seed_(seed) {}
  /// 64 random bits.
  std::uint64_t bits();
  /// Of [0, 1).
  double uniform();
  /// Of [low, high).
  double uniform(double low, double high);
  /// Of [low, high). Throws ValueError where there is none.
  std::int64_t integers(std::int64_t low, std::int64_t high);
  /// Of [0, high).
  std::int64_t integers(std::int64_t high) { return integers(0, high); }
  double normal(double mean = 0, double std = 1);  // of the normal distribution

 private:
  std::uint64_t seed_, drawn_ = 0;  // numbers of 64 bits
  PhiloxWords words_{};
};

/// The seed of a thing that is number (`place`, `group`) of what `seed` stands for.
std::uint64_t derived_seed(std::uint64_t seed, std::uint64_t place, std::uint64_t group);

}  // namespace rensa
