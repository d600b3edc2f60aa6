// The choice of the instruction set.
#include "rensa/backend/cpu/kernels.h"

#include "rensa/backend/cpu/convert_kernels.h"
#include "rensa/backend/cpu/kernel_sources.h"
#include "rensa/backend/cpu/row_kernels.h"
#if RENSA_X86 && !defined(RENSA_BASELINE_KERNELS)
#include <cpuid.h>
#endif

namespace rensa::host {

#define RENSA_INTERNAL(name, inputs, rule, expression) RENSA_UFUNC(name, inputs, rule, expression)
#define RENSA_UFUNC(name, inputs, rule, expression) \
  RENSA_EACH_SET(namespace elementwise_rows { extern const ElementwiseKernels name; })
#include "rensa/core/ops.def"
#undef RENSA_UFUNC

namespace {

#if RENSA_X86 && !defined(RENSA_BASELINE_KERNELS)
/// Not by __builtin_cpu_supports: Clang 14 does not know the name.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

InstructionSet find_instruction_set() {
#if RENSA_X86 && !defined(RENSA_BASELINE_KERNELS)
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt")) {
    return InstructionSet::avx512;
  }
  if (avx2) return InstructionSet::avx2;
#endif
  return InstructionSet::baseline;
}

}  // namespace

InstructionSet best_instruction_set() {
  // A virtual machine's host answers cpuid, which takes some microseconds.
  static const InstructionSet best = find_instruction_set();
  return best;
}

KernelTable make_kernel_table(InstructionSet set) {
  KernelTable table = {};
  for (auto [plain, best] : {
#define RENSA_UFUNC(name, inputs, rule, expression) \
  std::pair(&baseline::elementwise_rows::name, &RENSA_IN_SET(set, elementwise_rows::name)),
#include "rensa/core/ops.def"
#undef RENSA_UFUNC
       }) {
    ElementwiseKernels& row = table.elementwise.emplace_back(*best);
    // Value types that are rare, or scalar anyway, have the baseline's kernels alone.
    for (int t = 0; t < kNumComputeTypes; ++t) {
      if (!row.over[t]) row.over[t] = plain->over[t];
    }
  }
  baseline::add_conversions(table);
  RENSA_IN_SET(set, add_conversions)(table);
  return table;
}

const KernelTable& kernels() {
  static const KernelTable table = make_kernel_table(best_instruction_set());
  return table;
}

namespace {

struct AllRowKernels {
  RowKernels<float> f;
  RowKernels<double> d;
};
const AllRowKernels& all_row_kernels() {
  static const AllRowKernels all = [] {
    AllRowKernels a;
    RENSA_IN_SET(best_instruction_set(), get_row_kernels)(a.f, a.d);
    return a;
  }();
  return all;
}

}  // namespace

template <> const RowKernels<float>& row_kernels<float>() { return all_row_kernels().f; }
template <> const RowKernels<double>& row_kernels<double>() { return all_row_kernels().d; }

}  // namespace rensa::host
