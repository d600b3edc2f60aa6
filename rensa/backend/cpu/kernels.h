// The inner loops of the CPU backend, over contiguous values of one type V, as a table of function
// pointers. The loops are compiled once for each instruction set and the best set that the machine
// has is chosen at the first use. What brings arrays of any dtype and stride to them is in
// elementwise.cc, reduce.cc and so on.
#pragma once

#include <cstdint>

#include "rensa/core/dtype.h"
#include "rensa/core/random_integers.h"
#include "rensa/core/reductions.h"
#include "rensa/core/ufunc.h"

namespace rensa::host {

inline constexpr int kNumComputeTypes = 6;
inline constexpr int kNumReductions = static_cast<int>(Reduction::count_);

/// out[i] = op(in[0][i], in[1][i], ...); out may be an input. Of an input whose bit in `repeated`
/// is set there are kRepeats values (or n, if that is less), all equal, which stand for n.
using ElementwiseKernel = void (*)(std::int64_t n, const void* const* in, void* out,
                                   unsigned repeated);
inline constexpr std::int64_t kRepeats = 256;
/// dst[i] = convert(src at i * stride bytes)
using LoadKernel = void (*)(std::int64_t n, const char* src, std::int64_t stride, void* dst);
/// out[i] = the element of `size` bytes (1, 2, 4, 8 or 16) that `value` points to
using FillKernel = void (*)(std::int64_t n, const void* value, std::int64_t size, void* out);
/// dst at i * stride bytes = convert(src[i])
using StoreKernel = void (*)(std::int64_t n, const void* src, char* dst, std::int64_t stride);

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

/// words[4 * i ...] = the four words of Philox counter first + i
using PhiloxKernel = void (*)(unsigned long long seed, unsigned long long first, std::int64_t n,
                              std::uint32_t* words);

/// i = order.step(i) for each
using WalkKernel = void (*)(const PseudoOrder& order, std::int64_t n, std::uint64_t* i);

/// offsets[i] += stride * (indices[i], counted from the end where negative); bounds[0] and [1] are
/// the least and the greatest of what is multiplied, in [0, extent) where all indices are good.
using ResolveKernel = void (*)(std::int64_t n, const std::int64_t* indices, std::int64_t extent,
                               std::int64_t stride, std::int64_t* offsets, std::int64_t* bounds);

/// Entries are null where no kernel exists (rule_takes).
struct KernelTable {
  ElementwiseKernel elementwise[kNumUfuncs][kNumComputeTypes];
  // The same over elements as they are stored, where that is worth it.
  ElementwiseKernel on_bool[kNumUfuncs], on_int32[kNumUfuncs];
  LoadKernel load[kNumDtypes][kNumComputeTypes];
  StoreKernel store[kNumDtypes][kNumComputeTypes];
  FillKernel fill;
  ReduceKernels reduce[kNumReductions][kNumComputeTypes];
  // The same of bools as they are stored, a byte each; null where that is nothing special.
  TruthKernel truths[kNumReductions];
  ReduceKernels reduce_bools[kNumReductions];
  PhiloxKernel philox;
  WalkKernel walk;
  ResolveKernel resolve;

  ElementwiseKernel of(Ufunc f, ComputeType t) const {
    return elementwise[static_cast<int>(f)][static_cast<int>(t)];
  }
  ElementwiseKernel over_stored(Ufunc f, Dtype d) const {
    return d == bool_   ? on_bool[static_cast<int>(f)]
           : d == int32 ? on_int32[static_cast<int>(f)]
                        : nullptr;
  }
  LoadKernel load_of(Dtype d, ComputeType t) const {
    return load[static_cast<int>(d)][static_cast<int>(t)];
  }
  StoreKernel store_of(Dtype d, ComputeType t) const {
    return store[static_cast<int>(d)][static_cast<int>(t)];
  }
  const ReduceKernels& of(Reduction r, ComputeType t) const {
    return reduce[static_cast<int>(r)][static_cast<int>(t)];
  }
};

enum class InstructionSet { baseline, avx2, avx512 };
/// The best one that this machine runs.
InstructionSet best_instruction_set();
/// The kernels for `set`, which the machine has to have.
KernelTable make_kernel_table(InstructionSet set);
/// The kernels for best_instruction_set().
const KernelTable& kernels();

// Each puts the kernels that were compiled for it into the table, above those that are there.
void add_elementwise_baseline(KernelTable&);
void add_elementwise_avx2(KernelTable&);
void add_elementwise_avx512(KernelTable&);
void add_elementwise_wide(KernelTable&);  // the value types that have no vector versions
void add_other_baseline(KernelTable&);
void add_other_avx2(KernelTable&);
void add_other_avx512(KernelTable&);
void add_other_wide(KernelTable&);

}  // namespace rensa::host
