// Matmul on a GPU: from the operands to a plan, and its run.
#include <fmt/format.h>

#include "rensa/backend/cuda/device_class.h"
#include "rensa/backend/cuda/kernel.cuh"
#include "rensa/core/error.h"
#include "rensa/device/stream.h"
#include "rensa/device/stream_state.h"
#include "rensa/operations/matmul/blas_layout.h"
#include "rensa/operations/matmul/cuda_cublaslt.h"
#include "rensa/operations/matmul/cuda_dot.h"
#include "rensa/operations/matmul/cuda_kernels.h"
#include "rensa/operations/matmul/cuda_plan.h"
#include "rensa/operations/matmul/cuda_skinny.h"
#include "rensa/operations/matmul/cuda_tiles.h"
#include "rensa/operations/matmul/matmul.h"

namespace rensa::operations {

namespace {

using cuda::PlanKey;

bool is_integral(Dtype dtype) { return dtype_kind(dtype) != 'f' && dtype_kind(dtype) != 'c'; }

/// Whether every matrix of the operand starts at a multiple of 16 bytes.
bool is_aligned16(const char* data, const MatmulLayout* layout, int operand) {
  auto bits = reinterpret_cast<std::uintptr_t>(data);
  for (int i = 0; layout && i < layout->num_outer; ++i) {
    bits |= static_cast<std::uintptr_t>(layout->outer[i].strides[operand]);
  }
  return bits % 16 == 0;
}

PlanKey plan_key(const Matmul& op, const MatmulLayout& layout) {
  PlanKey key;
  key.m = layout.m;
  key.n = layout.n;
  key.k = layout.k;
  key.a_ld = layout.a_ld;
  key.b_ld = layout.b_ld;
  key.c_ld = layout.c_ld;
  key.batch = layout.batch;
  key.a_stride = layout.a_stride;
  key.b_stride = layout.b_stride;
  key.c_stride = layout.c_stride;
  key.dtype = op.c.view.dtype;
  key.a_transposed = layout.a_transposed;
  key.b_transposed = layout.b_transposed;
  if (key.dtype == Dtype::float32) key.tf32 = op.tf32;
  key.autotune = op.autotune;
  key.gate_follows = op.gate_follows;
  key.device_class = cuda::device_class(op.c.view.device);
  // The limit that cuBLASLt recommends on Hopper. With a lower one its heuristic proposes no sums
  // in parts at all, though those need only a few MiB. A run gets what its plan needs.
  key.workspace_limit = std::int64_t{32} << 20;
  unsigned aligned = 0;
  if (is_aligned16(op.a.view.data, &layout, 0)) aligned |= PlanKey::aligned_a;
  if (is_aligned16(op.b.view.data, &layout, 1)) aligned |= PlanKey::aligned_b;
  if (is_aligned16(op.c.view.data, &layout, 2)) aligned |= PlanKey::aligned_c;
  if (op.bias.present()) {
    const ArrayView& bias = op.bias.view;
    bool packed = bias.shape[0] <= 1 || bias.strides[0] == itemsize(key.dtype);
    key.bias = packed ? PlanKey::Bias::epilogue : PlanKey::Bias::separate;
    if (packed && is_aligned16(bias.data, nullptr, 0)) aligned |= PlanKey::aligned_bias;
  } else {
    key.relu_alone = op.activation == Activation::relu;
  }
  key.aligned = static_cast<std::uint8_t>(aligned);
  return key;
}

cuda::EpilogueArgs epilogue_args(const Matmul& op, const MatmulLayout& layout, char* c) {
  cuda::EpilogueArgs args{};
  args.c = c;
  args.batch = layout.batch;
  args.m = layout.m;
  args.n = layout.n;
  args.c_batch = layout.c_stride;
  args.c_row = layout.c_ld;
  args.activation = op.activation;
  if (op.gate.present()) args.gate = op.gate.view.data + (c - op.c.view.data);
  if (op.bias.present()) {
    args.bias = op.bias.view.data;
    args.bias_stride = op.bias.view.strides[0] / itemsize(op.bias.view.dtype);
  }
  return args;
}

/// Whether anything follows the sums.
bool has_end(const Matmul& op) {
  return op.bias.present() || op.gate.present() || op.activation != Activation::none;
}

/// Integers, which cuBLASLt lacks.
void run_integers(const Matmul& op, const MatmulLayout& layout,
                  const cuda::LaunchContext& context) {
  if (op.alpha != 1) {
    throw NotImplementedError(
        fmt::format("{}: a product of integers takes no factor, got {}", op.name(), op.alpha));
  }
  cuda::IntegerMatmulArgs args{};
  args.m = static_cast<int>(layout.m);
  args.n = static_cast<int>(layout.n);
  args.k = static_cast<int>(layout.k);
  args.a_row = layout.a_transposed ? 1 : layout.a_ld;
  args.a_k = layout.a_transposed ? layout.a_ld : 1;
  args.b_k = layout.b_transposed ? 1 : layout.b_ld;
  args.b_column = layout.b_transposed ? layout.b_ld : 1;
  args.c_row = layout.c_ld;
  args.batch = layout.batch;
  args.a_batch = layout.a_stride;
  args.b_batch = layout.b_stride;
  args.c_batch = layout.c_stride;
  for (std::int64_t i = 0; i < layout.outer_count; ++i) {
    std::int64_t offset[3];
    layout.offsets(i, offset);
    char* c = op.c.view.data + offset[2];
    args.a = op.a.view.data + offset[0];
    args.b = op.b.view.data + offset[1];
    args.c = c;
    cuda::launch_integer_matmul(op.c.view.dtype, args, context);
    if (has_end(op)) {
      cuda::launch_matmul_epilogue(op.c.view.dtype, epilogue_args(op, layout, c), context);
    }
  }
}

/// Sums of nothing: zeros, then what follows.
void run_empty_sums(const Matmul& op, const MatmulLayout& layout,
                    const cuda::LaunchContext& context) {
  auto size = static_cast<std::size_t>(itemsize(op.c.view.dtype));
  for (std::int64_t i = 0; i < layout.outer_count; ++i) {
    std::int64_t offset[3];
    layout.offsets(i, offset);
    char* c = op.c.view.data + offset[2];
    for (std::int64_t b = 0; b < layout.batch; ++b) {
      char* matrix = c + b * layout.c_stride * static_cast<std::int64_t>(size);
      RENSA_CUDA_CHECK(op.name(),
                       cudaMemset2DAsync(matrix, static_cast<std::size_t>(layout.c_ld) * size, 0,
                                         static_cast<std::size_t>(layout.n) * size,
                                         static_cast<std::size_t>(layout.m),
                                         static_cast<cudaStream_t>(context.handle)));
    }
    if (has_end(op)) {
      cuda::launch_matmul_epilogue(op.c.view.dtype, epilogue_args(op, layout, c), context);
    }
  }
}

/// The thread's stream on the product's device.
cudaStream_t current_stream(const Matmul& op) {
  return static_cast<cudaStream_t>(cuda::current_stream_state(op.c.view.device)->handle());
}

/// The plan of a product that is launched on `stream` now.
const cuda::MatmulPlan& plan_on(cudaStream_t stream, const Matmul& op, const MatmulLayout& layout) {
  return cuda::matmul_plan(plan_key(op, layout), op.c.view.device, stream);
}

/// The plan by which one kernel, or cuBLASLt, computes the whole product on `stream`; null where
/// there is none. On a GPU.
const cuda::MatmulPlan* plan_alone(cudaStream_t stream, const Matmul& op) {
  if (is_integral(op.c.view.dtype)) return nullptr;
  MatmulLayout layout = matmul_layout(op.a.view, op.b.view, op.c.view);
  if (layout.empty() || layout.k == 0 || layout.outer_count != 1) return nullptr;
  if (cuda::is_long_dot(op, layout)) return nullptr;  // added in another order
  return &plan_on(stream, op, layout);
}
/// The same on the thread's stream; null on the CPU.
const cuda::MatmulPlan* plan_alone(const Matmul& op) {
  return op.c.view.device.is_cpu() ? nullptr : plan_alone(current_stream(op), op);
}

/// The kind of kernel that computes the whole product alone; cublaslt where there is none of ours.
cuda::PlanKind kind_alone(const Matmul& op) {
  const cuda::MatmulPlan* plan = plan_alone(op);
  return plan ? plan->choice.kind : cuda::PlanKind::cublaslt;
}

/// Whether the plan's kernel does SGD's update with what `op`, which it computes alone, stores.
bool takes_update(const Matmul& op, const cuda::MatmulPlan& plan) {
  const PlanKey& key = plan.key;
  return plan.choice.kind == cuda::PlanKind::tiles && op.alpha == 1 && !has_end(op) &&
         cuda::takes_update(key, plan.choice.form) && key.c_ld == key.n;
}

/// Without addresses, or a context.
cuda::MatmulRun matmul_run(const Matmul& op) {
  cuda::MatmulRun run;
  if (op.bias.present()) {
    run.bias = op.bias.view.data;
    run.bias_stride = op.bias.view.strides[0] / itemsize(op.bias.view.dtype);
  }
  run.a_settled = op.a.settled;
  run.b_settled = op.b.settled;
  run.alpha = op.alpha;
  run.activation = op.activation;
  return run;
}
void set_addresses(const Matmul& op, const std::int64_t (&offset)[3], cuda::MatmulRun& run) {
  run.a = op.a.view.data + offset[0];
  run.b = op.b.view.data + offset[1];
  run.c = op.c.view.data + offset[2];
  run.gate = op.gate.present() ? op.gate.view.data + offset[2] : nullptr;
}

}  // namespace

std::size_t Matmul::workspace_bytes() const {
  if (c.view.device.is_cpu() || is_integral(c.view.dtype)) return 0;
  MatmulLayout layout = matmul_layout(a.view, b.view, c.view);
  if (layout.empty() || layout.k == 0) return 0;
  if (cuda::is_long_dot(*this, layout)) return cuda::long_dot_workspace_bytes(*this, layout);
  return plan_on(current_stream(*this), *this, layout).choice.workspace;
}

bool Matmul::takes_ends() const { return kind_alone(*this) != cuda::PlanKind::cublaslt; }
bool Matmul::has_rows() const { return cuda::dot_rows(*this).has_value(); }
bool Matmul::takes_update() const {
  const cuda::MatmulPlan* plan = plan_alone(*this);
  return plan && operations::takes_update(*this, *plan);
}
bool Matmul::adds_in_order() const { return kind_alone(*this) == cuda::PlanKind::outer; }

void Matmul::run_cuda(const cuda::LaunchContext& context) {
  MatmulLayout layout = matmul_layout(a.view, b.view, c.view);
  auto stream = static_cast<cudaStream_t>(context.handle);
  if (layout.empty()) return;
  if (is_integral(c.view.dtype)) return run_integers(*this, layout, context);
  if (layout.k == 0) return run_empty_sums(*this, layout, context);
  if (cuda::is_long_dot(*this, layout)) return cuda::run_long_dot(*this, layout, context);

  PlanKey key = plan_key(*this, layout);
  const cuda::MatmulPlan* plan = &cuda::matmul_plan(key, context.device, stream);
  if (plan->choice.workspace > context.workspace_bytes) {
    // The workspace was asked for with other addresses, whose alignment allowed another plan.
    key.workspace_limit = static_cast<std::int64_t>(context.workspace_bytes);
    plan = &cuda::matmul_plan(key, context.device, stream);
  }
  cuda::MatmulRun run = matmul_run(*this);
  run.context = context;
  for (std::int64_t i = 0; i < layout.outer_count; ++i) {
    std::int64_t offset[3];
    layout.offsets(i, offset);
    set_addresses(*this, offset, run);
    cublasStatus_t status = cuda::run_plan(*plan, run);
    if (status != CUBLAS_STATUS_SUCCESS) {
      throw CudaError(fmt::format("{}: cublasLtMatmul says {} for {} @ {} -> {}", name(),
                                  cuda::cublaslt().status_name(status), a.view.describe(),
                                  b.view.describe(), c.view.describe()));
    }
  }
}

}  // namespace rensa::operations

namespace rensa::cuda {

std::optional<DotRows> dot_rows(const operations::Matmul& product) {
  if (product.c.view.ndim() != 2 || operations::kind_alone(product) != PlanKind::dot) {
    return std::nullopt;
  }
  MatmulLayout layout = matmul_layout(product.a.view, product.b.view, product.c.view);
  MatmulRun run = operations::matmul_run(product);
  operations::set_addresses(product, {0, 0, 0}, run);
  return dot_rows(operations::plan_key(product, layout), run);
}

bool run_with_update(const operations::Matmul& product, const SgdUpdate& update,
                     const LaunchContext& context) {
  auto stream = static_cast<cudaStream_t>(context.handle);
  const MatmulPlan* plan = operations::plan_alone(stream, product);
  if (!plan || !operations::takes_update(product, *plan) || !is_aligned(update.parameter, 16)) {
    return false;
  }
  MatmulRun run = operations::matmul_run(product);
  operations::set_addresses(product, {0, 0, 0}, run);
  run.update = update;
  run.context = context;
  run_tiles(plan->key, plan->choice.form, run);
  return true;
}

}  // namespace rensa::cuda
