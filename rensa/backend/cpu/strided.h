// Between arrays of any stride and dtype and the contiguous values that kernels want: readers and
// writers of flat ranges of a view.
#pragma once

#include <cstdint>

#include "rensa/backend/cpu/kernels.h"
#include "rensa/core/axes.h"

namespace rensa::host {

/// Values that are brought to the kernels at a time where they cannot be used in place: a few
/// buffers of them fit the first-level cache.
inline constexpr std::int64_t kChunk = 1024;
/// The bytes of the widest value type.
inline constexpr std::int64_t kMaxValueSize = 16;
struct alignas(64) Scratch {
  char bytes[kChunk * kMaxValueSize];
};

/// Where element `index`, counted in C order, of a view lies, relative to its data.
std::int64_t offset_of(const ArrayView& view, std::int64_t index);

/// The elements of a view in C order, as values of one type.
class Reader {
 public:
  Reader() = default;
  /// With `truth` a value is 0 or 1: what a condition is read as.
  Reader(const ArrayView& view, ComputeType type, bool truth = false);

  /// Whether every range is used in place.
  bool is_direct() const { return in_place_ && view_.ndim() <= 1; }
  /// Whether all elements are one element.
  bool is_constant() const { return constant_; }
  /// Whether values are read as 0 or 1.
  bool is_truth() const { return truth_; }
  /// The same view at another place.
  void move_to(char* data) { view_.data = data; }
  /// What is read, its axes collapsed.
  const ArrayView& view() const { return view_; }
  /// Elements [begin, begin + n): in place, else converted into `scratch` (n <= kChunk).
  const void* read(std::int64_t begin, std::int64_t n, Scratch& scratch) const;

 private:
  void load_run(std::int64_t n, const char* source, std::int64_t stride, char* values) const;

  ArrayView view_;  // axes collapsed
  LoadKernel load_ = nullptr;
  std::int64_t value_size_ = 0;
  std::int64_t inner_ = 1, inner_stride_ = 0;
  ComputeType type_ = ComputeType::f32;
  bool in_place_ = false;  // a run along the last axis can be used as it is
  bool constant_ = false, truth_ = false;
};

/// The other way: values into the elements of a view.
class Writer {
 public:
  Writer() = default;
  Writer(const ArrayView& view, ComputeType type);

  bool is_direct() const { return in_place_ && view_.ndim() <= 1; }
  /// Where to put the values of [begin, begin + n): in place, else `scratch`, which write() then
  /// takes (n <= kChunk).
  void* target(std::int64_t begin, std::int64_t n, Scratch& scratch) const;
  /// Stores what lies in `values`; nothing to do when they are in place already.
  void write(std::int64_t begin, std::int64_t n, const void* values) const;

 private:
  ArrayView view_;
  StoreKernel store_ = nullptr;
  std::int64_t value_size_ = 0;
  std::int64_t inner_ = 1, inner_stride_ = 0;
  bool in_place_ = false;
};

}  // namespace rensa::host
