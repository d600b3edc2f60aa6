// Calls of fused functions: traced, planned, launched.
#include "rensa/kernel/fuse.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <unordered_map>

#include "rensa/array/internal.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/launcher.h"
#include "rensa/kernel/elementwise_launch.h"
#include "rensa/kernel/fused_plan.h"
#include "rensa/kernel/reduction_launch.h"

namespace rensa::detail {

class FusedState {
 public:
  using Steps = std::shared_ptr<const std::vector<FusedStep>>;

  /// The kernels for a trace; sets `fresh` where they had to be planned.
  Steps plan(const Trace& trace, const std::vector<int>& outputs, bool& fresh) {
    fresh = false;
    std::string key = trace.key(outputs);
    std::lock_guard<std::mutex> hold(mutex_);
    auto known = plans_.find(key);
    if (known != plans_.end()) return known->second;
    fresh = true;
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
    trace.end();
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

Device device_of(const FusedStep& step, const std::vector<TracedValue>& values) {
  return values[static_cast<std::size_t>(step.outputs.front())].device;
}

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

operations::RuntimeKernel kernel_of(const FusedStep& step,
                                    const std::vector<KernelOperand>& operands, Device device) {
  FusedProgram& program = *step.program;
  if (step.reduction) {
    return make_reduction(program.reduction, program.compiled, program.name, operands, step.shape,
                          step.axes, device);
  }
  return make_elementwise(program.elementwise, program.compiled, program.name, operands, step.shape,
                          device);
}

/// Has the steps' kernels compiled, side by side, as those of results that lie as new arrays do.
/// Whatever fails fails once more when the step runs.
void compile(const std::vector<FusedStep>& steps, const std::vector<TracedValue>& values) {
  std::vector<Operand> places(values.size());
  for (std::size_t v = 0; v < values.size(); ++v) {
    const TracedValue& value = values[v];
    places[v].view = {reinterpret_cast<char*>(4096), value.dtype, value.device, value.shape,
                      contiguous_strides(value.shape, itemsize(value.dtype))};
  }
  std::atomic<std::size_t> next{0};
  auto work = [&] {
    for (std::size_t k = next++; k < steps.size(); k = next++) {
      try {
        kernel_of(steps[k], operands_of(steps[k], values, places), device_of(steps[k], values));
      } catch (const Error&) {}
    }
  };
  std::vector<std::thread> helpers;
  try {
    std::size_t wanted = std::min<std::size_t>(std::thread::hardware_concurrency(), steps.size());
    while (helpers.size() + 1 < wanted) helpers.emplace_back(work);
  } catch (const std::system_error&) {}  // no more threads to be had
  work();
  for (std::thread& helper : helpers) helper.join();
}

void run_step(const FusedStep& step, const std::vector<TracedValue>& values, Made& made) {
  std::vector<KernelOperand> operands = prepare(step, values, made);
  operations::RuntimeKernel kernel = kernel_of(step, operands, device_of(step, values));
  launch(kernel);
  for (int v : step.finished) made.arrays[static_cast<std::size_t>(v)] = Array();
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
    bool fresh = false;
    FusedState::Steps steps = impl_->state.plan(trace, outputs, fresh);
    if (fresh && steps->size() > 1) compile(*steps, trace.values());
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
  bool fresh = false;
  FusedState::Steps steps = impl_->state.plan(trace, outputs, fresh);
  for (const FusedStep& step : *steps) sources.push_back(source_of(step, trace.values(), made));
  return sources;
}

}  // namespace rensa::detail
