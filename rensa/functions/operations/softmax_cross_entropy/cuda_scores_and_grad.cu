// A product that gives the scores of classes, whose kernel makes softmax cross entropy's gradient
// of a row of them as soon as it has it.
#include <algorithm>
#include <optional>

#include "rensa/functions/operations/softmax_cross_entropy/cuda_short_rows.cuh"
#include "rensa/functions/operations/softmax_cross_entropy/scores_and_grad.h"
#include "rensa/operations/matmul/cuda_dot_rows.cuh"

namespace rensa::cuda {

namespace {

/// The gradient of a row of scores: as softmax_cross_entropy_grad_of_short_rows, where a thread has
/// one element. A group of more threads than there are classes adds zeros, which change no bits.
class GradOfScores;

struct ScoresArgs : SkinnyArgs {
  using Rows = GradOfScores;
  LossGradArgs grad;
  float* back;  // null, or where the gradient of x goes, C-contiguous
  float back_alpha;
  bool back_has_gate;  // which x is
};

class GradOfScores {
 public:
  __device__ __forceinline__ GradOfScores(const ScoresArgs& args, int row)
      : row_(row), gy_(args.grad.gy.load<float>(0)) {
    if (row < args.length) label_ = args.grad.t.load_index(row);
    if (args.grad.normalize) {
      counted_ = count_labels_of_thread(args.grad, static_cast<int>(blockDim.x));
    }
  }
  __device__ __forceinline__ void gather() {
    counted_ = join_all_lanes<SumOf<int>>(counted_, 32);
    if (threadIdx.x % 32 == 0) counted_of_warps()[threadIdx.x / 32] = counted_;
  }
  template <int kGroup>
  __device__ __forceinline__ void store(const ScoresArgs& args, int column, bool there,
                                        float score) const {
    float x = there ? score : m::lowest<float>();
    float greatest = join_all_lanes<MaxOf<float>>(x, kGroup);
    float power = there ? m::exp(x - greatest) : 0.0f;
    float log_sum = m::log(join_all_lanes<SumOf<float>>(power, kGroup));
    float gx = 0.0f;
    if (there) {
      GradOfRow<float> grad(greatest, log_sum, gy_, count(args), label_);
      gx = grad.template of<false>(x, column == label_ ? 1.0f : 0.0f);
      if (label_ == args.grad.ignore_label) gx = 0.0f;
      args.grad.gx.as<float>()[row_ * args.grad.classes + column] = gx;
    }
    if (threadIdx.x < kMostGrads) grads_of_block()[threadIdx.x] = gx;
  }
  /// The gradient of x, by sums as outer_kernel's: zeros that are added make +0 of -0.
  template <int kGroup, int S, int R, int W>
  __device__ __forceinline__ void finish(const ScoresArgs& args, int row0,
                                         DotPacks<S, R, W> packs) const {
    static_assert(R * kGroup <= kMostGrads);
    if (!args.back) return;
    __syncthreads();
    int step = static_cast<int>(blockDim.x) * W;
    bool kept = args.k <= step;  // the packs are all that the thread has of the operands
    for (int i = static_cast<int>(threadIdx.x) * W; i < args.k; i += step) {
      if (!kept) {
        if (args.back_has_gate) packs.load_long(args, row0, i);
        packs.load_short(args, i);
      }
      Pack<float, W> sum[R] = {};
#pragma unroll
      for (int s = 0; s < S; ++s) {
        Pack<float, W> y = {};
        if (s < args.count) y = packs.short_pack(args, s, i);
#pragma unroll
        for (int r = 0; r < R; ++r) {
          float grad = grads_of_block()[r * kGroup + s];
#pragma unroll
          for (int w = 0; w < W; ++w) sum[r].value[w] = fmaf(grad, y.value[w], sum[r].value[w]);
        }
      }
#pragma unroll
      for (int r = 0; r < R; ++r) {
        if (row0 + r >= args.length) break;
#pragma unroll
        for (int w = 0; w < W; ++w) {
          float value =
              cuda::finish<float>(sum[r].value[w], args.back_alpha, bias_of<float>(nullptr, i),
                                  operations::Activation::none);
          bool open = !args.back_has_gate || is_open(packs.x[r].value, w);
          sum[r].value[w] = open ? value : 0.0f;
        }
        std::int64_t at = static_cast<std::int64_t>(row0 + r) * args.k + i;
        *reinterpret_cast<Pack<float, W>*>(args.back + at) = sum[r];
      }
    }
  }

 private:
  static constexpr int kMostGrads = 64;  // of a block's rows
  static __device__ __forceinline__ float* grads_of_block() {
    __shared__ float grads[kMostGrads];
    return grads;
  }
  static __device__ __forceinline__ int* counted_of_warps() {
    __shared__ int counted[kMaxDotWarps];
    return counted;
  }
  __device__ __forceinline__ float count(const ScoresArgs& args) const {
    if (!args.grad.normalize) return static_cast<float>(args.grad.rows);
    int counted = 0;
    for (int w = 0; w < static_cast<int>(blockDim.x) / 32; ++w) counted += counted_of_warps()[w];
    return static_cast<float>(counted < 1 ? 1 : counted);
  }
  int row_, counted_ = 0;
  long long label_ = 0;
  float gy_;
};

}  // namespace

}  // namespace rensa::cuda

namespace rensa::operations {

std::size_t ScoresAndGrad::workspace_bytes() const {
  ScoresAndGrad connected = *this;
  connected.connect();
  return std::max(product.workspace_bytes(), has_back() ? connected.back.workspace_bytes() : 0);
}

void ScoresAndGrad::run_cuda(const cuda::LaunchContext& context) {
  connect();
  std::optional<cuda::DotRows> rows = cuda::dot_rows(product);
  bool fits = rows.has_value();
  if (fits && has_back()) {
    fits = back.adds_in_order() && (!rows->vectors || cuda::is_aligned(back.c.view.data, 16));
  }
  if (!fits) {
    // They have other addresses than when they were joined.
    product.run_cuda(context);
    grad.run_cuda(context);
    if (has_back()) back.run_cuda(context);
    return;
  }
  cuda::ScoresArgs args{};
  static_cast<cuda::SkinnyArgs&>(args) = rows->args;
  args.grad.t = cuda::FlatView(grad.t.view);
  args.grad.gy = cuda::FlatView(grad.gy.view, compute_type(float32));
  args.grad.gx = cuda::FlatView(grad.gx.view);
  args.grad.rows = product.c.view.shape[0];
  args.grad.classes = product.c.view.shape[1];
  args.grad.ignore_label = grad.ignore_label;
  args.grad.normalize = grad.normalize;
  if (has_back()) args.back = reinterpret_cast<float*>(back.c.view.data);
  args.back_alpha = static_cast<float>(back.alpha);
  args.back_has_gate = back.gate.present();
  cuda::launch_dot_rows(args, rows->vectors, context);
}

}  // namespace rensa::operations
