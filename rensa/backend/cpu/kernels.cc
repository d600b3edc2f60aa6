// The choice of the instruction set.
#include "rensa/backend/cpu/kernels.h"

#include "rensa/backend/cpu/kernel_sources.h"

namespace rensa::host {

InstructionSet best_instruction_set() {
#if RENSA_X86
  __builtin_cpu_init();
  bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt")) {
    return InstructionSet::avx512;
  }
  if (avx2) return InstructionSet::avx2;
#endif
  return InstructionSet::baseline;
}

KernelTable make_kernel_table(InstructionSet set) {
  KernelTable table = {};
  add_elementwise_baseline(table);
  add_elementwise_wide(table);
#if RENSA_X86
  if (set >= InstructionSet::avx2) add_elementwise_avx2(table);
  if (set >= InstructionSet::avx512) add_elementwise_avx512(table);
#endif
  baseline::add_conversions(table);
  RENSA_IN_SET(set, add_conversions)(table);
  return table;
}

const KernelTable& kernels() {
  static const KernelTable table = make_kernel_table(best_instruction_set());
  return table;
}

}  // namespace rensa::host
