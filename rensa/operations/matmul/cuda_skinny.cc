// Which products have a kernel for a short dimension, and its arguments.
#include "rensa/operations/matmul/cuda_skinny.h"

#include <algorithm>
#include <limits>

#include "rensa/core/integers.h"

namespace rensa::cuda {

namespace {

/// Which operand is the long one, x. It is a when the columns of c are the short dimension.
enum class Long { none, a, b };

Long long_operand(const PlanKey& key) {
  // a's k is contiguous unless it is transposed, b's where it is.
  bool a_fits = key.n <= kMaxSkinny && !key.a_transposed;
  bool b_fits = key.m <= kMaxSkinny && key.b_transposed;
  if (a_fits && b_fits) return key.m >= key.n ? Long::a : Long::b;
  return a_fits ? Long::a : b_fits ? Long::b : Long::none;
}

SkinnyArgs skinny_args(const PlanKey& key, Long which, const MatmulRun& run) {
  SkinnyArgs args{};
  args.bias = reinterpret_cast<const float*>(run.bias);
  args.c = reinterpret_cast<float*>(run.c);
  args.gate = reinterpret_cast<const float*>(run.gate);
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
  args.x_batch = is_a ? key.a_stride : key.b_stride;
  args.s_batch = is_a ? key.b_stride : key.a_stride;
  args.c_batch = key.c_stride;
  args.batch = static_cast<int>(key.batch);
  args.bias_by_count = is_a;
  args.x_settled = is_a ? run.a_settled : run.b_settled;
  args.s_settled = is_a ? run.b_settled : run.a_settled;
  std::int64_t short_ld = is_a ? key.b_ld : key.a_ld;
  bool short_k_contiguous = is_a ? key.b_transposed : !key.a_transposed;
  args.s_row = short_k_contiguous ? short_ld : 1;
  args.s_k = short_k_contiguous ? 1 : short_ld;
  return args;
}

bool reads_vectors(const PlanKey& key, const SkinnyArgs& args) {
  constexpr unsigned kBoth = PlanKey::aligned_a | PlanKey::aligned_b;
  return (key.aligned & kBoth) == kBoth && args.s_k == 1 && args.k % 4 == 0 && args.x_ld % 4 == 0 &&
         args.s_row % 4 == 0 && args.x_batch % 4 == 0 && args.s_batch % 4 == 0;
}

OuterArgs outer_args(const PlanKey& key, const MatmulRun& run) {
  std::int64_t a_row = key.a_transposed ? 1 : key.a_ld, a_k = key.a_transposed ? key.a_ld : 1;
  return {product_args(key, run), a_row, a_k, key.b_ld};
}

}  // namespace

PlanKind skinny_kind(const PlanKey& key) {
  constexpr std::int64_t kMax = std::numeric_limits<int>::max() / 2, kMaxGrid = 65535;
  bool half = key.dtype == Dtype::float16 || key.dtype == Dtype::bfloat16;
  if ((key.dtype != Dtype::float32 && !half) || key.batch > kMaxGrid ||
      key.bias == PlanKey::Bias::separate || key.m > kMax || key.n > kMax || key.k > kMax) {
    return PlanKind::cublaslt;
  }
  if (key.k <= kMaxSkinny && !key.b_transposed) return PlanKind::outer;
  if (half) return PlanKind::cublaslt;
  return long_operand(key) == Long::none ? PlanKind::cublaslt : PlanKind::dot;
}

bool skinny_is_likely_faster(const PlanKey& key) {
  // Measured on an H200. Beyond these sizes cuBLASLt's tiles have enough to do.
  constexpr std::int64_t kMega = std::int64_t{1} << 20;
  std::int64_t shorter = std::min(key.m, key.n), longer = std::max(key.m, key.n);
  switch (skinny_kind(key)) {
    case PlanKind::outer: {
      // A block has eight rows of 128 columns. What a column times a row takes is storing it.
      bool fills_blocks = key.n >= 32 || key.m * key.batch <= 512;
      bool few = ceil_div(key.n, 128) * ceil_div(key.m, 8) * key.batch <= 1024;
      return fills_blocks && (few || key.k == 1);
    }
    case PlanKind::dot: {
      // Four rows at a time read all of the short operand.
      bool short_enough = longer * key.batch * key.k * (1 + shorter / 4) <= 16 * kMega;
      return short_enough && (key.batch == 1 || longer * key.batch <= 1024);
    }
    default: return false;
  }
}

float likely_saved(const PlanKey& key, PlanKind kind) {
  constexpr float kOperation = 1;  // at least, on an H200: it waits for another one
  bool gives_scores = key.bias == PlanKey::Bias::epilogue && long_operand(key) == Long::a;
  bool goes_back = key.gate_follows;
  bool saves = (kind == PlanKind::dot && gives_scores) || (kind == PlanKind::outer && goes_back);
  return saves ? kOperation : 0;
}

std::optional<DotRows> dot_rows(const PlanKey& key, const MatmulRun& run) {
  if (long_operand(key) != Long::a || key.batch != 1 || key.c_ld != key.n || run.gate ||
      run.activation != operations::Activation::none) {
    return std::nullopt;
  }
  SkinnyArgs args = skinny_args(key, Long::a, run);
  return DotRows{args, reads_vectors(key, args)};
}

void run_skinny(const PlanKey& key, PlanKind kind, const MatmulRun& run) {
  if (kind == PlanKind::outer) return launch_outer(key.dtype, outer_args(key, run), run.context);
  SkinnyArgs args = skinny_args(key, long_operand(key), run);
  launch_dot(args, reads_vectors(key, args), run.context);
}

}  // namespace rensa::cuda
