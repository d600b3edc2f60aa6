// Links that normalize.
#include "rensa/links/normalization_links.h"

#include <fmt/format.h>

#include "rensa/array/creation.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/functions/normalization.h"

namespace rensa::links {

namespace {

/// `given`, or `otherwise`, in float32 where config().dtype is mixed.
Initializer precise(const Initializer& given, double otherwise,
                    std::optional<Dtype> dtype = std::nullopt) {
  Initializer all = given ? given : Initializer(otherwise);
  return dtype ? all.of(*dtype) : all.precise();
}

Parameter parameter(const Initializer& initializer, const char* name) {
  Parameter made(initializer);
  made.body()->name = name;
  return made;
}

Array filled(const Initializer& initializer, const Shape& shape, Device device) {
  Array values = xp::empty(shape, initializer.dtype(), device);
  initializer(values);
  return values;
}

}  // namespace

// --- BatchNormalization ---

BatchNormalization::BatchNormalization(None, const BatchNormalizationOptions& o)
    : decay(o.decay),
      eps(o.eps),
      axis_(o.axis),
      initial_avg_mean_(precise(o.initial_avg_mean, 0, o.dtype)),
      initial_avg_var_(precise(o.initial_avg_var, 1, o.dtype)) {
  if (o.use_gamma) gamma = parameter(precise(o.initial_gamma, 1, o.dtype), "gamma");
  if (o.use_beta) beta = parameter(precise(o.initial_beta, 0, o.dtype), "beta");
}

BatchNormalization::BatchNormalization(std::int64_t size, const BatchNormalizationOptions& options)
    : BatchNormalization(Shape{size}, options) {}

BatchNormalization::BatchNormalization(const Shape& size, const BatchNormalizationOptions& options)
    : BatchNormalization(none, options) {
  for (std::int64_t extent : size) {
    if (extent < 0) throw ValueError(fmt::format("BatchNormalization: a size of {}", extent));
  }
  initialize(size);
}

void BatchNormalization::members(Visitor& v) {
  if (Visitor::Reading* file = v.reading()) {
    if (folded && file->contains("avg_mean")) {
      throw SerializationError(
          "BatchNormalization: it is folded into the layer in front of it, and the file has one "
          "that is not: read the file first, then call fold_batch_normalization");
    }
    if (!folded && file->contains("folded")) {
      throw SerializationError(
          "BatchNormalization: the file has one that is folded into the layer in front of it, and "
          "this one is not: call fold_batch_normalization of the model, then read the file");
    }
  }
  hook_members(v);
  if (folded)
    return v.computed(
        "folded", [] { return true; }, [](bool) {});
  v("gamma", gamma), v("beta", beta);
  v("avg_mean", avg_mean), v("avg_var", avg_var), v("N", N);
}

void BatchNormalization::initialize(const Shape& size) const {
  for (const Parameter* p : {&gamma, &beta}) {
    if (p->defined()) p->initialize(size);
  }
  if (!avg_mean.defined()) avg_mean = filled(initial_avg_mean_, size, avg_mean.home());
  if (!avg_var.defined()) avg_var = filled(initial_avg_var_, size, avg_var.home());
}

Variable BatchNormalization::operator()(const Variable& x, bool finetune) const {
  if (folded && !config().train) return x;
  return hooked(x, [&] { return normalized(x, finetune); });
}

Variable BatchNormalization::normalized(const Variable& x, bool finetune) const {
  check_not_folded();
  if (!avg_mean.defined() || !avg_var.defined()) {
    Shape size;
    unsigned reduced = 0;
    if (axis_.given()) {
      for (std::int64_t axis : axis_.values()) {
        reduced |= 1u << normalize_axis("BatchNormalization", axis, x.ndim());
      }
    } else if (x.ndim() < 2) {
      throw ShapeError(fmt::format("BatchNormalization: x {} has no axis of channels",
                                   x.array().view().describe()));
    } else {
      reduced = ~2u;
    }
    for (int i = 0; i < x.ndim(); ++i) {
      if (!(reduced >> i & 1)) size.push_back(x.shape(i));
    }
    initialize(size);
  }
  auto [g, b] = scale_and_shift();
  const Array &mean = avg_mean, &var = avg_var;
  if (!config().train) {
    return F::fixed_batch_normalization(x, g, b, constant(mean), constant(var), eps, axis_);
  }
  F::BatchNormalizationOptions options = {.eps = eps,
                                          .running_mean = mean,
                                          .running_var = var,
                                          .decay = next_decay(finetune),
                                          .axis = axis_};
  return communicator ? F::batch_normalization(*communicator, x, g, b, options)
                      : F::batch_normalization(x, g, b, options);
}

void synchronize_batch_normalization(Link& model, const Communicator& communicator) {
  for (auto& [path, link] : model.namedlinks()) {
    if (auto* normalization = dynamic_cast<BatchNormalization*>(link)) {
      normalization->communicator = communicator;
    }
  }
}

void BatchNormalization::check_not_folded() const {
  if (!folded) return;
  throw ValueError(
      "BatchNormalization: it is folded into the layer in front of it and has no statistics of its "
      "own to train with: train a copy made before fold_batch_normalization, or call the model "
      "without training: UsingConfig off(&Config::train, false)");
}

std::pair<Variable, Variable> BatchNormalization::scale_and_shift() const {
  check_not_folded();
  auto or_filled = [&](const Parameter& p, double value) -> Variable {
    if (p.defined()) return p;
    return constant(xp::full(avg_mean.shape(), value, avg_mean.dtype(), avg_mean.device()));
  };
  return {or_filled(gamma, 1), or_filled(beta, 0)};
}

double BatchNormalization::next_decay(bool finetune) const {
  if (!finetune) return decay;
  ++N;
  return 1 - 1 / static_cast<double>(N.value());
}

// --- BatchRenormalization ---

BatchRenormalization::BatchRenormalization(const Shape& size, double rmax_, double dmax_,
                                           const BatchNormalizationOptions& options)
    : statistics(size, options), rmax(rmax_), dmax(dmax_) {
  if (options.axis.given()) throw ValueError("BatchRenormalization: it takes no axis");
}

BatchRenormalization::BatchRenormalization(std::int64_t size, double rmax_, double dmax_,
                                           const BatchNormalizationOptions& options)
    : BatchRenormalization(Shape{size}, rmax_, dmax_, options) {}

Variable BatchRenormalization::operator()(const Variable& x, bool finetune) const {
  if (!config().train) return statistics(x);
  auto [gamma, beta] = statistics.scale_and_shift();
  return F::batch_renormalization(x, gamma, beta, rmax, dmax,
                                  {.eps = statistics.eps,
                                   .running_mean = statistics.avg_mean,
                                   .running_var = statistics.avg_var,
                                   .decay = statistics.next_decay(finetune),
                                   .update_statistics = true});
}

// --- normalizations of samples ---

LayerNormalization::LayerNormalization(None, const NormalizationOptions& o)
    : gamma(parameter(precise(o.initial_gamma, 1), "gamma")),
      beta(parameter(precise(o.initial_beta, 0), "beta")),
      eps(o.eps) {}

LayerNormalization::LayerNormalization(const Shape& size, const NormalizationOptions& options)
    : LayerNormalization(none, options) {
  gamma.initialize(size), beta.initialize(size);
}

LayerNormalization::LayerNormalization(std::int64_t size, const NormalizationOptions& options)
    : LayerNormalization(Shape{size}, options) {}

Variable LayerNormalization::operator()(const Variable& x) const {
  if (gamma.is_initialized() && beta.is_initialized()) {
    return F::layer_normalization(x, gamma, beta, eps);
  }
  if (x.ndim() < 2) {
    throw ShapeError(
        fmt::format("LayerNormalization: x {} has no axes behind the first", x.shape().str()));
  }
  Shape size;
  for (int i = 1; i < x.ndim(); ++i) size.push_back(x.shape(i));
  gamma.initialize(size), beta.initialize(size);
  return F::layer_normalization(x, gamma, beta, eps);
}

RMSNorm::RMSNorm(None, std::optional<double> epsilon, const Initializer& initial_gamma)
    : gamma(parameter(precise(initial_gamma, 1), "gamma")), eps(epsilon) {}

RMSNorm::RMSNorm(const Shape& size, std::optional<double> epsilon, const Initializer& initial_gamma)
    : RMSNorm(none, epsilon, initial_gamma) {
  gamma.initialize(size);
}

RMSNorm::RMSNorm(std::int64_t size, std::optional<double> epsilon, const Initializer& initial_gamma)
    : RMSNorm(Shape{size}, epsilon, initial_gamma) {}

Variable RMSNorm::operator()(const Variable& x) const {
  if (!gamma.is_initialized()) {
    if (x.ndim() == 0) throw ShapeError("RMSNorm: x has no axis");
    gamma.initialize({x.shape(-1)});
  }
  return F::rms_norm(x, gamma, eps);
}

GroupNormalization::GroupNormalization(std::int64_t groups_, const NormalizationOptions& o)
    : gamma(parameter(precise(o.initial_gamma, 1), "gamma")),
      beta(parameter(precise(o.initial_beta, 0), "beta")),
      groups(groups_),
      eps(o.eps) {}

GroupNormalization::GroupNormalization(std::int64_t groups_, std::int64_t size,
                                       const NormalizationOptions& options)
    : GroupNormalization(groups_, options) {
  if (size < 0) throw ValueError(fmt::format("GroupNormalization: a size of {}", size));
  gamma.initialize({size}), beta.initialize({size});
}

Variable GroupNormalization::operator()(const Variable& x) const {
  if (!gamma.is_initialized() || !beta.is_initialized()) {
    if (x.ndim() < 2) {
      throw ShapeError(
          fmt::format("GroupNormalization: x {} must be (n, channels, ...)", x.shape().str()));
    }
    gamma.initialize({x.shape(1)}), beta.initialize({x.shape(1)});
  }
  return F::group_normalization(x, groups, gamma, beta, eps);
}

}  // namespace rensa::links

namespace rensa {
template class Chain<links::BatchNormalization>;
template class Chain<links::LayerNormalization>;
}  // namespace rensa
