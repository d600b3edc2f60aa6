// The patterns that stand in files of their own, and what patterns ask of a list.
#pragma once

#include "rensa/graph/patterns.h"
#include "rensa/operations/elementwise/elementwise.h"

namespace rensa {

/// The elementwise operation of that row at `i`; null: it is another one, or taken out.
operations::Elementwise* elementwise_at(const RecordedList& list, std::size_t i, Ufunc ufunc);
/// Whether all operands are arrays of one dtype, which is computed in, and C-contiguous: element i
/// of each is the i-th in memory.
bool is_flat(const operations::Elementwise& operation);

/// Whether both are the same elements in the order of memory, which both fill, or absent.
bool same_memory(const Operand& a, const Operand& b);
inline constexpr std::size_t kNone = static_cast<std::size_t>(-1);
/// The operation that makes `operand`, which nobody but the operation at `reader` reads; kNone
/// where there is none.
std::size_t maker_for(const RecordedList& list, const Operand& operand, std::size_t reader);
/// Whether an elementwise operation makes `operand`, for the operation at `reader` alone: in a
/// chain of them it takes no pass.
bool is_made_for(const RecordedList& list, const Operand& operand, std::size_t reader);

// Of patterns_normalization.cc.
void join_normalize_relu(RecordedList& list, std::size_t i);
void join_normalize_relu_grad(RecordedList& list, std::size_t i);
void join_relu_grad_sums(RecordedList& list, std::size_t i);
void join_residual_rows(RecordedList& list, std::size_t i);
void join_rows_grad_sum(RecordedList& list, std::size_t i);

}  // namespace rensa
