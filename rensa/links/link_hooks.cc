// Spectral normalization, weight standardization, and times.
#include "rensa/links/link_hooks.h"

#include <fmt/format.h>

#include <iostream>
#include <string_view>

#include "rensa/array/linalg.h"
#include "rensa/array/random_basics.h"
#include "rensa/autograd/recomputation.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"
#include "rensa/device/tracer.h"
#include "rensa/functions/functions.h"

namespace rensa::link_hooks {

namespace {

const Parameter& checked(const HookedLink& link, std::string_view hook, std::string_view name) {
  for (const HookedLink::Named& known : link.parameters()) {
    if (known.name == name) return *known.parameter;
  }
  throw ValueError(
      fmt::format("{}: {} has no parameter \"{}\"", hook, link.link.type_name(), name));
}

/// W's outputs, each flattened.
template <class T> T as_rows(const T& W, int out_axis, const auto& transpose, const auto& reshape) {
  Shape order{out_axis};
  for (int i = 0; i < W.ndim(); ++i) {
    if (i != out_axis) order.push_back(i);
  }
  return reshape(out_axis == 0 ? W : transpose(W, order), Shape{W.shape(out_axis), -1});
}
Array rows_of(const Array& W, int out_axis) {
  return as_rows(
      W, out_axis, [](const Array& a, const Shape& order) -> Array { return a.transpose(order); },
      [](const Array& a, const Shape& shape) -> Array { return a.reshape(shape); });
}
Variable rows_of(const Variable& W, int out_axis) {
  return as_rows(
      W, out_axis, [](const Variable& a, const Shape& order) { return F::transpose(a, order); },
      [](const Variable& a, const Shape& shape) { return F::reshape(a, shape); });
}

Array unit(const Array& v, double eps) { return v / (xp::sqrt(xp::sum(v * v)) + eps); }

}  // namespace

SpectralNormalization::SpectralNormalization(const SpectralNormalizationOptions& options)
    : gamma(options.use_gamma ? Parameter(Initializer(1)) : Parameter()), options_(options) {
  if (options.use_gamma) gamma.body()->name = "gamma";
  if (options.n_power_iteration < 1) {
    throw ValueError(
        fmt::format("SpectralNormalization: {} power iterations", options.n_power_iteration));
  }
}

void SpectralNormalization::members(Visitor& v) {
  v(options_.weight_name + "_u", u), v("gamma", gamma);
}

void SpectralNormalization::added(const HookedLink& link) {
  const Parameter& W = checked(link, name(), options_.weight_name);
  if (W.is_initialized()) prepare(link, W);
}

void SpectralNormalization::prepare(const HookedLink& link, const Variable& W) {
  if (W.ndim() <= link.out_axis || W.size() == 0) {
    throw ValueError(fmt::format("SpectralNormalization: {} has {} {}, without outputs",
                                 link.link.type_name(), options_.weight_name,
                                 W.array().view().describe()));
  }
  if (!u.defined()) {
    std::int64_t outputs = W.shape(link.out_axis);
    u = Persistent(xp::random::normal(0, 1, {outputs}, float32, W.device()).astype(W.dtype()));
  }
  if (!gamma.defined() || gamma.is_initialized()) return;
  gamma.to(W.device());
  Array greatest = xp::linalg::norm(rows_of(W.array(), link.out_axis).astype(float64), {.ord = 2});
  gamma.initialize({});
  gamma.array().assign(greatest.astype(gamma.dtype()));
}

void SpectralNormalization::forward_preprocess(HookedCall& call) {
  Variable W = call.parameter(options_.weight_name);
  int out_axis = call.link().out_axis;
  prepare(call.link(), W);
  Array next = u;
  Array v = autograd::noted([&] {
    Array rows = rows_of(W.array(), out_axis), right;
    for (int i = 0; i < options_.n_power_iteration; ++i) {
      right = unit(xp::matmul(next, rows), options_.eps);
      next = unit(xp::matmul(rows, right), options_.eps);
    }
    return right;
  });
  next = autograd::noted([&] { return next; });
  Variable along = F::matmul(constant(next.reshape({1, -1})), rows_of(W, out_axis));
  Variable sigma = F::reshape(F::matmul(along, constant(v.reshape({-1, 1}))), {});
  if (options_.factor) sigma = sigma / *options_.factor;
  call.replace(options_.weight_name, (gamma.defined() ? gamma * W : W) / sigma);
  if (config().train) u = next;
}

void WeightStandardization::added(const HookedLink& link) {
  (void)checked(link, name(), options_.weight_name);
}

void WeightStandardization::forward_preprocess(HookedCall& call) {
  Variable W = call.parameter(options_.weight_name);
  Shape channels{W.shape(1)};
  Variable ones = constant(xp::ones(channels, W.dtype(), W.device()));
  Variable zeros = constant(xp::zeros(channels, W.dtype(), W.device()));
  call.replace(options_.weight_name, F::group_normalization(W, 1, ones, zeros, options_.eps));
}

TimerHook::TimerHook() : times_(std::make_shared<CallTimes>()) {}

void TimerHook::forward_preprocess(HookedCall& call) {
  stay_eager("a TimerHook times the calls of a link, of which replays make none");
  const Variables& x = call.x();
  times_->begin("TimerHook", x.empty() ? ThreadState::current().device : x[0].device());
}

void TimerHook::forward_postprocess(HookedCall& call, const Variable&) {
  times_->end(call.link().link.type_name());
}

void TimerHook::forward_failed(HookedCall&) noexcept { times_->forget(); }

void TimerHook::print_report(std::string_view unit) const { print_report(unit, std::cout); }
void TimerHook::print_report(std::string_view unit, std::ostream& out) const {
  out << str(unit) << std::flush;
}

WeightStandardization::WeightStandardization(const WeightStandardizationOptions& options)
    : options_(options) {}

std::unique_ptr<LinkHook> SpectralNormalization::clone() const {
  return std::make_unique<SpectralNormalization>(*this);
}
std::unique_ptr<LinkHook> WeightStandardization::clone() const {
  return std::make_unique<WeightStandardization>(*this);
}
std::unique_ptr<LinkHook> TimerHook::clone() const { return std::make_unique<TimerHook>(*this); }

std::map<std::string, CallSummary> TimerHook::summary() const { return times_->summary(); }

}  // namespace rensa::link_hooks
