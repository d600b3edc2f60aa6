// What an update works on: parameters with their gradients, states and float32 copies.
#include "rensa/optimizers/update_call.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "rensa/array/creation.h"
#include "rensa/array/internal.h"
#include "rensa/autograd/graph.h"
#include "rensa/core/error.h"
#include "rensa/device/tracer.h"
#include "rensa/optimizers/joint_update.h"
#include "rensa/optimizers/row_launch.h"

namespace rensa {

void refuse_recording(const char* reason) {
  if (Recorder* recorder = ThreadState::current().recorder) recorder->cannot_record(reason);
}

bool is_narrow(const Array& parameter) {
  return parameter.dtype() == float16 || parameter.dtype() == bfloat16;
}

namespace {

/// How often somebody has written to the array's memory, updates left out.
std::uint32_t version_of(const Array& array) {
  return array.storage() ? array.storage()->version() : 0;
}

/// Whether the parameter is in the memory that the float32 copy was taken from, and nobody has
/// written there since.
bool is_as_seen(const UpdateRule& rule, const Array& parameter) {
  return rule.seen.storage() == parameter.storage() &&
         rule.seen.view().data == parameter.view().data &&
         rule.seen_version == version_of(parameter);
}

/// The float32 copy of a narrower parameter, brought up to date where somebody else wrote to the
/// parameter.
void prepare_fp32_param(UpdateRule& rule, const Array& parameter) {
  if (!rule.uses_fp32_update() || !is_narrow(parameter)) {
    if (rule.fp32_param.defined()) rule.fp32_param = rule.seen = {};
    return;
  }
  Array& copy = rule.fp32_param;
  if (copy.defined() && copy.device() == parameter.device() && is_as_seen(rule, parameter)) return;
  refuse_recording("it makes a float32 copy of a parameter");
  Array values = parameter.astype(float32, 'K');
  // Elements that nobody has changed keep what the parameter's dtype cannot hold.
  if (copy.defined()) {
    copy = detail::dense_as(copy.to(parameter.device()), parameter);
    values = xp::where(copy.astype(parameter.dtype(), 'K') == parameter, copy, values);
  }
  copy = values;
  rule.seen = parameter;
  rule.seen_version = version_of(parameter);
}

/// The rule's state arrays, like what is updated.
void prepare_states(UpdateRule& rule, const Array& updated,
                    const std::vector<UpdateState>& states) {
  if (rule.states.empty() && !states.empty()) {
    refuse_recording("it makes an optimizer's states");
    for (const UpdateState& state : states) {
      rule.states.push_back(xp::full_like(updated, state.initial, {.order = 'K'}));
    }
  }
  for (Array& state : rule.states) {
    if (state.device() == updated.device() && state.dtype() == updated.dtype() &&
        detail::lies_as(state, updated)) {
      continue;
    }
    refuse_recording("it moves an optimizer's states");
    state = state.to(updated.device()).astype(updated.dtype(), false);
    state = detail::dense_as(state, updated);
  }
}

/// A recording holds only while the parameter keeps its memory, or stays left out.
void bind_parameter(const ParameterRef& p) {
  Recorder* recorder = ThreadState::current().recorder;
  if (!recorder) return;
  recorder->binding([body = std::weak_ptr(p.body())]() -> const Storage* {
    auto held = body.lock();
    bool updated = held && ParameterRef(held).update_enabled();
    return updated ? held->array.storage().get() : nullptr;
  });
}

/// A recording holds only while the parameter keeps its rule and the states their memory: a model
/// that was moved or loaded anew is recorded anew.
void bind_rule(const ParameterRef& p, const std::shared_ptr<UpdateRule>& rule) {
  Recorder* recorder = ThreadState::current().recorder;
  if (!recorder) return;
  hold_recording_while([body = std::weak_ptr(p.body()), weak = std::weak_ptr(rule)] {
    auto held = body.lock();
    auto known = weak.lock();
    return held && known && ParameterRef(held).has_update_rule() &&
           ParameterRef(held).update_rule() == known;
  });
  for (std::size_t i = 0; i < rule->states.size(); ++i) {
    recorder->binding([weak = std::weak_ptr(rule), i]() -> const Storage* {
      auto held = weak.lock();
      return held && i < held->states.size() ? held->states[i].storage().get() : nullptr;
    });
  }
  if (!rule->fp32_param.defined()) return;
  recorder->binding(
      [weak = std::weak_ptr(rule), body = std::weak_ptr(p.body())]() -> const Storage* {
        auto held = weak.lock();
        auto parameter = body.lock();
        bool current =
            held && parameter && held->fp32_param.defined() && is_as_seen(*held, parameter->array);
        return current ? held->fp32_param.storage().get() : nullptr;
      });
}

/// Whether this rank updates the parameter.
bool owns(const UpdateCall& call, const std::shared_ptr<UpdateRule>& rule) {
  return !call.joint || call.joint->owns(rule);
}

/// The parameters that an update changes, here or on another rank.
std::vector<ParameterRef> updated_parameters(Link& model, OptimizerState& optimizer) {
  std::vector<ParameterRef> updated;
  std::vector<ParameterRef> all = model.params();
  updated.reserve(all.size());
  for (ParameterRef& p : all) {
    bind_parameter(p);
    if (!p.is_initialized() || !p.update_enabled()) continue;
    if (!p.grad().defined()) {
      if (!optimizer.joint || !optimizer.joint->fills_zeros()) continue;
      p.set_grad(xp::zeros_like(p.array()));
    }
    optimizer.rule_of(p);  // there is one from now on
    updated.push_back(std::move(p));
  }
  if (optimizer.joint) optimizer.joint->begin(updated);
  return updated;
}

}  // namespace

void prepare(UpdateRule& rule, const Array& parameter, const std::vector<UpdateState>& states) {
  prepare_fp32_param(rule, parameter);
  prepare_states(rule, rule.fp32_param.defined() ? rule.fp32_param : parameter, states);
}

UpdateCall own_part(const UpdateCall& call) {
  UpdateCall own{{}, call.joint, call.enabled};
  for (const UpdatedParameter& p : call.parameters) {
    if (owns(call, p.rule)) own.parameters.push_back(p);
  }
  return own;
}

UpdateCall make_call(Link& model, const std::shared_ptr<OptimizerState>& optimizer) {
  UpdateCall call;
  call.joint = optimizer->joint.get();
  const std::vector<UpdateState> states = optimizer->algorithm->states();
  std::vector<ParameterRef> parameters = updated_parameters(model, *optimizer);
  call.parameters.reserve(parameters.size());
  for (ParameterRef& p : parameters) {
    Array gradient = p.grad();
    std::shared_ptr<UpdateRule> rule = p.update_rule();
    if (!detail::is_dense(p.array())) {
      throw ValueError(fmt::format("{}: the elements of the parameter {} do not lie together",
                                   optimizer->name(), p.array().view().describe()));
    }
    if (owns(call, rule)) {
      gradient = detail::dense_as(gradient, p.array());
      prepare(*rule, p.array(), states);
    } else {
      rule->states.clear();
      rule->fp32_param = {};
    }
    Array updated = rule->fp32_param.defined() ? rule->fp32_param : p.array();
    bind_rule(p, rule);
    call.parameters.push_back(
        {std::move(p), std::move(rule), std::move(updated), std::move(gradient)});
  }
  return call;
}

}  // namespace rensa
