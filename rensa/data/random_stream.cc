// RandomStream, over Philox.
#include "rensa/data/random_stream.h"

#include <fmt/format.h>

#include <cmath>

#include "rensa/core/error.h"
#include "rensa/core/random_integers.h"

namespace rensa {

std::uint64_t RandomStream::bits() {
  bool second = drawn_ % 2 != 0;
  if (!second) words_ = philox(seed_, drawn_ / 2);
  ++drawn_;
  return std::uint64_t{words_.word[second ? 2 : 0]} << 32 | words_.word[second ? 3 : 1];
}

double RandomStream::uniform() {
  std::uint64_t word = bits();
  return uniform_double(static_cast<unsigned>(word >> 32), static_cast<unsigned>(word));
}

double RandomStream::uniform(double low, double high) {
  double x = low + (high - low) * uniform();
  return x == high ? std::nextafter(high, low) : x;  // the sum may round up
}

std::int64_t RandomStream::integers(std::int64_t low, std::int64_t high) {
  if (high <= low) {
    throw ValueError(fmt::format("RandomStream: no integer is in [{}, {})", low, high));
  }
  auto start = static_cast<std::uint64_t>(low);
  unsigned long long span = static_cast<std::uint64_t>(high) - start;
  return static_cast<std::int64_t>(start + scaled(static_cast<unsigned long long>(bits()), span));
}

double RandomStream::normal(double mean, double std) {
  std::uint64_t word = bits();
  double open = open_double(static_cast<unsigned>(word >> 32), static_cast<unsigned>(word));
  constexpr double kTwoPi = 6.283185307179586476925286766559;
  return mean + std * std::sqrt(-2 * std::log(open)) * std::cos(kTwoPi * uniform());
}

std::uint64_t derived_seed(std::uint64_t seed, std::uint64_t place, std::uint64_t group) {
  // The upper half of the counter keeps clear of what orders and streams of this seed draw.
  PhiloxWords words = philox(seed, place, ~group);
  return std::uint64_t{words.word[0]} << 32 | words.word[1];
}

}  // namespace rensa
