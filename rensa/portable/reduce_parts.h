// How a CPU's threads reduce: each output by itself, in leaves of values that are joined pairwise,
// or rows of outputs together. The library's loops are compiled of it, and those of ReductionKernel
// and fuse when the program runs. What is added to what follows from shapes alone, so that all of
// them come to the same bits.
#pragma once

#include "rensa/core/half.h"

// Loops as they stand make vector code; unrolled ones cost a kernel made at run time seconds.
#if defined(RENSA_RUN_TIME)
#define RENSA_ROLLED _Pragma("GCC unroll 1")
#else
#define RENSA_ROLLED
#endif

namespace rensa::host {

constexpr long long kReduceLeaf = 1024;       // values that are reduced in lanes
constexpr long long kReducePart = 64 << 10;   // values that make one partial result, of one thread
constexpr long long kReduceColumns = 256;     // accumulators of a tile
constexpr long long kReduceRows = 128;        // rows added one by one; blocks are joined pairwise
constexpr long long kReduceGrain = 32 << 10;  // values that are worth waking a thread for

/// How a reduction is cut into parts (plan_outputs and plan_tiles in launch_plan.h): the front of
/// the arguments of kernels made at run time.
struct ReduceParts {
  long long outputs = 1, count = 0;     // count: values that one output is reduced from
  long long parts = 1;                  // of an output, or of a tile
  long long items = 1, grain = 1;       // parts in all; those that are worth waking a thread for
  long long tiles = 1, tiles_x = 1;     // of columns: in all, and of one outer index
  long long width = 1, tile_width = 1;  // columns of one outer index, of a tile
  long long part_rows = 0;
  void* partials = nullptr;
  unsigned* semaphores = nullptr;  // a GPU's alone: filled in beside the partials
};

/// Accumulators side by side: enough for four vectors of the widest instruction set.
template <class A> constexpr int kLanes = sizeof(A) == 4 ? 64 : sizeof(A) == 8 ? 32 : 4;

/// x[0] to x[n - 1] taken by accumulators that are joined pairwise. R::identity(), take(acc, x),
/// combine(a, b).
template <class R, class A, class V> RENSA_FN A reduce_lanes(long long n, const V* x) {
  constexpr int L = kLanes<A>;
  A lanes[L];
  RENSA_ROLLED
  for (int l = 0; l < L; ++l) lanes[l] = R::identity();
  long long k = 0;
  for (; k + L <= n; k += L) {
    RENSA_ROLLED
    for (int l = 0; l < L; ++l) lanes[l] = R::take(lanes[l], x[k + l]);
  }
  RENSA_ROLLED
  for (int l = 0; k + l < n; ++l) lanes[l] = R::take(lanes[l], x[k + l]);
  RENSA_ROLLED
  for (int width = L / 2; width > 0; width /= 2) {
    RENSA_ROLLED
    for (int l = 0; l < width; ++l) lanes[l] = R::combine(lanes[l], lanes[l + width]);
  }
  return lanes[0];
}

/// Joins `count` neighbours pairwise into the first: combine(n, from) joins [from, from + n) into
/// [0, n).
template <class Combine> inline void join_pairwise(long long count, Combine&& combine) {
  while (count > 1) {
    long long half = (count + 1) / 2;
    combine(count - half, half);
    count = half;
  }
}

/// values = the rows [begin, end) of a tile of columns: add(begin, end, values) sets them to a
/// block of rows, combine(others, values) joins. kRoom of A hold a tile's accumulators.
template <int kRoom, class A, class Add, class Combine>
inline void reduce_row_blocks(long long begin, long long end, A* values, const Add& add,
                              const Combine& combine) {
  long long blocks = (end - begin + kReduceRows - 1) / kReduceRows;
  if (blocks <= 1) return add(begin, end, values);
  long long middle = begin + (blocks + 1) / 2 * kReduceRows;
  alignas(64) A others[kRoom];
  reduce_row_blocks<kRoom>(begin, middle, values, add, combine);
  reduce_row_blocks<kRoom>(middle, end, others, add, combine);
  combine(others, values);
}

}  // namespace rensa::host
