// How blocks of a GPU share a recurrent layer among them. Read by the host compiler and by nvcc.
#pragma once

#include <algorithm>
#include <cstdint>

#include "rensa/core/integers.h"
#include "rensa/functions/operations/recurrent_steps/recurrent_steps.h"

namespace rensa {

/// A block of a team has the weight's rows for kUnits units in shared memory, and computes these
/// units of kRows sequences, a tile, at a time; a team has all units of a direction among its
/// blocks, and goes through the times of its tiles. Blocks of a team wait for each other after each
/// time, so all blocks are on the GPU at once: at the most one on each multiprocessor.
struct RecurrentTeams {
  static constexpr int kRows = 16, kUnits = 16, kThreads = 256;
  static constexpr int kMostTiles = 2;  // of a team: of more a product for each time is sooner done
  /// A thread sums products for kRowsEach rows by kColumns(parts) of the weight's rows.
  static constexpr int kRowsEach = 8;
  static constexpr int units_each(int parts) { return parts == 1 ? 4 : 1; }
  /// Threads that have a part of each sum of a tile; and how many parts a sum has.
  static constexpr int threads_of_slice(int parts) {
    return kRows / kRowsEach * (kUnits / units_each(parts));
  }
  static constexpr int slices(int parts) { return kThreads / threads_of_slice(parts); }
  /// Floats from one slice's sums to the next one's; 4 more than there are keep writes of a warp
  /// apart.
  static constexpr int slice_stride(int parts) { return parts * kRows * kUnits + 4; }

  int blocks = 0;  // of a team
  int teams = 0;   // of each direction; 0 where the layer does not fit
  /// Vectors of four floats from a row in shared memory to the next one: an odd number, which keeps
  /// rows in banks of their own.
  int row_fours = 0;
  std::int64_t shared_bytes = 0;  // of a block

  RecurrentTeams(int parts, std::int64_t rows, std::int64_t units, std::int64_t directions,
                 int multiprocessors, std::int64_t most_shared_bytes) {
    std::int64_t fours = ceil_div(units, std::int64_t{4}) | 1;
    std::int64_t weight = parts * kUnits * fours;
    std::int64_t tile = std::max<std::int64_t>(
        kRows * fours, ceil_div(std::int64_t{slices(parts)} * slice_stride(parts), 4));
    shared_bytes = (weight + tile) * 16;
    if (shared_bytes > most_shared_bytes) return;
    row_fours = static_cast<int>(fours);
    blocks = static_cast<int>(ceil_div(units, std::int64_t{kUnits}));
    std::int64_t tiles = ceil_div(rows / directions, std::int64_t{kRows});
    std::int64_t most = std::min(tiles, multiprocessors / (blocks * directions));
    if (most > 0 && ceil_div(tiles, most) <= kMostTiles) teams = static_cast<int>(most);
  }
};

/// Of the GPU, asked once.
RecurrentTeams recurrent_teams(Device device, operations::RecurrentCell cell, std::int64_t rows,
                               std::int64_t units, std::int64_t directions);

}  // namespace rensa
