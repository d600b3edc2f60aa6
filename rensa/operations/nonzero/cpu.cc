// The positions of an array's non-zero elements on the CPU: counted by tile, then written.
#include <algorithm>
#include <complex>
#include <vector>

#include "rensa/backend/cpu/strided.h"
#include "rensa/core/thread_pool.h"
#include "rensa/operations/nonzero/nonzero.h"

namespace rensa::host {

namespace {

using operations::FindTrue;
using operations::kTrueTile;

constexpr std::int64_t kTilesATime = 8;

// Calls f(tile, at, truth, count) for pieces of the tiles, tiles shared out among threads: truth[i]
// is not zero where element at + i is not.
template <class F> void for_each_piece(const ArrayView& in, const F& f) {
  std::int64_t n = in.size();
  bool bytes = itemsize(in.dtype) == 1 && in.is_c_contiguous();
  Reader reader(in, ComputeType::i64, true);
  parallel_for(
      (n + kTrueTile - 1) / kTrueTile, kTilesATime, [&](std::int64_t first, std::int64_t last) {
        Scratch scratch;
        for (std::int64_t tile = first; tile < last; ++tile) {
          std::int64_t end = std::min(n, (tile + 1) * kTrueTile);
          for (std::int64_t at = tile * kTrueTile; at < end; at += kChunk) {
            std::int64_t count = std::min(kChunk, end - at);
            if (bytes) {
              f(tile, at, in.as<const std::uint8_t>() + at, count);
            } else {
              f(tile, at, static_cast<const std::int64_t*>(reader.read(at, count, scratch)), count);
            }
          }
        }
      });
}

// Calls f(found, number, at) for pieces of the result: the positions found[0, number) are those
// from the at-th on.
template <class F> void for_each_found(const FindTrue& op, const F& f) {
  // Where each tile goes on: its pieces follow one another.
  const auto* offsets = op.offsets.view.as<const std::int64_t>();
  std::vector<std::int64_t> next(offsets, offsets + op.offsets.view.size());
  for_each_piece(
      op.in.view, [&](std::int64_t tile, std::int64_t at, const auto* truth, std::int64_t count) {
        std::int64_t found[kChunk + 1], number = 0;
        for (std::int64_t i = 0; i < count; ++i) {  // no branch: truth is hard to foretell
          found[number] = at + i;
          number += truth[i] != 0;
        }
        std::int64_t& written = next[static_cast<std::size_t>(tile)];
        f(found, number, written);
        written += number;
      });
}

template <class T> void take_true_as(const FindTrue& op) {
  const T* in = op.from.view.as<const T>();
  T* out = op.out.view.as<T>();
  for_each_found(op, [&](const std::int64_t* found, std::int64_t number, std::int64_t at) {
    for (std::int64_t i = 0; i < number; ++i) out[at + i] = in[found[i]];
  });
}

void take_true(const FindTrue& op) {
  switch (itemsize(op.out.view.dtype)) {
    case 1: return take_true_as<std::uint8_t>(op);
    case 2: return take_true_as<std::uint16_t>(op);
    case 4: return take_true_as<std::uint32_t>(op);
    case 8: return take_true_as<std::uint64_t>(op);
    default: return take_true_as<std::complex<double>>(op);
  }
}

// Position in C order as coordinates.
void write_coordinates(std::int64_t position, const Shape& shape, char* row, std::int64_t column) {
  for (int axis = shape.ndim() - 1; axis > 0; --axis) {
    std::int64_t rest = position / shape[axis];
    *reinterpret_cast<std::int64_t*>(row + axis * column) = position - rest * shape[axis];
    position = rest;
  }
  *reinterpret_cast<std::int64_t*>(row) = position;
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void CountTrue::run_cpu() {
  auto* counts = offsets.view.as<std::int64_t>();
  std::int64_t tiles = offsets.view.size() - 1;
  std::fill_n(counts, tiles + 1, 0);
  host::for_each_piece(in.view,
                       [&](std::int64_t tile, std::int64_t, const auto* truth, std::int64_t count) {
                         std::int64_t sum = 0;
                         for (std::int64_t i = 0; i < count; ++i) sum += truth[i] != 0;
                         counts[tile] += sum;
                       });
  std::int64_t total = 0;
  for (std::int64_t tile = 0; tile <= tiles; ++tile) {
    std::int64_t count = counts[tile];
    counts[tile] = total;
    total += count;
  }
}

void FindTrue::run_cpu() {
  if (from.present()) return host::take_true(*this);
  const ArrayView& to = out.view;
  std::int64_t step = to.strides[0], column = to.strides[1];
  Shape shape = in.view.shape;
  if (to.shape[1] == 1) shape = {in.view.size()};
  bool positions = to.shape[1] == 1 && step == static_cast<std::int64_t>(sizeof(std::int64_t));
  host::for_each_found(*this, [&](const std::int64_t* found, std::int64_t number, std::int64_t at) {
    if (positions) {
      std::copy_n(found, number, to.as<std::int64_t>() + at);
      return;
    }
    for (std::int64_t i = 0; i < number; ++i) {
      host::write_coordinates(found[i], shape, to.data + (at + i) * step, column);
    }
  });
}

}  // namespace rensa::operations
