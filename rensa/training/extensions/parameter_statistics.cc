// ParameterStatistics.
#include "rensa/training/extensions/parameter_statistics.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

#include "rensa/array/order_statistics.h"
#include "rensa/core/error.h"

namespace rensa::extensions {

std::map<std::string, Statistic> default_statistics() {
  return {
      {"mean", [](const Array& x) { return x.mean(); }},
      {"std", [](const Array& x) { return x.std(); }},
      {"min", [](const Array& x) { return x.min(); }},
      {"max", [](const Array& x) { return x.max(); }},
      {"zeros", [](const Array& x) { return xp::count_nonzero(x == 0); }},
      {"percentile",
       [](const Array& x) {
         return xp::percentile(x, {0.13, 2.28, 15.87, 50, 84.13, 97.72, 99.87});
       }},
  };
}

ParameterStatistics::ParameterStatistics(const Link& model, ParameterStatisticsOptions options)
    : model_(model.anchor()), options_(std::move(options)) {
  if (!options_.trigger) throw ValueError("ParameterStatistics: give a trigger, {1, \"epoch\"}");
}

void ParameterStatistics::add(const std::string& key, const Array& values,
                              Observation& found) const {
  Array flat = values.reshape({-1});
  bool skipped = options_.skip_nan_params && xp::isnan(flat).any().item<bool>();
  for (const auto& [name, statistic] : options_.statistics) {
    Array value =
        skipped ? xp::array(std::numeric_limits<double>::quiet_NaN(), cpu()) : statistic(flat);
    if (value.size() == 1) {
      found[key + "/" + name] = value.reshape({});
      continue;
    }
    for (std::int64_t i = 0; i < value.size(); ++i) {
      found[fmt::format("{}/{}/{}", key, name, i)] = value.reshape({-1})[i];
    }
  }
}

void ParameterStatistics::operator()(training::Trainer& trainer) {
  if (!model_->link) throw ValueError("ParameterStatistics: its model has been destroyed");
  Observation found;
  for (const NamedParameter& p : model_->link->namedparams()) {
    if (!p.parameter.is_initialized() || p.parameter.array().size() == 0) continue;
    std::string key = options_.prefix + p.path;
    if (options_.prefix.empty() && key.starts_with('/')) key.erase(0, 1);
    if (options_.report_params) add(key + "/data", p.parameter.array(), found);
    Array gradient = p.parameter.grad();
    if (options_.report_grads && gradient.defined()) add(key + "/grad", gradient, found);
  }
  summary_.add(found);
  if (!options_.trigger(trainer)) return;
  for (const auto& [key, mean] : std::exchange(summary_, {}).compute_mean()) {
    trainer.observation()[key] = xp::array(mean, cpu());
  }
}

void ParameterStatistics::members(Visitor& v) {
  v.optional("_trigger", options_.trigger);
  if (v.reads("_summary")) v("_summary", summary_);
}

}  // namespace rensa::extensions
