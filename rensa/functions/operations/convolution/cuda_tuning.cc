// Choosing a plan by timing. Each candidate runs on scratch memory.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "rensa/backend/cuda/timing.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/device/memory_pool.h"
#include "rensa/device/storage.h"
#include "rensa/device/stream.h"
#include "rensa/device/stream_state.h"
#include "rensa/functions/operations/convolution/cuda_plan.h"
#include "rensa/operations/matmul/cuda_kernels.h"

namespace rensa::cuda {

namespace {

using operations::Convolution;
using operations::ConvolutionDirection;

constexpr const char* kOperation = "convolution: timing of plans";
constexpr float kTooSlow = 4;  // as often as long as the fastest so far: not looked at closely

/// The operation on scratch operands, and the clock.
class Bench {
 public:
  Bench(const Convolution& given, std::size_t workspace)
      : op_(given),
        stream_(given.x.view.device, non_blocking),
        scope_(stream_),
        timer_(kOperation, handle()) {
    unsigned seed = 0;
    for (Operand* operand : {&op_.x, &op_.w, &op_.y}) put_scratch(*operand, ++seed);
    if (op_.bias.present()) put_scratch(op_.bias, ++seed);
    second_ = made(op_);
    put_scratch(second_, ++seed);
    context_ = make_context(stream_.state(), 0);
    context_.workspace = workspace > 0 ? scratch(static_cast<std::int64_t>(workspace)) : nullptr;
    context_.workspace_bytes = workspace;
    differs_ = reinterpret_cast<unsigned*>(scratch(sizeof(unsigned)));
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() {
    memory_.clear();
    memory_pool(stream_.state()->device()).free_all_blocks(stream_.state());
  }

  /// Whether the plan runs, and gives the same bits twice where it has to.
  bool is_usable(const CudnnPlan& plan) {
    Convolution again = op_;
    made(again) = second_;
    if (!plan.try_run(op_, context_) || !plan.try_run(again, context_)) return false;
    return !op_.deterministic || is_same_memory(kOperation, made(op_).view.data, second_.view.data,
                                                second_.view.nbytes(), differs_, handle());
  }

  /// Microseconds of one run, with what the host needs to queue it.
  float once(const CudnnPlan& plan) { return timer_.once(queue_of(plan)); }
  /// Of the GPU alone: the median of `rounds`.
  float median(const CudnnPlan& plan, int rounds) { return timer_.median(rounds, queue_of(plan)); }

 private:
  static Operand& made(Convolution& op) {
    switch (op.direction) {
      case ConvolutionDirection::input_gradient: return op.x;
      case ConvolutionDirection::weight_gradient: return op.w;
      case ConvolutionDirection::forward: break;
    }
    return op.y;
  }

  cudaStream_t handle() const { return static_cast<cudaStream_t>(stream_.handle()); }
  RunTimer::Queue queue_of(const CudnnPlan& plan) {
    return [this, &plan] { return plan.try_run(op_, context_); };
  }

  char* scratch(std::int64_t nbytes) {
    memory_.push_back(allocate(nbytes, stream_.state()->device()));
    return memory_.back()->data();
  }
  void put_scratch(Operand& operand, unsigned seed) {
    ArrayView& view = operand.view;
    view.data = scratch(view.nbytes());
    operand.storage = memory_.back().get();
    launch_fill_pattern(view.dtype, view.data, view.size(), seed, handle());
  }

  Convolution op_;
  Stream stream_;
  StreamScope scope_;
  RunTimer timer_;
  std::vector<StoragePtr> memory_;
  Operand second_;  // what a second run makes
  LaunchContext context_{};
  unsigned* differs_ = nullptr;
};

struct Timed {
  float time;
  std::size_t place;
};

bool is_faster(const Timed& a, const Timed& b) { return a.time < b.time; }

/// The bench for `plans`; none where there is no room for the scratch. Waits for the device: work
/// that is still queued would be timed with the candidates.
void make_bench(const Convolution& op, const ConvolutionPlans& plans, std::optional<Bench>* bench) {
  synchronize(op.x.view.device);
  std::size_t workspace = 0;
  for (const auto& plan : plans) workspace = std::max(workspace, plan->workspace_bytes(op));
  try {
    bench->emplace(op, workspace);
  } catch (const OutOfMemoryError&) {
    bench->reset();
  }
}

[[noreturn]] void throw_none_runs(const Convolution& op, std::size_t count) {
  throw CudaError(fmt::format("{}: none of cuDNN's {} plans for x {}, W {} and y {} runs",
                              op.name(), count, op.x.view.describe(), op.w.view.describe(),
                              op.y.view.describe()));
}

}  // namespace

std::optional<std::size_t> fastest_plan(const Convolution& op, const ConvolutionPlans& plans) {
  RecorderScope apart(nullptr);
  std::optional<Bench> bench;
  make_bench(op, plans, &bench);
  if (!bench) return std::nullopt;
  std::vector<Timed> timed;
  float least = 0;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!bench->is_usable(*plans[i])) continue;
    float once = bench->once(*plans[i]);
    if (!timed.empty() && once > kTooSlow * least) continue;
    least = timed.empty() ? once : std::min(least, once);
    timed.push_back({bench->median(*plans[i], 5), i});
  }
  if (timed.empty()) throw_none_runs(op, plans.size());
  std::sort(timed.begin(), timed.end(), is_faster);
  timed.resize(std::min<std::size_t>(timed.size(), 4));
  for (Timed& t : timed) t.time = bench->median(*plans[t.place], 21);
  return std::min_element(timed.begin(), timed.end(), is_faster)->place;
}

std::optional<std::size_t> first_fast_plan(const Convolution& op, const ConvolutionPlans& plans) {
  RecorderScope apart(nullptr);
  std::optional<Bench> bench;
  make_bench(op, plans, &bench);
  if (!bench) return std::nullopt;
  std::vector<Timed> timed;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (bench->is_usable(*plans[i])) timed.push_back({bench->once(*plans[i]), i});
  }
  if (timed.empty()) throw_none_runs(op, plans.size());
  float least = std::min_element(timed.begin(), timed.end(), is_faster)->time;
  return std::find_if(timed.begin(), timed.end(),
                      [&](const Timed& t) { return t.time <= kTooSlow * least; })
      ->place;
}

}  // namespace rensa::cuda
