// L::Highway.
#include "rensa/links/highway.h"

#include "rensa/functions/functions.h"

namespace rensa::links {

Highway::Highway(std::int64_t in_out, const HighwayOptions& options)
    : plain(
          in_out, in_out,
          {.nobias = options.nobias, .initialW = options.init_Wh, .initial_bias = options.init_bh}),
      transform(
          in_out, in_out,
          {.nobias = options.nobias, .initialW = options.init_Wt, .initial_bias = options.init_bt}),
      activate(options.activate ? options.activate : [](const Variable& x) { return F::relu(x); }) {
}

Variable Highway::operator()(const Variable& x) const {
  Variable y = activate(plain(x)), t = F::sigmoid(transform(x));
  return F::linear_interpolate(t, y, x);
}

}  // namespace rensa::links
