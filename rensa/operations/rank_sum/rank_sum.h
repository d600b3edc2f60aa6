// Sums over the ranks of one process, whose memory one kernel reaches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rensa/device/kind.h"

namespace rensa::operations {

/// Every rank's piece becomes the sum of all ranks' pieces, added in the order of the ranks: the
/// bits are the same on all. A piece is contiguous, of a floating dtype, the same for all.
struct RankSum final : KindOf<RankSum> {
  RankSum() : KindOf("rank_sum") {}
  int ranks = 0;
  int rank = 0;                 // whose device computes
  std::vector<Operand> pieces;  // those of the first piece by rank, then those of the next

  template <class V> void fields(V& v) {
    auto n = static_cast<std::size_t>(ranks);
    for (std::size_t piece = 0; piece < pieces.size(); piece += n) {
      for (std::size_t i = 1; i <= n; ++i) {
        v.write(pieces[piece + (static_cast<std::size_t>(rank) + i) % n]);
      }
    }
    v.number(ranks, rank);
  }
  bool is_between_devices() const override { return true; }
  void run_cpu() override;
  void run_cuda(const cuda::LaunchContext& context) override;
};

/// The operations that replace the arrays of all ranks by their sums, `arrays[rank][i]` being the
/// i-th of a rank: C-contiguous, of the i-th's size and dtype on all ranks. Each rank computes its
/// part of every array; arrays of a dtype that make up some megabytes, one after the other, share
/// an operation, so that in a recorded step they are summed while others are computed. They stand
/// in the order of their last arrays. Throws ShapeError, DtypeError, and DeviceError where one
/// kernel does not reach all of it (device/peers.h).
std::vector<RankSum> rank_sums(std::span<const std::vector<Operand>> arrays);

}  // namespace rensa::operations
