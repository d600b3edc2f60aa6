// Batch normalization by the statistics of all ranks of a group: sums over this rank's samples, and
// their sums over the ranks, made of functions that know their gradients.
#include "rensa/array/routines.h"
#include "rensa/autograd/recomputation.h"
#include "rensa/functions/array_functions.h"
#include "rensa/functions/communication_functions.h"
#include "rensa/functions/math_functions.h"
#include "rensa/functions/normalization_internal.h"
#include "rensa/functions/reduction_functions.h"

namespace rensa::functions {

namespace {

/// Moves running statistics towards those of m elements, m being an array of one element.
void move_running(const BatchNormalizationOptions& options, const Array& mean, const Array& var,
                  const Array& m) {
  if (!options.running_mean || in_recomputing()) return;
  Array adjust = m / xp::maximum(m - 1, 1);
  auto move = [&](const Array& running, const Array& found) {
    running.assign(options.decay * running + (1 - options.decay) * found);
  };
  move(*options.running_mean, mean);
  move(*options.running_var, var * adjust);
}

}  // namespace

Variable batch_normalization(const Communicator& communicator, const Variable& x,
                             const Variable& gamma, const Variable& beta,
                             const BatchNormalizationOptions& options) {
  constexpr const char* name = "batch_normalization";
  ChannelFold fold = checked_fold(name, x, gamma, options.axis);
  check_beside(name, gamma, "beta", beta);
  check_running(name, gamma, options);
  Dtype dtype = statistics_dtype(x.dtype());
  Axes axes(fold.reduced().values());
  std::int64_t channels = gamma.size();
  Array own_count = xp::full({1}, channels > 0 ? x.size() / channels : 0, dtype, x.device());
  Variable wide = cast(x, dtype);
  Variable sums = concat({flatten(sum(wide, axes)), constant(own_count)}, 0);
  Variable totals = allreduce(communicator, sums);
  Array count = totals.array()[{Slice(channels, none)}];
  Variable mean = totals[{Slice(none, channels)}] / constant(count);
  Variable centred = wide - reshape(mean, fold.expanded());
  Variable squares = allreduce(communicator, flatten(sum(centred * centred, axes)));
  Variable var = squares / constant(count);
  auto in_shape = [&](const Variable& v) { return reshape(v, gamma.shape()); };
  mean = in_shape(mean), var = in_shape(var);
  move_running(options, mean.array(), var.array(), count);
  return fixed_batch_normalization(x, cast(gamma, dtype), cast(beta, dtype), mean, var, options.eps,
                                   options.axis);
}

}  // namespace rensa::functions
