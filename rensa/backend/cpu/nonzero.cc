// The positions of an array's non-zero elements on the CPU: counted by tile, then written.
#include <algorithm>
#include <vector>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/device/indexing_operations.h"

namespace rensa {

namespace host {

namespace {

constexpr std::int64_t kTilesATime = 8;

// Calls f(position) for the non-zero elements of each tile, tiles shared out among threads.
template <class Begin, class F>
void for_each_true(const ArrayView& in, const Begin& begin_tile, const F& f) {
  std::int64_t n = in.size();
  Reader reader(in, ComputeType::i64, true);
  parallel_for(
      (n + kTrueTile - 1) / kTrueTile, kTilesATime, [&](std::int64_t first, std::int64_t last) {
        Scratch scratch;
        for (std::int64_t tile = first; tile < last; ++tile) {
          auto state = begin_tile(tile);
          std::int64_t end = std::min(n, (tile + 1) * kTrueTile);
          for (std::int64_t at = tile * kTrueTile; at < end; at += kChunk) {
            std::int64_t count = std::min(kChunk, end - at);
            const auto* truth = static_cast<const std::int64_t*>(reader.read(at, count, scratch));
            for (std::int64_t i = 0; i < count; ++i) {
              if (truth[i] != 0) f(state, at + i);
            }
          }
        }
      });
}

}  // namespace

}  // namespace host

void CountTrue::run_cpu() {
  auto* counts = offsets.view.as<std::int64_t>();
  std::int64_t tiles = offsets.view.size() - 1;
  std::fill_n(counts, tiles + 1, 0);
  host::for_each_true(
      in.view, [&](std::int64_t tile) { return counts + tile; },
      [](std::int64_t* count, std::int64_t) { ++*count; });
  std::int64_t total = 0;
  for (std::int64_t tile = 0; tile <= tiles; ++tile) {
    std::int64_t count = counts[tile];
    counts[tile] = total;
    total += count;
  }
}

void FindTrue::run_cpu() {
  const auto* before = offsets.view.as<std::int64_t>();
  const ArrayView& to = out.view;
  std::int64_t step = to.strides[0];
  int columns = static_cast<int>(to.shape[1]);
  const Shape& shape = in.view.shape;
  host::for_each_true(
      in.view, [&](std::int64_t tile) { return to.data + before[tile] * step; },
      [&](char*& row, std::int64_t position) {
        for (int axis = columns - 1; axis >= 0; --axis) {
          std::int64_t rest = axis > 0 ? position / shape[axis] : 0;
          *reinterpret_cast<std::int64_t*>(row + axis * to.strides[1]) =
              position - rest * (axis > 0 ? shape[axis] : 0);
          position = rest;
        }
        row += step;
      });
}

}  // namespace rensa
