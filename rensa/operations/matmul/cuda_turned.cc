// Which operand is turned, and its copy.
#include "rensa/operations/matmul/cuda_turned.h"

#include "rensa/backend/cuda/copy.h"
#include "rensa/core/integers.h"

namespace rensa::cuda {

namespace {

constexpr std::int64_t kWidth = 4;  // elements that a turned line is a multiple of: 16 bytes

std::int64_t turned_line(const PlanKey& key) { return round_up(key.k, kWidth); }

}  // namespace

Turned operand_to_turn(const PlanKey& key) {
  constexpr double kLeast = 1 << 28;
  bool apart = key.a_transposed && !key.b_transposed;
  bool plain = key.batch == 1 && key.bias == PlanKey::Bias::none && !key.relu_alone;
  if (!key.tf32 || !apart || !plain || key.multiplications() < kLeast) return Turned::none;
  Turned turned = key.m <= key.n ? Turned::a : Turned::b;
  return turned_bytes(key, turned) <= key.workspace_limit ? turned : Turned::none;
}

// As measured on an H200, the copy counted: of 1000 rows and columns from about 1024 terms on, of
// 512 never.
bool turning_is_likely_faster(const PlanKey& key) {
  return key.k >= 1024 && key.m * key.n >= 768 * 768;
}

std::int64_t turned_bytes(const PlanKey& key, Turned turned) {
  if (turned == Turned::none) return 0;
  std::int64_t lines = turned == Turned::a ? key.m : key.n;
  return round_up(lines * turned_line(key) * itemsize(key.dtype), 256);
}

PlanKey turned_key(PlanKey key, Turned turned) {
  key.workspace_limit -= turned_bytes(key, turned);
  if (turned == Turned::a) {
    key.a_transposed = false;
    key.a_ld = turned_line(key);
    key.aligned |= PlanKey::aligned_a;
  } else if (turned == Turned::b) {
    key.b_transposed = true;
    key.b_ld = turned_line(key);
    key.aligned |= PlanKey::aligned_b;
  }
  return key;
}

MatmulRun turn_operand(const PlanKey& key, Turned turned, MatmulRun run) {
  bool is_a = turned == Turned::a;
  const char*& operand = is_a ? run.a : run.b;
  std::int64_t size = itemsize(key.dtype);
  ArrayView from;
  from.data = const_cast<char*>(operand);  // is not written
  from.dtype = key.dtype;
  from.device = run.context.device;
  from.shape = {is_a ? key.m : key.n, key.k};
  from.strides = {size, (is_a ? key.a_ld : key.b_ld) * size};
  ArrayView to = from;
  to.data = static_cast<char*>(run.context.workspace);
  to.strides = {turned_line(key) * size, size};
  copy_elements("matmul", run.context, from, to);
  operand = to.data;
  std::int64_t taken = turned_bytes(key, turned);
  run.context.workspace = to.data + taken;
  run.context.workspace_bytes -= static_cast<std::size_t>(taken);
  return run;
}

}  // namespace rensa::cuda
