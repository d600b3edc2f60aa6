// What most programs want of random numbers: seeds, uniform and normal ones, integers, orders. The
// rest is in random.h; who includes this alone is not compiled again for a new distribution.
//
// What element i of a call gets follows from (seed, offset, i) alone: not from the threads, the
// grid or the dtype of other calls. Integers and uniforms are bit-equal on the CPU and on GPUs.
// float32 normals lie within 4e-6 standard deviations of each other, mostly 5e-7 (float64: 1e-14),
// what comes of other logarithms within a few units of the last place. Samplers that reject compute
// in double; there a last bit may in principle decide about an attempt.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/device/host_scalar.h"

namespace rensa::xp::random {

/// A distribution's parameter: a number, or an array that broadcasts with the others and the size.
/// Numbers are checked (ValueError); elements of arrays out of their domain give NaN in a floating
/// result and an unspecified value in an integer one.
class Parameter {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> Parameter(T number) : number_(static_cast<double>(number)) {}
  /// Throws ValueError for an undefined array.
  Parameter(const Array& array);

  bool is_array() const { return array_.defined(); }  // whether it is an array
  const Array& array() const { return array_; }       // undefined where it is a number
  double number() const { return number_; }           // where it is no array

 private:
  Array array_;
  double number_ = 0;
};

/// NumPy's `size`: an extent, a shape, or nothing, which stands for the shape of the parameters.
class Size {
 public:
  Size() = default;
  Size(None) {}
  template <std::integral T>
  Size(T extent) : shape_{static_cast<std::int64_t>(extent)}, given_(true) {}
  template <IntegerRange V> Size(const V& shape) : shape_(shape_of(shape)), given_(true) {}
  Size(std::initializer_list<std::int64_t> shape) : shape_(shape), given_(true) {}

  bool given() const { return given_; }  // whether there is one
  /// () where none is given.
  const Shape& shape() const { return shape_; }

 private:
  Shape shape_;
  bool given_ = false;
};

/// The keywords of what draws: normal({.size = {2, 3}, .dtype = float64}), poisson(lam, {.out =
/// a}). (GCC 12 cannot tell {.size = 3} from a shape behind other arguments: there a size alone is
/// given without its name, poisson(lam, 3).)
struct DrawOptions {
  rensa::detail::NamedOptions named = {};
  Size size = {};
  std::optional<Dtype> dtype = {};
  Placement device = {};  // a Generator's own where one draws
  /// Where the numbers go, converted ("same_kind"); what the call returns. It gives what is left
  /// out of size, dtype and device.
  ArrayOption out = {};

  /// What is drawn, of routines that draw `usual` unless told otherwise.
  Size drawn_size() const;
  Dtype drawn_dtype(Dtype usual) const;
  Placement drawn_device() const;
  /// `drawn`, or `out` with its values.
  [[nodiscard]] Array finish(const char* operation, const Array& drawn) const;
};

/// A seed: a number, several (a list or an array of integers, for which it waits), or none: from
/// the system.
class Seed {
 public:
  Seed(None);
  template <std::integral T> Seed(T number) : value_(static_cast<std::uint64_t>(number)) {}
  Seed(std::initializer_list<std::uint64_t> numbers)
      : Seed(std::span<const std::uint64_t>(numbers.begin(), numbers.size())) {}
  Seed(std::span<const std::uint64_t> numbers);
  Seed(const std::vector<std::uint64_t>& numbers) : Seed(std::span<const std::uint64_t>(numbers)) {}
  Seed(const Array& numbers);
  std::uint64_t value() const { return value_; }  // 64 bits made of all numbers

 private:
  std::uint64_t value_ = 0;
};

/// All there is to know of a generator: plain data, which a file can hold.
struct GeneratorState {
  std::uint64_t seed = 0;   // the key of its counters
  std::int64_t offset = 0;  // Philox counters handed out

  /// "philox4x32-10 <seed> <offset>", and back. Throws ValueError for another text.
  std::string str() const;
  static GeneratorState parse(std::string_view text);
  /// uint64 of shape (2,) on the CPU, and back. Throws ShapeError, DtypeError; waits for the
  /// device.
  [[nodiscard]] Array to_array() const;
  static GeneratorState from_array(const Array& state);
  friend bool operator==(const GeneratorState&, const GeneratorState&) = default;
};

/// Seed and position of a generator, as numbers that a captured step asks anew each replay.
struct GeneratorPosition {
  HostScalar seed, offset;  // asked anew by each replay
};

/// Restarts the generators of all devices (or of one) from `seed`, entropy for `none`. Unseeded
/// they start from RENSA_SEED or from entropy.
void seed(const Seed& seed = none);
void seed(const Seed& seed, Device device);
/// State of a device's generator.
GeneratorState get_random_state(Placement device = {});
void set_random_state(const GeneratorState& state, Placement device = {});
/// Takes `count` Philox counters of a device's generator.
GeneratorPosition take(Device device, std::int64_t count);

// The methods of generator(device) of the same names; see there (random.h).
[[nodiscard]] Array random(const Size& size = {}, Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array uniform(const Parameter& low = 0, const Parameter& high = 1,
                            const Size& size = {}, Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array randint(std::int64_t low, std::int64_t high, const Size& size = {},
                            Dtype dtype = int64, Placement device = {});
[[nodiscard]] Array randint(const Array& low, const Array& high, const Size& size = {},
                            Dtype dtype = int64);
[[nodiscard]] Array normal(const Parameter& loc = 0, const Parameter& scale = 1,
                           const Size& size = {}, Dtype dtype = float32, Placement device = {});
[[nodiscard]] Array permutation(std::int64_t n, Placement device = {});
[[nodiscard]] Array permutation(const Array& a, int axis = 0);
void shuffle(const Array& a, int axis = 0);
[[nodiscard]] inline Array randint(std::int64_t high) { return randint(0, high); }
Array randint(std::int64_t low, std::int64_t high, const DrawOptions& options);
inline Array randint(std::int64_t high, const DrawOptions& options) {
  return randint(0, high, options);
}
inline Array random(const DrawOptions& o) {
  return o.finish("random", random(o.drawn_size(), o.drawn_dtype(float32), o.drawn_device()));
}
inline Array uniform(const Parameter& a, const Parameter& b, const DrawOptions& o) {
  return o.finish("uniform",
                  uniform(a, b, o.drawn_size(), o.drawn_dtype(float32), o.drawn_device()));
}
inline Array uniform(const DrawOptions& o) { return uniform(0, 1, o); }
inline Array normal(const Parameter& a, const Parameter& b, const DrawOptions& o) {
  return o.finish("normal", normal(a, b, o.drawn_size(), o.drawn_dtype(float32), o.drawn_device()));
}
inline Array normal(const DrawOptions& o) { return normal(0, 1, o); }

}  // namespace rensa::xp::random
