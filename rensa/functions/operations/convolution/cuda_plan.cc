// Which of cuDNN's engines computes a convolution.
#include "rensa/functions/operations/convolution/cuda_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "rensa/backend/cuda/device_class.h"
#include "rensa/backend/cuda/plan_texts.h"
#include "rensa/backend/cuda/timing.h"
#include "rensa/core/error.h"
#include "rensa/device/cuda_runtime.h"
#include "rensa/device/limits.h"
#include "rensa/device/stream.h"
#include "rensa/device/stream_state.h"

namespace rensa::cuda {

namespace {

using operations::Convolution;
using operations::ConvolutionDirection;
using Numbers = std::vector<std::int64_t>;

constexpr std::size_t kMaxPlans = 512;

std::int64_t workspace_limit() {
  constexpr std::size_t kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::min(get_max_workspace_size(), kMost));
}

/// All that a choice depends on beside the GPU and cuDNN's version.
Numbers signature(const Convolution& op) {
  constexpr std::size_t kLongest = 64;  // more than three axes need, with what the caller adds
  Dtype dtype = op.x.view.dtype;
  Numbers key;
  key.reserve(kLongest);  // each call of a convolution makes one
  key = {static_cast<std::int64_t>(op.direction),
         static_cast<std::int64_t>(dtype),
         op.tf32 && dtype == float32,
         op.autotune,
         op.deterministic,
         workspace_limit(),
         op.channels_last,
         op.bias.present()};
  for (const Shape* shape :
       {&op.x.view.shape, &op.w.view.shape, &op.y.view.shape, &op.stride, &op.pad, &op.dilate}) {
    key.push_back(shape->size());
    key.insert(key.end(), shape->begin(), shape->end());
  }
  return key;
}

/// How plan files name it.
std::string text_of(const Numbers& signature) {
  return fmt::format("convolution {} {}", cudnn().version(), fmt::join(signature, " "));
}

/// Whether a bias is best left to cuDNN. For convolutions of groups and float64 it has fewer
/// engines that add one.
bool prefers_fused(const Convolution& op) {
  return op.w.view.shape[1] == op.x.view.shape[1] && op.x.view.dtype != float64;
}

/// Ways to compute the operation. The caller holds the GPU's handle while it lives.
class Candidates {
 public:
  Candidates(const Convolution& op, const CudnnHandle& handle) : op_(op), handle_(handle) {}

  /// How many ways have been looked at.
  std::size_t count() const { return count_; }
  /// The first one that cuDNN can do within the limit; null where there is none.
  std::shared_ptr<const CudnnPlan> first() {
    for (Epilogue epilogue : epilogues()) {
      Ways ways = ways_with(epilogue);
      for (CudnnDescriptor& config : ways.configs) {
        if (auto plan = make(ways, config)) return plan;
      }
    }
    return nullptr;
  }
  /// The one that is `choice`; null where cuDNN does not propose it, or cannot do it.
  std::shared_ptr<const CudnnPlan> chosen(const ConvolutionChoice& choice) {
    for (Epilogue epilogue : epilogues()) {
      if (choice.bias != (epilogue == Epilogue::bias)) continue;
      Ways ways = ways_with(epilogue);
      for (CudnnDescriptor& config : ways.configs) {
        if (ways.graph->choice_of(op_, config) == choice) return make(ways, config);
      }
    }
    return nullptr;
  }
  /// All that cuDNN can do within the limit, each once.
  ConvolutionPlans all() {
    ConvolutionPlans plans;
    for (Epilogue epilogue : epilogues()) {
      Ways ways = ways_with(epilogue);
      std::vector<ConvolutionChoice> known;
      for (CudnnDescriptor& config : ways.configs) {
        ConvolutionChoice choice = ways.graph->choice_of(op_, config);
        if (std::find(known.begin(), known.end(), choice) != known.end()) continue;
        known.push_back(std::move(choice));
        if (auto plan = make(ways, config)) plans.push_back(std::move(plan));
      }
    }
    return plans;
  }

 private:
  struct Ways {
    std::shared_ptr<const ConvolutionGraph> graph;
    std::vector<CudnnDescriptor> configs;
  };

  /// The better one first.
  std::vector<Epilogue> epilogues() const {
    bool fuses = op_.bias.present() && op_.direction == ConvolutionDirection::forward;
    if (!fuses) return {Epilogue::none};
    if (prefers_fused(op_)) return {Epilogue::bias, Epilogue::none};
    return {Epilogue::none, Epilogue::bias};
  }
  Ways ways_with(Epilogue epilogue) {
    auto graph = std::make_shared<const ConvolutionGraph>(op_, epilogue, handle_);
    std::vector<CudnnDescriptor> configs = graph->proposals(op_);
    count_ += configs.size();
    return {std::move(graph), std::move(configs)};
  }
  std::shared_ptr<const CudnnPlan> make(const Ways& ways, CudnnDescriptor& config) {
    auto execution =
        ConvolutionExecution::make(op_, ways.graph, std::move(config), workspace_limit());
    if (!execution) return nullptr;
    return std::make_shared<const CudnnPlan>(std::move(*execution));
  }

  const Convolution& op_;
  const CudnnHandle& handle_;
  std::size_t count_ = 0;
};

[[noreturn]] void throw_no_engine(const Convolution& op, std::size_t count) {
  const std::string& refusal = CudnnDescriptor::refusal();
  throw NotImplementedError(fmt::format(
      "{}: none of the {} {}engines that cuDNN proposes for x {}, W {} and y {}, stride {}, pad "
      "{}, dilate {}, groups {} can be had with at most {} bytes of workspace; "
      "cuda::set_max_workspace_size allows more{}{}{}",
      op.name(), count, op.deterministic ? "deterministic " : "", op.x.view.describe(),
      op.w.view.describe(), op.y.view.describe(), op.stride.str(), op.pad.str(), op.dilate.str(),
      op.groups, workspace_limit(),
      op.deterministic ? ", config().cudnn_deterministic = false other engines" : "",
      refusal.empty() ? "" : ". The latest that was declined: ", refusal));
}

/// Whether cuDNN's first proposal is not to be trusted (see convolution_plan).
bool doubts_heuristic(const Convolution& op) {
  constexpr std::int64_t kWorthTiming = std::int64_t{1} << 31;  // products added up
  const Shape& w = op.w.view.shape;
  return op.direction == ConvolutionDirection::input_gradient && op.x.view.dtype == float32 &&
         !op.tf32 && op.stride.size() != 2 &&
         op.y.view.size() >= kWorthTiming / (op.w.view.size() / w[0]);
}

struct MadePlan {
  std::shared_ptr<const CudnnPlan> plan;
  bool is_settled = true;  // false: to be tuned, for which there was no memory
};

bool is_captured(const Convolution& op) {
  return is_capturing(static_cast<cudaStream_t>(current_stream_state(op.x.view.device)->handle()));
}

/// Chooses and makes a plan. `text` is what a plan file has for it, if anything.
MadePlan make_plan(const Convolution& op, const std::optional<std::string>& text) {
  runtime::set_device(op.x.view.device);
  ConvolutionPlans plans;
  bool doubts = !op.autotune && doubts_heuristic(op), check = doubts && !is_captured(op);
  {
    CudnnHandle handle(op.name(), op.x.view.device);
    Candidates candidates(op, handle);
    if (auto choice = text ? ConvolutionChoice::parse(*text) : std::nullopt) {
      if (auto plan = candidates.chosen(*choice)) return {plan};
    }
    if (op.autotune || check) plans = candidates.all();
    else if (auto plan = candidates.first()) plans.push_back(std::move(plan));
    if (plans.empty()) throw_no_engine(op, candidates.count());
  }
  if (plans.size() == 1) return {plans.front(), check || !doubts};
  std::optional<std::size_t> fastest = check ? first_fast_plan(op, plans) : fastest_plan(op, plans);
  return {plans[fastest.value_or(0)], fastest.has_value()};
}

class PlanCache {
 public:
  std::shared_ptr<const CudnnPlan> find(const Numbers& key) {
    std::lock_guard hold(mutex_);
    if (std::uint64_t loaded = plan_texts_loaded(); loaded != loaded_) {
      plans_.clear();
      places_.clear();
      loaded_ = loaded;
    }
    auto found = places_.find(key);
    if (found == places_.end()) return nullptr;
    plans_.splice(plans_.begin(), plans_, found->second);
    return plans_.front().plan;
  }

  /// Plans are made one at a time: threads that want the same one wait for it.
  std::shared_ptr<const CudnnPlan> find_or_make(const Convolution& op, const Numbers& key,
                                                const Numbers& signature) {
    std::lock_guard alone(making_);
    if (auto plan = find(key)) return plan;
    int gpus = device_class(op.x.view.device);
    std::string text = text_of(signature);
    std::uint64_t loaded = 0;
    MadePlan made;
    do {  // anew where a file was loaded meanwhile, whose choice it then is
      loaded = plan_texts_loaded();
      made = make_plan(op, find_plan_text(gpus, text));
    } while (loaded != plan_texts_loaded());
    auto& plan = made.plan;
    if (made.is_settled) keep_plan_text(gpus, text, plan->choice(op).str());
    std::lock_guard hold(mutex_);
    if (plans_.size() >= kMaxPlans) {
      places_.erase(plans_.back().key);
      plans_.pop_back();
    }
    plans_.push_front({key, plan});
    places_[key] = plans_.begin();
    return plan;
  }

 private:
  struct Entry {
    Numbers key;
    std::shared_ptr<const CudnnPlan> plan;
  };
  std::mutex making_;
  std::mutex mutex_;  // of what follows
  std::uint64_t loaded_ = 0;
  std::list<Entry> plans_;  // the last used first
  std::map<Numbers, std::list<Entry>::iterator> places_;
};

// Its end is the process's: the driver may be gone by then.
PlanCache& plan_cache() {
  static PlanCache& cache = *new PlanCache;
  return cache;
}

}  // namespace

void CudnnPlan::look_for_relu(const Convolution& op) const {
  Device device = op.x.view.device;
  runtime::set_device(device);
  CudnnHandle handle(op.name(), device);
  auto graph = std::make_shared<const ConvolutionGraph>(op, Epilogue::bias_relu, handle);
  for (CudnnDescriptor& config : graph->proposals(op)) {
    if (graph->choice_of(op, config) != execution_.choice(op)) continue;
    auto made = ConvolutionExecution::make(op, graph, std::move(config), workspace_limit());
    if (made) with_relu_.emplace(std::move(*made));
    return;
  }
}

bool CudnnPlan::joins_relu(const Convolution& op) const {
  if (execution_.epilogue() != Epilogue::bias) return false;
  std::call_once(relu_asked_for_, [&] {
    try {
      look_for_relu(op);
    } catch (const Error&) {  // relu stays an operation of its own, as it was
    }
  });
  return with_relu_.has_value();
}

cudnnStatus_t CudnnPlan::queue(const Convolution& op, const LaunchContext& context) const {
  cudnnStatus_t status = (op.relu ? *with_relu_ : execution_).run(op, context);
  bool bias_is_left = op.bias.present() && execution_.epilogue() == Epilogue::none;
  if (status == CUDNN_STATUS_SUCCESS && bias_is_left) bias_addition(op).run_cuda(context);
  return status;
}

void CudnnPlan::run(const Convolution& op, const LaunchContext& context) const {
  check_cudnn(op.name(), "cudnnBackendExecute", "plan", queue(op, context));
}

bool CudnnPlan::try_run(const Convolution& op, const LaunchContext& context) const {
  return queue(op, context) == CUDNN_STATUS_SUCCESS;
}

std::shared_ptr<const CudnnPlan> convolution_plan(const Convolution& op) {
  Device device = op.x.view.device;
  Numbers key = signature(op);
  key.push_back(device.index);
  if (auto plan = plan_cache().find(key)) return plan;
  if (op.autotune && is_captured(op)) {
    Convolution untuned = op;
    untuned.autotune = false;
    return convolution_plan(untuned);
  }
  return plan_cache().find_or_make(op, key, signature(op));
}

}  // namespace rensa::cuda
