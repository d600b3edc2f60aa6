// FailOnNonNumber's look at the parameters.
#include "rensa/training/extensions/fail_on_non_number.h"

#include <fmt/format.h>

#include "rensa/core/error.h"

namespace rensa::extensions {

void FailOnNonNumber::operator()(training::Trainer& trainer) {
  std::vector<NamedParameter> looked_at;
  std::vector<Array> finite;  // all are queued before the first is waited for
  for (const NamedParameter& p : trainer.updater().namedparams()) {
    if (!p.parameter.is_initialized()) continue;
    looked_at.push_back(p);
    finite.push_back(xp::isfinite(p.parameter.array()).all());
  }
  for (std::size_t i = 0; i < finite.size(); ++i) {
    if (finite[i].item<bool>()) continue;
    const Array& values = looked_at[i].parameter.array();
    auto nans = xp::count_nonzero(xp::isnan(values)).item<std::int64_t>();
    auto finite_values = xp::count_nonzero(xp::isfinite(values)).item<std::int64_t>();
    throw ValueError(fmt::format(
        "FailOnNonNumber: after iteration {} the parameter {} {} has {} values that are NaN and {} "
        "that are infinite{}",
        trainer.updater().iteration(), looked_at[i].path, values.view().describe(), nans,
        values.size() - finite_values - nans,
        nans ? "; config().debug = true names the function that makes the first NaN" : ""));
  }
}

}  // namespace rensa::extensions
