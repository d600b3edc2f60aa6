// A trace cut into kernels.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rensa/kernel/compiled_kernels.h"
#include "rensa/kernel/elementwise_source.h"
#include "rensa/kernel/reduction_source.h"
#include "rensa/kernel/trace.h"

namespace rensa::detail {

/// The text of one kernel and what it was compiled to; plans of other shapes share it.
struct FusedProgram {
  ElementwiseText elementwise;  // or
  ReductionText reduction;
  const char* name = nullptr;
  CompiledKernels compiled;
};
using FusedPrograms = std::map<std::string, std::shared_ptr<FusedProgram>>;

/// What a kernel reads.
struct FusedInput {
  ArgumentKind kind = ArgumentKind::element;
  Dtype dtype = Dtype::float32;
  int value = -1;           // that an earlier kernel made; else
  int from = 0, input = 0;  // what this operation of the trace reads there: an array or a number
  Shape shape, strides;     // of an array, as the kernel reads it
  std::int64_t offset = 0;  // bytes from its first element
};

/// The most operations of one kernel, and the most bytes of arguments that depend on them. Beyond
/// some tens of operations a compiler's time grows faster than their number; all arguments of a
/// GPU's kernel are at most 4 KiB.
inline constexpr std::size_t kMostFusedOperations = 64;
inline constexpr std::size_t kMostArgumentBytes = 3840;

/// One kernel: chains of elementwise operations, or such a chain, a reduction and another chain.
struct FusedStep {
  std::shared_ptr<FusedProgram> program;
  bool reduction = false;
  unsigned axes = 0;
  Shape shape;  // that is walked
  std::vector<FusedInput> inputs;
  std::vector<int> outputs;   // the values it makes
  std::vector<int> finished;  // the values in memory that nobody reads after it
  Shape kept_strides;         // of a reduction: its output's, by the axes of `shape`
};

/// The kernels that make `outputs`, values of the trace, in order. A long trace is cut into parts
/// of kMostFusedOperations, one after the other; what later ones read of a part is written to
/// memory. One part, elementwise and of one shape, is one kernel.
std::vector<FusedStep> plan_fusion(const std::vector<TracedValue>& values,
                                   const std::vector<int>& outputs, FusedPrograms& programs);

/// What the step's kernel is given. `places` says where values of the trace stand: those that it
/// makes and those that it reads from memory.
std::vector<KernelOperand> operands_of(const FusedStep& step,
                                       const std::vector<TracedValue>& values,
                                       const std::vector<Operand>& places);

}  // namespace rensa::detail
