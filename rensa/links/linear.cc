// L::Linear.
#include "rensa/links/linear.h"

#include <fmt/format.h>

#include "rensa/core/error.h"
#include "rensa/functions/connection.h"
#include "rensa/links/initializers.h"

namespace rensa::links {

Linear::Linear(std::int64_t out, const LinearOptions& options)
    : W(options.initialW ? options.initialW : Initializer(initializers::LeCunNormal())), out_(out) {
  if (out < 0) throw ValueError(fmt::format("Linear: out size {}", out));
  W.body()->name = "W";
  if (options.nobias) return;
  b = Parameter(options.initial_bias ? options.initial_bias : Initializer(0), {out});
  b.body()->name = "b";
}

Linear::Linear(None, std::int64_t out, const LinearOptions& options) : Linear(out, options) {}

Linear::Linear(std::int64_t in, std::int64_t out, const LinearOptions& options)
    : Linear(out, options) {
  if (in < 0) throw ValueError(fmt::format("Linear: in size {}", in));
  W.initialize({out, in});
}

void Linear::members(Visitor& v) { v("W", W), v("b", b), hook_members(v); }

Variable Linear::operator()(const Variable& x, int n_batch_axes) const {
  if (!W.is_initialized()) {
    std::int64_t features = 1;
    for (int i = n_batch_axes; i < x.ndim(); ++i) features *= x.shape()[i];
    W.initialize({out_, features});
  }
  return hooked(x, [&] { return F::linear(x, W, b, n_batch_axes); });
}

}  // namespace rensa::links

namespace rensa {
template class Chain<links::Linear>;
}  // namespace rensa
