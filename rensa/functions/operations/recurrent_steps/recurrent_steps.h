// All times of a layer of a recurrent network, in one direction or in both side by side.
#pragma once

#include <cstdint>

#include "rensa/core/device.h"
#include "rensa/device/kind.h"

namespace rensa::operations {

enum class RecurrentCell : unsigned char { lstm, gru, tanh, relu };

/// Goes through the times of sequences of one length, from the last one with `backward`: of each
/// time's x, a part of `gates`, and u = h * weight^T (+ bias), h being the last output, the row of
/// recurrent.def for a time gives y, which is the next h. All are C-contiguous and of float32:
/// weight (directions * parts * N, N), bias (directions * parts * N,) of gated recurrent units
/// alone, h (rows, N) and c, of long short-term memories, what the layer starts from, gates (times
/// * rows, parts * N), y and kept (times * rows, N). Rows are of each direction in turns; one that
/// goes the other way finds its times in that order. None is empty.
///
/// What a gradient needs takes the places of x, and of gated cells those of `kept`: the parts after
/// their functions, and c, or what h gives for the new output.
struct RecurrentSteps final : KindOf<RecurrentSteps> {
  explicit RecurrentSteps(RecurrentCell c) : KindOf("recurrent_steps"), cell(c) {}
  /// Up to so many units a thread of a GPU keeps a row of the weight in registers, and a block goes
  /// through all times of a sequence. Of more, blocks share the layer (teams.h).
  static constexpr std::int64_t kFewUnits = 64;
  /// Whether the device goes through all times in one kernel, as what is few enough for it.
  static bool fits(Device device, RecurrentCell cell, std::int64_t rows, std::int64_t units,
                   std::int64_t directions);

  RecurrentCell cell;
  std::int64_t directions = 1;
  bool backward = false;
  Operand weight, bias, h, c, gates, y, kept;

  template <class V> void fields(V& v) {
    v.read(weight, bias, h, c), v.update(gates), v.write(y, kept),
        v.number(cell, directions, backward);
  }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

}  // namespace rensa::operations
