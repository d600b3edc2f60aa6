// Operations that index arrays steer: gathers and scatters.
#pragma once

#include "rensa/core/index_mode.h"
#include "rensa/device/kind.h"

namespace rensa::operations {

/// How an array is indexed. Its leading `count` axes are steered by one integer array each, all of
/// one shape (stride 0 where broadcast): the list. What it is read into, or written from, has the
/// list's axes in front.
///
/// `along` < 0: the array's other axes, in order, are the listed array's other axes.
/// `along` >= 0 (with count 1): they are the list's own axes without number `along`, so that each
/// index stays at its place but for that axis (take_along_axis).
struct IndexedBy {
  int count = 0;
  Operand indices[kMaxNdim];
  int axes[kMaxNdim] = {};  // how errors number the steered axes
  Shape list_shape;
  int along = -1;
  IndexMode mode = IndexMode::raise;

  template <class V> void fields(V& v) {
    for (int i = 0; i < count; ++i) v.read(indices[i]), v.number(axes[i]);
    v.number(along, mode);
  }
};

/// out[i, ...] = in[indices[i]..., ...], of one dtype. When an index is out of range, part of out
/// may have been written.
struct Gather final : KindOf<Gather> {
  explicit Gather(const char* name = "getitem") : KindOf(name) {}
  IndexedBy by;
  Operand in, out;

  template <class V> void fields(V& v) { v.read(in), by.fields(v), v.write(out); }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

enum class ScatterMode : unsigned char { assign, add, max, min };

/// out[indices[i]..., ...] = in[i, ...] in the order of i, so that the last of equal indices stays;
/// or out is added to, or becomes the greater or the lesser of the two, in that order and rounded
/// each time, so that results are repeatable. (A GPU combines the occurrences of one index by
/// kScatterRun at a time.) in and out are of one dtype; out shares no memory with in and the
/// indices. Nothing is written on the CPU when an index is out of range; a GPU leaves that one out.
struct Scatter final : KindOf<Scatter> {
  Scatter(const char* name, ScatterMode m) : KindOf(name), mode(m) {}
  ScatterMode mode;
  bool distinct = false;  // no two indices are equal: their order does not matter
  IndexedBy by;
  Operand in, out;

  template <class V> void fields(V& v) {
    v.read(in), by.fields(v), v.write(out);
    v.number(mode, distinct);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
  std::size_t workspace_bytes() const override;
};
inline constexpr std::int64_t kScatterRun = 1024;

/// A Gather's or Scatter's arrays taken apart: what goes over the list and what over the elements
/// of a row, axes merged where they lie behind one another, in C order.
struct IndexPlan {
  ArrayView list;               // the listed array's list axes
  ArrayView along;              // the indexed array's share in them: stride 0 but with `along`
  ArrayView indices[kMaxNdim];  // over the list
  ArrayView listed, indexed;    // the other axes
  int count = 0;
  IndexMode mode;
  std::int64_t extents[kMaxNdim] = {}, strides[kMaxNdim] = {};  // of the steered axes

  IndexPlan(const IndexedBy& by, const ArrayView& indexed_array, const ArrayView& listed_array);
};

}  // namespace rensa::operations
