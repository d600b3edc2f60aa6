// RowLaunch: a row of core/update_rules.def over many parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/functions/operations/update_parameters/update_parameters.h"
#include "rensa/optimizers/update_rule.h"

namespace rensa {

/// A recording in progress on the thread is to hold only while `holds()` gives true, as it does
/// now.
void hold_recording_while(std::function<bool()> holds);

/// One operation per device and dtype. The arrays have to live until run() has returned.
class RowLaunch {
 public:
  /// `targets`: about how many there will be.
  RowLaunch(const char* name, UpdateRuleId rule, std::size_t targets = 0)
      : name_(name), rule_(rule), expected_(targets) {}

  /// A set of the row's first hyperparameters, asked anew by each replay.
  int add_set(std::function<std::vector<double>()> numbers);
  /// One set for all rules of the same count of updates, t, and the same values of their own: what
  /// add_set() gave the first of them. A recording holds only while these stay the same.
  template <class AddSet>
  int shared_set(const std::shared_ptr<UpdateRule>& rule, const AddSet& add_set) {
    for (const auto& [first, set] : shared_) {
      if (shares(first, rule)) return set;
    }
    return shared_.emplace_back(rule, add_set()).second;
  }
  /// A target, to be filled in further until the next one is added.
  operations::UpdateTarget& add(const Array& parameter, const Array& gradient, int set = 0);
  /// Nothing is changed where `enabled`, a float64 on the device, is 0.
  void run(const Array& enabled = {});

 private:
  static bool shares(const std::shared_ptr<UpdateRule>& first,
                     const std::shared_ptr<UpdateRule>& rule);

  const char* name_;
  UpdateRuleId rule_;
  std::size_t expected_;
  int set_size_ = 0;
  std::vector<HostScalar> hyperparameters_;
  std::vector<std::pair<std::shared_ptr<UpdateRule>, int>> shared_;
  std::vector<operations::UpdateParameters> groups_;
};

}  // namespace rensa
