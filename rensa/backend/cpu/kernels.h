// The inner loops that all kinds of operations share, over contiguous values of one type V, as a
// table of function pointers: the elementwise ones, and conversions. What brings arrays of any
// dtype and stride to them is in operations/elementwise/cpu.cc and strided.h.
#pragma once

#include <cstdint>
#include <vector>

#include "rensa/backend/cpu/instruction_sets.h"
#include "rensa/core/dtype.h"
#include "rensa/core/ufunc_info.h"
#include "rensa/portable/compute_types.h"

namespace rensa::host {

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

/// The kernels of a row of ops.def; null where none exists (rule_takes).
struct ElementwiseKernels {
  ElementwiseKernel over[kNumComputeTypes] = {};
  // Over elements as they are stored, where that is worth it.
  ElementwiseKernel on_bool = nullptr, on_int32 = nullptr;
};

struct KernelTable {
  std::vector<ElementwiseKernels> elementwise;  // by a row's number
  LoadKernel load[kNumDtypes][kNumComputeTypes];
  StoreKernel store[kNumDtypes][kNumComputeTypes];
  FillKernel fill;

  ElementwiseKernel of(Ufunc f, ComputeType t) const { return of(f).over[static_cast<int>(t)]; }
  const ElementwiseKernels& of(Ufunc f) const {
    return elementwise[static_cast<std::size_t>(f.number())];
  }
  ElementwiseKernel over_stored(Ufunc f, Dtype d) const {
    return d == bool_ ? of(f).on_bool : d == int32 ? of(f).on_int32 : nullptr;
  }
  LoadKernel load_of(Dtype d, ComputeType t) const {
    return load[static_cast<int>(d)][static_cast<int>(t)];
  }
  StoreKernel store_of(Dtype d, ComputeType t) const {
    return store[static_cast<int>(d)][static_cast<int>(t)];
  }
};

/// The kernels for `set`, which the machine has to have.
KernelTable make_kernel_table(InstructionSet set);
/// The kernels for best_instruction_set().
const KernelTable& kernels();

}  // namespace rensa::host
