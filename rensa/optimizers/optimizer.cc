// Optimizer: from a model's parameters and gradients to one update operation a device and dtype.
#include "rensa/optimizers/optimizer.h"

#include <fmt/format.h>

#include <utility>

#include "rensa/autograd/graph.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/device/operations.h"
#include "rensa/device/tracer.h"

namespace rensa {

namespace {

/// Parameters that one operation updates: of one device, dtype and number of updates so far.
struct Group {
  std::vector<ParameterRef> parameters;
  std::vector<std::shared_ptr<UpdateRule>> rules;
  bool takes(const ParameterRef& p, const UpdateRule& rule) const {
    return p.array().device() == parameters[0].array().device() &&
           p.dtype() == parameters[0].dtype() && rule.t == rules[0]->t;
  }
};

/// The parameter's rule, which belongs to `owner`; a parameter that came into the model after setup
/// gets one.
std::shared_ptr<UpdateRule> rule_of(const ParameterRef& p,
                                    const std::shared_ptr<OptimizerState>& owner) {
  std::shared_ptr<UpdateRule> rule = p.update_rule();
  std::shared_ptr<OptimizerState> other = rule ? rule->owner.lock() : nullptr;
  if (other == owner) return rule;
  if (other) {
    throw ValueError(
        fmt::format("{}: a parameter of the model was since set up with another optimizer ({}); "
                    "call setup again to take it back",
                    owner->name(), other->name()));
  }
  rule = std::make_shared<UpdateRule>(owner);
  p.set_update_rule(rule);
  return rule;
}

std::vector<Group> make_groups(Link& model, const std::shared_ptr<OptimizerState>& owner) {
  std::vector<Group> groups;
  for (ParameterRef& p : model.params()) {
    if (!p.is_initialized() || !p.update_enabled() || !p.grad().defined()) continue;
    std::shared_ptr<UpdateRule> rule = rule_of(p, owner);
    std::size_t i = 0;
    while (i < groups.size() && !groups[i].takes(p, *rule)) ++i;
    if (i == groups.size()) groups.emplace_back();
    groups[i].parameters.push_back(std::move(p));
    groups[i].rules.push_back(std::move(rule));
  }
  return groups;
}

/// The rule's state arrays, where the parameter is.
void prepare_states(UpdateRule& rule, const Array& parameter, std::size_t count) {
  if (rule.states.empty() && count > 0) {
    if (Recorder* recorder = ThreadState::current().recorder) {
      recorder->cannot_record("it makes an optimizer's states");
    }
    for (std::size_t i = 0; i < count; ++i) rule.states.push_back(xp::zeros_like(parameter));
  }
  for (Array& state : rule.states) state = state.to(parameter.device());
}

/// A recording holds only while parameter and states keep their memory: a model that was moved or
/// loaded anew is recorded anew.
void bind_recording(const ParameterRef& p, const std::shared_ptr<UpdateRule>& rule) {
  Recorder* recorder = ThreadState::current().recorder;
  if (!recorder) return;
  recorder->binding([body = std::weak_ptr(p.body())]() -> const Storage* {
    auto held = body.lock();
    return held ? held->array.storage().get() : nullptr;
  });
  for (std::size_t i = 0; i < rule->states.size(); ++i) {
    recorder->binding([weak = std::weak_ptr(rule), i]() -> const Storage* {
      auto held = weak.lock();
      return held && i < held->states.size() ? held->states[i].storage().get() : nullptr;
    });
  }
}

UpdateTarget make_target(const ParameterRef& p, const UpdateRule& rule, const Array& gradient) {
  UpdateTarget target;
  target.parameter = p.array().operand();
  target.gradient = gradient.operand();
  for (std::size_t i = 0; i < rule.states.size(); ++i) {
    target.states[i] = rule.states[i].operand();
  }
  return target;
}

/// The values for this update; in a recording, asked anew by each replay.
void set_hyperparameters(UpdateParameters& op, const std::shared_ptr<OptimizerState>& optimizer,
                         const std::shared_ptr<UpdateRule>& rule) {
  std::vector<double> values = optimizer->hyperparameters(rule->t);
  op.num_hyperparameters = static_cast<int>(values.size());
  bool recording = ThreadState::current().recorder != nullptr;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (recording) {
      op.hyperparameters[i] =
          host_scalar([optimizer, rule, i] { return optimizer->hyperparameters(rule->t)[i]; });
    } else {
      op.hyperparameters[i].real = values[i];
    }
  }
}

void update_group(const Group& group, const std::shared_ptr<OptimizerState>& optimizer) {
  host_effect([rules = group.rules] {
    for (const auto& rule : rules) ++rule->t;
  });
  UpdateParameters op(optimizer->name(), optimizer->rule());
  std::size_t num_states = optimizer->state_names().size();
  op.num_states = static_cast<int>(num_states);
  op.targets.reserve(group.parameters.size());
  std::vector<Array> gradients;  // held until the operation is queued
  gradients.reserve(group.parameters.size());
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    const ParameterRef& p = group.parameters[i];
    UpdateRule& rule = *group.rules[i];
    if (!p.array().is_contiguous()) {
      throw ValueError(fmt::format("{}: the parameter {} is not C-contiguous", optimizer->name(),
                                   p.array().view().describe()));
    }
    prepare_states(rule, p.array(), num_states);
    bind_recording(p, group.rules[i]);
    gradients.push_back(p.grad().ascontiguous());
    op.targets.push_back(make_target(p, rule, gradients.back()));
  }
  set_hyperparameters(op, optimizer, group.rules[0]);
  launch(op);
}

void check_unnamed(const char* optimizer) {
  for (const ParameterRef& p : autograd::unnamed_with_gradient()) {
    throw ValueError(fmt::format(
        "{}.update: a parameter{} {} has a gradient, but no model names it, so that nothing would "
        "update it; name it in its link's members(Visitor&), or call set_update_enabled(false) on "
        "it",
        optimizer, p.name().empty() ? "" : " \"" + p.name() + "\"", p.array().view().describe()));
  }
}

}  // namespace

void Optimizer::check_loss(const Variable& loss, const Link* giver) const {
  if (loss.defined() && loss.size() == 1) return;
  std::string name = giver ? giver->type_name() : "the loss function";
  if (!loss.defined()) {
    throw ValueError(fmt::format("{}.update: {} gave an undefined Variable", state_->name(), name));
  }
  throw ValueError(fmt::format(
      "{}.update: {} gave {}, which is no loss: that has one element. L::Classifier(model) makes a "
      "loss of a model's output and labels, as does a function that ends in "
      "F::softmax_cross_entropy "
      "or F::mean",
      state_->name(), name, loss.array().view().describe()));
}

const Optimizer& Optimizer::setup(Link& model) const {
  model.check_members();
  state_->target = model.anchor();
  state_->t = 0;
  state_->epoch = 0;
  for (const ParameterRef& p : model.params()) {
    p.set_update_rule(std::make_shared<UpdateRule>(state_));
  }
  return *this;
}

Link& Optimizer::target() const {
  if (!state_->target) {
    throw ValueError(fmt::format("{}: no model yet; call setup(model) first", state_->name()));
  }
  if (!state_->target->link) {
    throw ValueError(
        fmt::format("{}: the model that this optimizer was set up with is gone (destroyed or "
                    "assigned over); call setup with the model that took its place",
                    state_->name()));
  }
  return *state_->target->link;
}

void Optimizer::update() const {
  Link& model = target();
  std::vector<Group> groups = make_groups(model, state_);
  check_unnamed(state_->name());
  host_effect([state = state_] { ++state->t; });
  for (const Group& group : groups) update_group(group, state_);
}

std::int64_t Optimizer::t() const {
  stay_eager("it asks an optimizer for its t");
  return state_->t;
}
std::int64_t Optimizer::epoch() const {
  stay_eager("it asks an optimizer for its epoch");
  return state_->epoch;
}
void Optimizer::new_epoch() const {
  host_effect([state = state_] { ++state->epoch; });
}

double& Optimizer::attribute(const std::string& name) const {
  stay_eager("it asks an optimizer for a hyperparameter");
  double* value = state_->attribute(name);
  if (!value) {
    throw ValueError(fmt::format("{}: no hyperparameter \"{}\"", state_->name(), name));
  }
  return *value;
}

}  // namespace rensa
