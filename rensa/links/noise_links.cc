// L::Dropout and L::SimplifiedDropconnect; L::Flatten.
#include "rensa/links/noise_links.h"

#include <fmt/format.h>

#include <cmath>

#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/noise.h"
#include "rensa/links/initializers.h"

namespace rensa::links {

Dropout::Dropout(double share) : ratio(share) {}
Variable Dropout::operator()(const Variable& x) const { return F::dropout(x, ratio); }

Flatten::Flatten(int start_axis) : start_axis_(start_axis) {}
Variable Flatten::operator()(const Variable& x) const {
  if (start_axis_ < 0 || start_axis_ > x.ndim()) {
    throw ShapeError(
        fmt::format("Flatten: x {} has no axis {}", x.array().view().describe(), start_axis_));
  }
  Shape shape;
  std::int64_t rest = 1;
  for (int i = 0; i < x.ndim(); ++i) {
    if (i < start_axis_) shape.push_back(x.shape(i));
    else rest *= x.shape(i);
  }
  shape.push_back(rest);
  return F::reshape(x, shape);
}

SimplifiedDropconnect::SimplifiedDropconnect(None, std::int64_t out,
                                             const SimplifiedDropconnectLinkOptions& options)
    : W(options.initialW ? options.initialW
                         : Initializer(initializers::HeNormal{1 / std::sqrt(2.0)})),
      ratio(options.ratio),
      out_(out) {
  if (out < 0) throw ValueError(fmt::format("SimplifiedDropconnect: out size {}", out));
  W.body()->name = "W";
  if (options.nobias) return;
  b = Parameter(options.initial_bias ? options.initial_bias : Initializer(0), {out});
  b.body()->name = "b";
}

SimplifiedDropconnect::SimplifiedDropconnect(std::int64_t in, std::int64_t out,
                                             const SimplifiedDropconnectLinkOptions& options)
    : SimplifiedDropconnect(none, out, options) {
  if (in < 0) throw ValueError(fmt::format("SimplifiedDropconnect: in size {}", in));
  W.initialize({out, in});
}

Variable SimplifiedDropconnect::operator()(const Variable& x, const std::optional<Array>& mask,
                                           bool use_batchwise_mask) const {
  if (!W.is_initialized()) {
    std::int64_t features = 1;
    for (int i = 1; i < x.ndim(); ++i) features *= x.shape(i);
    W.initialize({out_, features});
  }
  F::SimplifiedDropconnectOptions options{.ratio = ratio,
                                          .train = config().train,
                                          .mask = mask,
                                          .use_batchwise_mask = use_batchwise_mask};
  return F::simplified_dropconnect(x, W, b, options);
}

}  // namespace rensa::links

namespace rensa {
template class Chain<links::Dropout>;
template class Chain<links::Flatten>;
}  // namespace rensa
