// Calls of fused functions: traced, planned, launched.
#include "rensa/kernel/fuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/kernel/elementwise_launch.h"
#include "rensa/kernel/fused_plan.h"
#include "rensa/kernel/reduction_launch.h"

namespace rensa::detail {

class FusedState {
 public:
  using Steps = std::shared_ptr<const std::vector<FusedStep>>;

  /// The kernels for a trace.
  Steps plan(const Trace& trace, const std::vector<int>& outputs) {
    std::string key = trace.key(outputs);
    std::lock_guard<std::mutex> hold(mutex_);
    auto known = plans_.find(key);
    if (known != plans_.end()) return known->second;
    auto steps = std::make_shared<const std::vector<FusedStep>>(
        plan_fusion(trace.values(), outputs, programs_));
    constexpr std::size_t kMost = 1024;  // plans are by shape, and quickly made
    if (plans_.size() >= kMost) plans_.clear();
    plans_.emplace(std::move(key), steps);
    return steps;
  }

  std::atomic<int> kernels{0};  // of the latest call

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, Steps> plans_;
  FusedPrograms programs_;
};

std::shared_ptr<FusedState> make_fused_state() { return std::make_shared<FusedState>(); }
int kernels_of(const FusedState& state) { return state.kernels; }
bool is_tracing() { return current_tracer != nullptr; }

struct FusedCall::Impl {
  FusedState& state;
  Trace trace;
  bool tracing = true;

  explicit Impl(FusedState& s) : state(s), trace(ThreadState::current().recorder) {
    current_tracer = &trace;
    ThreadState::current().recorder = &trace;
  }
  ~Impl() { stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void stop() {
    if (!tracing) return;
    tracing = false;
    current_tracer = nullptr;
    ThreadState::current().recorder = trace.outer();
  }
};

namespace {

/// The arrays that kernels make, and where these stand, by value.
struct Made {
  explicit Made(std::size_t values) : arrays(values), places(values) {}
  std::vector<Array> arrays;
  std::vector<Operand> places;
};

/// What a step's kernel is launched with; makes its outputs.
std::vector<KernelOperand> prepare(const FusedStep& step, const std::vector<TracedValue>& values,
                                   Made& made) {
  for (int output : step.outputs) {
    auto v = static_cast<std::size_t>(output);
    made.arrays[v] = new_array(values[v].shape, values[v].dtype, values[v].device);
    made.places[v] = made.arrays[v].operand();
  }
  return operands_of(step, values, made.places);
}

void run_step(const FusedStep& step, const std::vector<TracedValue>& values, Made& made) {
  std::vector<KernelOperand> operands = prepare(step, values, made);
  Device device = values[static_cast<std::size_t>(step.outputs.front())].device;
  FusedProgram& program = *step.program;
  if (step.reduction) {
    launch_reduction(program.reduction, program.compiled, program.name, operands, step.shape,
                     step.axes, device);
  } else {
    launch_elementwise(program.elementwise, program.compiled, program.name, operands, step.shape,
                       device);
  }
}

std::string source_of(const FusedStep& step, const std::vector<TracedValue>& values, Made& made) {
  std::vector<KernelOperand> operands = prepare(step, values, made);
  if (step.reduction) {
    const ReductionText& text = step.program->reduction;
    ReductionPlan plan = plan_reduction(text, operands, step.shape, step.axes, false);
    return reduction_source(text, plan.layout);
  }
  std::vector<ArrayView> views;
  Shape extents;
  ElementwiseLayout layout = find_layout(operands, step.shape, false, &views, &extents);
  return elementwise_source(step.program->elementwise, layout);
}

/// The values that the results show.
std::vector<int> outputs_of(const Trace& trace, const std::vector<Array*>& results) {
  std::vector<int> outputs;
  for (const Array* result : results) {
    if (!result->defined() || !trace.is_symbolic(*result)) continue;
    int value = trace.value_of(*result);
    if (value < 0 && result->size() != 0) {
      throw NotImplementedError("fuse: the function returns an array that it wrote nothing to");
    }
    if (value >= 0 && std::find(outputs.begin(), outputs.end(), value) == outputs.end()) {
      outputs.push_back(value);
    }
  }
  return outputs;
}

}  // namespace

FusedCall::FusedCall(FusedState& state) : impl_(std::make_unique<Impl>(state)) {}
FusedCall::~FusedCall() = default;

void FusedCall::finish(const std::vector<Array*>& results) {
  impl_->stop();
  const Trace& trace = impl_->trace;
  std::vector<int> outputs = outputs_of(trace, results);
  Made made(trace.values().size());
  int kernels = 0;
  if (!outputs.empty()) {
    FusedState::Steps steps = impl_->state.plan(trace, outputs);
    for (const FusedStep& step : *steps) run_step(step, trace.values(), made);
    kernels = static_cast<int>(steps->size());
  }
  impl_->state.kernels = kernels;
  for (Array* result : results) {
    if (!result->defined() || !trace.is_symbolic(*result)) continue;
    int value = trace.value_of(*result);
    if (value < 0) {
      *result = new_array(result->shape(), result->dtype(), result->device());
      continue;
    }
    const Array& whole = made.arrays[static_cast<std::size_t>(value)];
    ArrayView view = result->view();
    view.data = whole.view().data + trace.offset_of(*result);
    *result = Array(whole.storage(), view);
  }
}

std::vector<std::string> FusedCall::sources(const std::vector<Array*>& results) {
  impl_->stop();
  const Trace& trace = impl_->trace;
  std::vector<std::string> sources;
  std::vector<int> outputs = outputs_of(trace, results);
  if (outputs.empty()) return sources;
  Made made(trace.values().size());
  FusedState::Steps steps = impl_->state.plan(trace, outputs);
  for (const FusedStep& step : *steps) sources.push_back(source_of(step, trace.values(), made));
  return sources;
}

}  // namespace rensa::detail
