// Which products have a kernel for a short dimension or small operands, and its arguments.
#include "rensa/operations/matmul/cuda_skinny.h"

#include <algorithm>
#include <limits>

namespace rensa::cuda {

namespace {

/// Which operand is the long one, x. It is a when the columns of c are the short dimension.
enum class Long { none, a, b };

Long long_operand(const PlanKey& key, bool k_contiguous) {
  // a's k is contiguous unless it is transposed, b's where it is.
  bool a_fits = key.n <= kMaxSkinny && key.a_transposed != k_contiguous;
  bool b_fits = key.m <= kMaxSkinny && key.b_transposed == k_contiguous;
  if (a_fits && b_fits) return key.m >= key.n ? Long::a : Long::b;
  return a_fits ? Long::a : b_fits ? Long::b : Long::none;
}

SkinnyArgs skinny_args(const PlanKey& key, Long which, const MatmulRun& run) {
  SkinnyArgs args{};
  args.bias = reinterpret_cast<const float*>(run.bias);
  args.c = reinterpret_cast<float*>(run.c);
  args.k = static_cast<int>(key.k);
  args.activation = run.activation;
  args.alpha = static_cast<float>(run.alpha);
  bool is_a = which == Long::a;
  args.x = reinterpret_cast<const float*>(is_a ? run.a : run.b);
  args.s = reinterpret_cast<const float*>(is_a ? run.b : run.a);
  args.x_ld = is_a ? key.a_ld : key.b_ld;
  args.length = static_cast<int>(is_a ? key.m : key.n);
  args.count = static_cast<int>(is_a ? key.n : key.m);
  args.c_length = is_a ? key.c_ld : 1;
  args.c_count = is_a ? 1 : key.c_ld;
  args.bias_by_count = is_a;
  std::int64_t short_ld = is_a ? key.b_ld : key.a_ld;
  bool short_k_contiguous = is_a ? key.b_transposed : !key.a_transposed;
  args.s_row = short_k_contiguous ? short_ld : 1;
  args.s_k = short_k_contiguous ? 1 : short_ld;
  return args;
}

ProductArgs product_args(const PlanKey& key, const MatmulRun& run) {
  ProductArgs args{};
  args.a = reinterpret_cast<const float*>(run.a);
  args.b = reinterpret_cast<const float*>(run.b);
  args.bias = reinterpret_cast<const float*>(run.bias);
  args.c = reinterpret_cast<float*>(run.c);
  args.a_row = key.a_transposed ? 1 : key.a_ld;
  args.a_k = key.a_transposed ? key.a_ld : 1;
  args.b_k = key.b_transposed ? 1 : key.b_ld;
  args.b_column = key.b_transposed ? key.b_ld : 1;
  args.c_ld = key.c_ld;
  args.m = static_cast<int>(key.m);
  args.n = static_cast<int>(key.n);
  args.k = static_cast<int>(key.k);
  args.activation = run.activation;
  args.alpha = static_cast<float>(run.alpha);
  return args;
}

}  // namespace

PlanKind skinny_kind(const PlanKey& key) {
  constexpr std::int64_t kMax = std::numeric_limits<int>::max() / 2;
  if (key.dtype != Dtype::float32 || key.batch != 1 || key.bias == PlanKey::Bias::separate ||
      key.m > kMax || key.n > kMax || key.k > kMax) {
    return PlanKind::cublaslt;
  }
  if (key.k <= kMaxSkinny && !key.b_transposed) return PlanKind::outer;
  if (long_operand(key, true) != Long::none) return PlanKind::dot;
  if (long_operand(key, false) != Long::none) return PlanKind::columns;
  constexpr std::int64_t kSmall = 256;
  if (std::max({key.m, key.n, key.k}) <= kSmall) return PlanKind::small;
  return PlanKind::cublaslt;
}

bool skinny_is_likely_faster(const PlanKey& key) {
  // Beyond these sizes cuBLASLt's tiles have enough to do.
  constexpr std::int64_t kMega = std::int64_t{1} << 20;
  std::int64_t shorter = std::min(key.m, key.n), longer = std::max(key.m, key.n);
  switch (skinny_kind(key)) {
    case PlanKind::outer: return key.m * key.n <= 4 * kMega;
    // Four rows at a time read all of the short operand.
    case PlanKind::dot: return longer * key.k * (1 + shorter / 4) <= 16 * kMega;
    case PlanKind::columns: return longer <= 32768 && key.k <= 2048;
    case PlanKind::small: return true;  // cuBLASLt's sums in parts are two launches
    default: return false;
  }
}

void run_skinny(const PlanKey& key, PlanKind kind, const MatmulRun& run) {
  if (kind == PlanKind::small) return launch_small(product_args(key, run), run.context);
  if (kind == PlanKind::outer) return launch_outer(product_args(key, run), run.context);
  Long which = long_operand(key, kind == PlanKind::dot);
  SkinnyArgs args = skinny_args(key, which, run);
  if (kind == PlanKind::columns) {
    launch_columns(args, run.context);
    return;
  }
  constexpr unsigned kBoth = PlanKey::aligned_a | PlanKey::aligned_b;
  bool vectors = (key.aligned & kBoth) == kBoth && args.s_k == 1 && args.k % 4 == 0 &&
                 args.x_ld % 4 == 0 && args.s_row % 4 == 0;
  launch_dot(args, vectors, run.context);
}

}  // namespace rensa::cuda
