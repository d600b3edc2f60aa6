// RowLaunch: a row of core/update_rules.def over many parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "rensa/array/array.h"
#include "rensa/functions/operations/update_parameters/update_parameters.h"

namespace rensa {

/// One operation a device and dtype. The arrays have to live until run() has returned.
class RowLaunch {
 public:
  /// `targets`: about how many there will be.
  RowLaunch(const char* name, UpdateRuleId rule, std::size_t targets = 0)
      : name_(name), rule_(rule), expected_(targets) {}

  /// A set of the row's first hyperparameters, asked anew by each replay.
  int add_set(std::function<std::vector<double>()> numbers);
  /// One set for all that call with `key` (a parameter's count of updates): what add_set() gave the
  /// first of them.
  template <class AddSet> int shared_set(std::int64_t key, const AddSet& add_set) {
    for (const auto& [known, set] : shared_) {
      if (known == key) return set;
    }
    return shared_.emplace_back(key, add_set()).second;
  }
  /// A target, to be filled in further until the next one is added.
  UpdateTarget& add(const Array& parameter, const Array& gradient, int set = 0);
  /// Nothing is changed where `enabled`, a float64 on the device, is 0.
  void run(const Array& enabled = {});

 private:
  const char* name_;
  UpdateRuleId rule_;
  std::size_t expected_;
  int set_size_ = 0;
  std::vector<HostScalar> hyperparameters_;
  std::vector<std::pair<std::int64_t, int>> shared_;
  std::vector<UpdateParameters> groups_;
};

}  // namespace rensa
