// The inner loops of reductions, over contiguous values of one type V.
#pragma once

#include <cstdint>
#include <vector>

#include "rensa/backend/cpu/kernels.h"
#include "rensa/core/reductions.h"

namespace rensa::host {

struct ReduceKernels {
  /// accumulators[i] = identity
  void (*identity)(std::int64_t n, void* accumulators);
  /// accumulator[0] = all of map(in[i]), in lanes that are joined pairwise
  void (*leaf)(std::int64_t n, const void* in, void* accumulator);
  /// accumulators[j] = reduce(accumulators[j], map(in[i][j])), row after row; rows lie
  /// `row_stride` values apart
  void (*rows)(std::int64_t rows, std::int64_t columns, const void* in, std::int64_t row_stride,
               void* accumulators);
  /// accumulators[i] = reduce(accumulators[i], others[i])
  void (*combine)(std::int64_t n, const void* others, void* accumulators);
  /// accumulators[i] = post(accumulators[i], count)
  void (*post)(std::int64_t n, std::int64_t count, void* accumulators);
};

/// What of n bools is true, each a byte: any of them, all of them, how many.
using TruthKernel = long long (*)(std::int64_t n, const char* bools);

/// Entries are null where no kernel exists (rule_takes).
struct ReduceTable {
  struct Row {
    ReduceKernels over[kNumComputeTypes] = {};
    // The same of bools as they are stored, a byte each; null where that is nothing special.
    TruthKernel truths = nullptr;
    ReduceKernels bools = {};
  };
  std::vector<Row> rows{all_reductions().size()};

  const Row& of(Reduction r) const { return rows[static_cast<std::size_t>(r.number())]; }
  Row& of(Reduction r) { return rows[static_cast<std::size_t>(r.number())]; }
  const ReduceKernels& of(Reduction r, ComputeType t) const {
    return of(r).over[static_cast<int>(t)];
  }
};

/// The kernels for best_instruction_set().
const ReduceTable& reduce_kernels();

RENSA_EACH_SET(void add_reductions(ReduceTable&);)

}  // namespace rensa::host
