// Products one of whose operands is turned first, by a copy in the workspace, so that it lies along
// k. In TF32 cuBLASLt's products take up to twice as long where neither operand does, as for the
// gradient of a layer's weights.
#pragma once

#include <cstdint>

#include "rensa/operations/matmul/cuda_plan.h"

namespace rensa::cuda {

/// The operand that may be turned: the smaller one; none where that cannot pay, or has no room.
Turned operand_to_turn(const PlanKey& key);
/// Whether turning it pays, as far as the shape tells.
bool turning_is_likely_faster(const PlanKey& key);

/// Of the workspace, what the turned operand takes.
std::int64_t turned_bytes(const PlanKey& key, Turned turned);
/// The product that is left then.
PlanKey turned_key(PlanKey key, Turned turned);
/// Queues the copy; the run that is left.
MatmulRun turn_operand(const PlanKey& key, Turned turned, MatmulRun run);

}  // namespace rensa::cuda
