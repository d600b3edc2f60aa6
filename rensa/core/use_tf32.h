// How products of float32 go over a GPU's tensor cores.
#pragma once

namespace rensa {

/// Whether they may round their inputs to TF32, which keeps 11 of float32's 24 digits. False: none
/// is rounded. UseTf32::x3(): an input may be taken as two TF32 numbers, of which three products
/// make one; how far that is from float32 says docs/mixed_precision.md.
class UseTf32 {
 public:
  constexpr UseTf32() = default;
  constexpr UseTf32(bool rounded) : value_(rounded ? 1 : 0) {}
  static constexpr UseTf32 x3() {
    UseTf32 made;
    made.value_ = 2;
    return made;
  }
  /// Whether inputs are rounded.
  constexpr operator bool() const { return value_ == 1; }
  /// Whether they may be taken as two TF32 numbers.
  constexpr bool is_x3() const { return value_ == 2; }
  friend constexpr bool operator==(UseTf32 a, UseTf32 b) = default;

 private:
  unsigned char value_ = 0;
};

}  // namespace rensa
