// The instruction sets that kernels are compiled for, of which a program takes the best one that
// its machine has.
//
// A file named *_kernels.cc is compiled once for each set, by rensa_kernels
// (cmake/RensaInstructionSets.cmake): with the set's flags, and RENSA_SET for the set's name, which
// is the namespace that its kernels stand in. Inline functions of the headers that it includes are
// compiled for the set too, and of equal ones the linker keeps any: one of them that is not inlined
// would run on machines that lack the instructions. So what kernels call of the project's is
// inlined by force (RENSA_FN), and tools/check_instruction_sets.py sees that nothing outside of the
// set's namespace is left in an object.
#pragma once

namespace rensa::host {

enum class InstructionSet { baseline, avx2, avx512 };
/// The best one that this machine runs.
InstructionSet best_instruction_set();

// RENSA_EACH_SET declares a function that a *_kernels.cc defines for each set; RENSA_IN_SET is that
// of one of them, which the machine has to have. RENSA_BASELINE_KERNELS is a build's that has the
// baseline alone.
#if defined(__x86_64__) && !defined(RENSA_BASELINE_KERNELS)
#define RENSA_EACH_SET(...) \
  namespace baseline {      \
  __VA_ARGS__               \
  }                         \
  namespace avx2 {          \
  __VA_ARGS__               \
  }                         \
  namespace avx512 {        \
  __VA_ARGS__               \
  }
#define RENSA_IN_SET(set, function)                                             \
  ((set) == rensa::host::InstructionSet::avx512 ? rensa::host::avx512::function \
   : (set) == rensa::host::InstructionSet::avx2 ? rensa::host::avx2::function   \
                                                : rensa::host::baseline::function)
#else
#define RENSA_EACH_SET(...) \
  namespace baseline {      \
  __VA_ARGS__               \
  }
#define RENSA_IN_SET(set, function) ((void)(set), rensa::host::baseline::function)
#endif

}  // namespace rensa::host
