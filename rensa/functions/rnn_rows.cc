// Rows with zeros behind them, and weights joined.
#include "rensa/functions/rnn_rows.h"

#include <algorithm>
#include <utility>

#include "rensa/array/creation.h"
#include "rensa/array/internal.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/indexing_functions.h"

namespace rensa::functions {

namespace {

using detail::Blocks;
using detail::WeightGroup;
using rensa::detail::slice_along;

template <class List> auto& at(List& list, int k) { return list[static_cast<std::size_t>(k)]; }

Blocks reversed(const Blocks& b) { return {b.count, b.to, b.from}; }

/// `count` elements of each block, from the first-th on: (..., blocks, count).
Array part_of_blocks(const Array& a, std::int64_t blocks, std::int64_t first, std::int64_t count) {
  int last = a.ndim() - 1;
  std::int64_t length = a.shape(last) / std::max<std::int64_t>(blocks, 1);
  if (blocks == 1) return slice_along(a, last, first, count);
  Shape shape = a.shape(), strides = a.view().strides;
  std::int64_t step = strides[last];
  shape[last] = blocks, strides[last] = step * length;
  shape.push_back(count), strides.push_back(step);
  return rensa::detail::new_view(a, first * step, shape, strides);
}

/// Copies that go together.
class Copies {
 public:
  explicit Copies(Array zeros) : zeros_(std::move(zeros)) {}

  void resize(const Array& in, const Array& out, const Blocks& b) {
    std::int64_t both = std::min(b.from, b.to);
    pairs_.push_back({part_of_blocks(in, b.count, 0, both), part_of_blocks(out, b.count, 0, both)});
    if (b.to > b.from) clear(part_of_blocks(out, b.count, b.from, b.to - b.from));
  }
  void clear(const Array& out) {
    if (out.size() == 0) return;
    if (zeros_.dtype() != out.dtype()) zeros_ = zeros_.astype(out.dtype());
    pairs_.push_back({slice_along(zeros_, 0, 0, out.shape(-1)).broadcast_to(out.shape()), out});
  }
  void run(const char* name) const { rensa::detail::copy_parts(name, pairs_); }

 private:
  Array zeros_;
  std::vector<rensa::detail::CopyPair> pairs_;
};

/// Its gradient is the way back.
class ResizeBlocks final : public FunctionNode {
 public:
  ResizeBlocks(std::vector<Blocks> blocks, Array zeros)
      : FunctionNode("resize_blocks"), blocks_(std::move(blocks)), zeros_(std::move(zeros)) {}

  Arrays forward(const Arrays& in) override {
    Arrays out;
    Copies copies(zeros_);
    for (std::size_t i = 0; i < in.size(); ++i) {
      check_same_device(name(), in[0], in[i]);
      Shape shape = in[i].shape();
      shape[shape.ndim() - 1] = blocks_[i].count * blocks_[i].to;
      out.push_back(xp::empty(shape, in[i].dtype(), in[i].device()));
      copies.resize(in[i], out[i], blocks_[i]);
    }
    copies.run(name());
    return out;
  }

  Variables backward(const Indexes&, const Variables& gy) override {
    std::vector<Blocks> back;
    for (const Blocks& b : blocks_) back.push_back(reversed(b));
    return detail::resize_blocks(gy, back, zeros_);
  }

 private:
  std::vector<Blocks> blocks_;
  Array zeros_;
};

class JoinWeights final : public FunctionNode {
 public:
  JoinWeights(std::vector<WeightGroup> groups, Array zeros)
      : FunctionNode("join_weights"), groups_(std::move(groups)), zeros_(std::move(zeros)) {}

  Arrays forward(const Arrays& in) override {
    Arrays out;
    Copies copies(zeros_);
    for (const WeightGroup& group : groups_) {
      const Array& first = at(in, group.members[0]);
      Dtype dtype = first.dtype();
      for (int k : group.members) {
        check_same_device(name(), in[0], at(in, k));
        dtype = promote_types(dtype, at(in, k).dtype());
      }
      Shape shape{group.rows * static_cast<std::int64_t>(group.members.size())};
      if (first.ndim() == 2) shape.push_back(group.columns.count * group.columns.to);
      out.push_back(xp::empty(shape, dtype, first.device()));
      std::int64_t begin = 0;
      for (int k : group.members) {
        std::int64_t rows = at(in, k).shape(0);
        Blocks columns = first.ndim() == 2 ? group.columns : Blocks{1, rows, rows};
        copies.resize(at(in, k), slice_along(out.back(), 0, begin, rows), columns);
        copies.clear(slice_along(out.back(), 0, begin + rows, group.rows - rows));
        begin += group.rows;
      }
    }
    copies.run(name());
    return out;
  }

  // Each gradient has memory of its own, as a leaf's has to: one operation instead of a copy each.
  Variables backward(const Indexes&, const Variables& gy) override {
    bool twice = config().enable_backprop;
    Variables gx(inputs().size());
    Copies copies(zeros_);
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (!gy[g].defined()) continue;
      std::int64_t begin = 0;
      for (int k : groups_[g].members) {
        const VariableNode& x = *at(inputs(), k);
        std::int64_t rows = x.shape[0];
        Blocks columns = x.shape.ndim() == 2 ? reversed(groups_[g].columns) : Blocks{1, rows, rows};
        if (twice) {
          Variable part = get_item(gy[g], {Slice(begin, begin + rows)});
          at(gx, k) = cast(detail::resize_blocks({part}, {columns}, zeros_)[0], x.dtype);
        } else {
          at(gx, k) = constant(xp::empty(x.shape, x.dtype, x.device));
          copies.resize(slice_along(gy[g].array(), 0, begin, rows), at(gx, k).array(), columns);
        }
        begin += groups_[g].rows;
      }
    }
    copies.run(name());
    return gx;
  }

 private:
  std::vector<WeightGroup> groups_;
  Array zeros_;
};

}  // namespace

Variables detail::resize_blocks(const Variables& xs, const std::vector<Blocks>& blocks,
                                const Array& zeros) {
  Variables changing, result = xs;
  std::vector<Blocks> changes;
  auto changes_at = [&](std::size_t i) {
    return xs[i].defined() && blocks[i].from != blocks[i].to;
  };
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (changes_at(i)) changing.push_back(xs[i]), changes.push_back(blocks[i]);
  }
  if (changing.empty()) return result;
  Variables changed = apply<ResizeBlocks>(changing, changes, zeros);
  for (std::size_t i = 0, next = 0; i < xs.size(); ++i) {
    if (changes_at(i)) result[i] = changed[next++];
  }
  return result;
}

Variables detail::join_weights(const Variables& all, const std::vector<WeightGroup>& groups,
                               const Array& zeros) {
  return apply<JoinWeights>(all, groups, zeros);
}

}  // namespace rensa::functions
