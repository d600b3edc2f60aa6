// The groups of a launch, and its numbers.
#include "rensa/optimizers/row_launch.h"

#include <utility>

#include "rensa/device/launcher.h"

namespace rensa {

void hold_recording_while(std::function<bool()> holds) {
  Recorder* recorder = ThreadState::current().recorder;
  if (!recorder) return;
  static const StoragePtr held = allocate(1, cpu());
  recorder->binding([holds = std::move(holds)] { return holds() ? held.get() : nullptr; });
}

bool RowLaunch::shares(const std::shared_ptr<UpdateRule>& first,
                       const std::shared_ptr<UpdateRule>& rule) {
  auto alike = [first, rule] {
    return first->t == rule->t && first->own_hyperparams() == rule->own_hyperparams();
  };
  if (!alike()) return false;
  if (ThreadState::current().recorder) hold_recording_while(alike);
  return true;
}

int RowLaunch::add_set(std::function<std::vector<double>()> numbers) {
  std::vector<double> values = numbers();
  set_size_ = static_cast<int>(values.size());
  int set = values.empty() ? 0 : static_cast<int>(hyperparameters_.size() / values.size());
  bool recording = ThreadState::current().recorder != nullptr;
  for (std::size_t i = 0; i < values.size(); ++i) {
    HostScalar& number = hyperparameters_.emplace_back();
    if (recording) {
      number = host_scalar([numbers, i] { return numbers()[i]; });
    } else {
      number.real = values[i];
    }
  }
  return set;
}

operations::UpdateTarget& RowLaunch::add(const Array& parameter, const Array& gradient, int set) {
  auto takes = [&](const operations::UpdateParameters& group) {
    const ArrayView& first = group.targets[0].parameter.view;
    return first.device == parameter.device() && first.dtype == parameter.dtype();
  };
  std::size_t i = 0;
  while (i < groups_.size() && !takes(groups_[i])) ++i;
  if (i == groups_.size()) groups_.emplace_back(name_, rule_).targets.reserve(expected_);
  operations::UpdateTarget& target = groups_[i].targets.emplace_back();
  target.parameter = parameter.operand();
  target.gradient = gradient.operand();
  target.set = set;
  return target;
}

void RowLaunch::run(const Array& enabled) {
  for (operations::UpdateParameters& group : groups_) {
    group.hyperparameters = hyperparameters_;
    group.set_size = set_size_;
    if (enabled.defined()) group.enabled = enabled.operand();
    launch(group);
  }
}

}  // namespace rensa
