// Optimizer: from a model's parameters and gradients to the calls of hooks and the algorithm.
#include "rensa/optimizers/optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <unordered_set>
#include <utility>

#include "rensa/array/creation.h"
#include "rensa/autograd/gradient_watch.h"
#include "rensa/autograd/graph.h"
#include "rensa/core/error.h"
#include "rensa/core/update_rule_ids.h"
#include "rensa/device/tracer.h"
#include "rensa/optimizers/host_numbers.h"
#include "rensa/optimizers/joint_update.h"
#include "rensa/optimizers/row_launch.h"
#include "rensa/optimizers/update_call.h"

namespace rensa {

namespace {

/// Of a file.
void check_state(const std::string& name, const Array& values, const Shape& wanted) {
  if (!(values.shape() == wanted)) {
    throw ShapeError(fmt::format("the state {} of a parameter {} cannot take the values of {}",
                                 name, wanted.str(), values.view().describe()));
  }
  if (!can_cast_same_kind(values.dtype(), float32)) {
    throw DtypeError(fmt::format("the state {} of a parameter cannot take the values of {}", name,
                                 values.view().describe()));
  }
}

bool has_hooks(const UpdateCall& call, const OptimizerState& optimizer) {
  return !optimizer.hooks.empty() ||
         std::ranges::any_of(call.parameters,
                             [](const UpdatedParameter& p) { return !p.rule->hooks().empty(); });
}

/// Gradients that are to be changed in place: none is another one's memory, as those of the two
/// terms of a sum may be.
void part_gradients(UpdateCall& call) {
  std::unordered_set<const Storage*> seen;
  for (UpdatedParameter& p : call.parameters) {
    if (!seen.insert(p.grad.storage().get()).second) p.grad = p.grad.copy('K');
  }
}

/// The gradients without the loss scale; those of parameters that are updated in float32, as
/// float32.
void unscale(UpdateCall& call, const std::function<std::vector<double>()>& scale,
             const Array& device_scale) {
  RowLaunch in_place("unscale", UpdateRuleId::unscale);
  RowLaunch copies("unscale", UpdateRuleId::unscaled_copy);
  if (!device_scale.defined()) in_place.add_set(scale), copies.add_set(scale);
  std::vector<Array> held;  // until the launches
  for (UpdatedParameter& p : call.parameters) {
    bool copy = p.rule->fp32_param.defined() && p.grad.dtype() != p.array.dtype();
    Array gradient = p.grad;
    if (copy) p.grad = xp::empty_like(p.array, {.order = 'K'});
    operations::UpdateTarget& target =
        copy ? copies.add(p.grad, gradient) : in_place.add(p.array, gradient);
    if (device_scale.defined()) target.numbers = device_scale.operand();
    held.push_back(std::move(gradient));
  }
  in_place.run();
  copies.run();
}

/// Unscales, and finds out on the device whether the update may be done and what comes next.
void apply_dynamic_scale(UpdateCall& call, const std::shared_ptr<OptimizerState>& optimizer) {
  if (call.parameters.empty() && !call.joint) return;
  DynamicLossScale& dynamic = *optimizer->dynamic;
  Array total = squared_norm(call);
  dynamic.prepare(total.device());
  unscale(call, {}, dynamic.scale);
  RowLaunch next("loss_scale", UpdateRuleId::loss_scale);
  next.add_set(
      [optimizer] { return std::vector<double>{std::pow(2.0, 1 / optimizer->dynamic->interval)}; });
  next.add(dynamic.scale, total).states = {dynamic.overflowed.operand(), dynamic.enabled.operand()};
  next.run();
  call.enabled = dynamic.enabled;
}

void apply_loss_scale(UpdateCall& call, const std::shared_ptr<OptimizerState>& optimizer) {
  if (optimizer->dynamic) return apply_dynamic_scale(call, optimizer);
  bool wide = std::ranges::any_of(
      call.parameters, [](const UpdatedParameter& p) { return p.rule->fp32_param.defined(); });
  if (optimizer->loss_scale == 1 && !(wide && has_hooks(call, *optimizer))) return;
  unscale(call, [optimizer] { return std::vector<double>{optimizer->loss_scale}; }, {});
}

void count_updates(const UpdateCall& call) {
  for (const UpdatedParameter& p : call.parameters) ++p.rule->t;
  Recorder* recorder = ThreadState::current().recorder;
  if (!recorder) return;
  std::vector<std::shared_ptr<UpdateRule>> rules;
  for (const UpdatedParameter& p : call.parameters) rules.push_back(p.rule);
  auto count = [rules = std::move(rules)] {
    for (const auto& rule : rules) ++rule->t;
  };
  recorder->effect(count, 0, {});
}

/// The parameters from the float32 copies that were updated.
void round_copies(const UpdateCall& call) {
  RowLaunch launch("round", UpdateRuleId::rounded_copy);
  launch.add_set([] { return std::vector<double>{1}; });
  for (const UpdatedParameter& p : call.parameters) {
    if (p.rule->fp32_param.defined()) launch.add(p.parameter.array(), p.array);
  }
  launch.run();
}

void call_hook(OptimizerHook& hook, const UpdateCall& call) {
  if (call.joint && call.joint->of_equal_models() && hook.is_random()) {
    throw NotImplementedError(
        fmt::format("the optimizer's hook {} makes other random numbers on each rank, with which "
                    "their models would go apart",
                    hook.name()));
  }
  hook(call);
}

/// The optimizer's hooks for all parameters, then those of single parameters, each for all that it
/// was added to: of these the ones in `part`, which holds some of them. The same hooks on every
/// rank; those of single parameters are for one rank where models differ.
void call_hooks(const UpdateCall& all, const UpdateCall& part, const OptimizerState& optimizer,
                OptimizerHook::Timing timing) {
  for (const auto& hook : HookList(optimizer.hooks)) {
    if (hook->timing() == timing) call_hook(*hook, part);
  }
  std::vector<std::pair<std::shared_ptr<OptimizerHook>, UpdateCall>> own;
  JointUpdate* joint = part.joint && part.joint->of_equal_models() ? part.joint : nullptr;
  auto next = part.parameters.begin();
  for (const UpdatedParameter& p : all.parameters) {
    bool is_part = next != part.parameters.end() && next->rule == p.rule;
    for (const auto& hook : p.rule->hooks()) {
      if (hook->timing() != timing) continue;
      auto known = std::ranges::find(own, hook, [](const auto& entry) { return entry.first; });
      if (known == own.end()) {
        known = own.insert(own.end(), {hook, UpdateCall{{}, joint, part.enabled}});
      }
      if (is_part) known->second.parameters.push_back(*next);
    }
    if (is_part) ++next;
  }
  for (const auto& [hook, call] : own) call_hook(*hook, call);
}

void check_heeds_enabled(const OptimizerState& optimizer) {
  if (!optimizer.dynamic || optimizer.algorithm->heeds_enabled()) return;
  throw NotImplementedError(fmt::format(
      "{0}.update: with a dynamic loss scale an update is to change nothing where the call's "
      "enabled is 0, which {0} does not look at; let it, and have its heeds_enabled() give true, "
      "or "
      "give loss_scaling a scale that stays: {{.scale = 1024}}",
      optimizer.name()));
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

void DynamicLossScale::prepare(Device device) {
  if (!scale.defined()) {
    refuse_recording("it makes a loss scale");
    scale = xp::ones({1}, float64, device);
    overflowed = xp::zeros({1}, float64, device);
    enabled = xp::ones({1}, float64, device);
  }
  for (Array* array : {&scale, &overflowed, &enabled}) *array = array->to(device);
}

std::shared_ptr<UpdateRule> OptimizerState::rule_of(const ParameterRef& p) {
  std::shared_ptr<UpdateRule> rule = p.has_update_rule() ? p.update_rule() : nullptr;
  std::shared_ptr<OptimizerState> other = rule ? rule->owner.lock() : nullptr;
  if (other.get() == this) return rule;
  if (other) {
    throw ValueError(
        fmt::format("{}: a parameter of the model was since set up with another optimizer ({}); "
                    "call setup again to take it back",
                    name(), other->name()));
  }
  rule = std::make_shared<UpdateRule>(weak_from_this());
  rule->use_fp32_update(fp32_update);
  p.set_update_rule(rule);
  return rule;
}

void OptimizerState::prepare_for_update(const ParameterRef& p) {
  prepare(*rule_of(p), p.array(), algorithm->states());
}

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
    auto rule = std::make_shared<UpdateRule>(state_);
    rule->use_fp32_update(state_->fp32_update);
    p.set_update_rule(rule);
  }
  state_->change_structure();
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
  check_heeds_enabled(*state_);
  UpdateCall call = make_call(model, state_);
  check_unnamed(state_->name());
  state_->bind_structure();
  watch_numbers(call, state_);
  bool changes =
      call.joint || state_->dynamic || state_->loss_scale != 1 || has_hooks(call, *state_);
  if (changes) part_gradients(call);
  if (call.joint && !call.joint->join(call)) return;
  UpdateCall part;
  if (call.joint) part = own_part(call);
  UpdateCall& own = call.joint ? part : call;
  apply_loss_scale(own, state_);
  call_hooks(call, own, *state_, OptimizerHook::Timing::pre);
  host_effect([state = state_] { ++state->t; });
  count_updates(call);
  state_->algorithm->update(own);
  if (!state_->algorithm->writes_parameters()) round_copies(own);
  if (call.joint) call.joint->share(call);
  call.enabled = own.enabled;
  call_hooks(call, call, *state_, OptimizerHook::Timing::post);
}

void Optimizer::backward(Variable loss, double weight) const {
  state_->bind_structure();
  std::optional<GradientWatchScope> watched;
  if (GradientWatch* watch = state_->joint ? state_->joint->watch() : nullptr) {
    watched.emplace(watch);
  }
  if (!state_->dynamic) {
    std::move(loss).backward({.loss_scale = weight * state_->loss_scale});
    return;
  }
  state_->dynamic->prepare(loss.device());
  Array seed = state_->dynamic->scale.astype(loss.dtype()).reshape(loss.shape());
  loss.set_grad(weight == 1 ? seed.copy() : seed * weight);
  std::move(loss).backward();
}

const Optimizer& Optimizer::add_any_hook(std::shared_ptr<OptimizerHook> hook) const {
  add_to(state_->hooks, std::move(hook));
  state_->change_structure();
  return *this;
}

void Optimizer::remove_hook(const std::string& name) const {
  remove_from(state_->hooks, name);
  state_->change_structure();
}

const Optimizer& Optimizer::use_fp32_update(bool on) const {
  state_->fp32_update = on;
  if (state_->target && state_->target->link) {
    for (const ParameterRef& p : target().params()) state_->rule_of(p)->use_fp32_update(on);
  }
  return *this;
}

const Optimizer& Optimizer::loss_scaling(const LossScalingOptions& options) const {
  if (options.scale ? !(*options.scale > 0) : !(options.interval > 0)) {
    throw ValueError(fmt::format("{}.loss_scaling: the scale and the interval are above 0, not {}",
                                 state_->name(), options.scale.value_or(options.interval)));
  }
  state_->loss_scale = options.scale.value_or(1);
  state_->dynamic.reset();
  if (!options.scale)
    state_->dynamic = DynamicLossScale{
        .interval = options.interval, .scale = {}, .overflowed = {}, .enabled = {}};
  state_->change_structure();
  return *this;
}

Array Optimizer::loss_scale() const {
  if (!state_->dynamic) return xp::full({1}, state_->loss_scale, float64, cpu());
  return state_->dynamic->scale.defined() ? state_->dynamic->scale.copy()
                                          : xp::ones({1}, float64, cpu());
}

void OptimizerState::change_structure() {
  stay_eager("it changes what an update is made of");
  RecorderScope off(nullptr);
  structures_.push_back(xp::empty({1}, float32, cpu()));
}

void OptimizerState::bind_structure() {
  Recorder* recorder = ThreadState::current().recorder;
  if (!recorder) return;
  recorder->binding([weak = weak_from_this()]() -> const Storage* {
    auto held = weak.lock();
    return held && !held->structures_.empty() ? held->structures_.back().storage().get() : nullptr;
  });
}

void OptimizerState::follow(const OptimizerState& main) {
  auto interval = [](const OptimizerState& s) { return s.dynamic ? s.dynamic->interval : 0; };
  // Main's scale starts anew: it has none yet.
  if (main.dynamic && !main.dynamic->scale.defined()) dynamic.reset();
  if (hooks == main.hooks && fp32_update == main.fp32_update && loss_scale == main.loss_scale &&
      interval(*this) == interval(main)) {
    return;
  }
  change_structure();
  hooks = main.hooks;
  fp32_update = main.fp32_update;
  loss_scale = main.loss_scale;
  if (!main.dynamic) dynamic.reset();
  else if (!dynamic) dynamic.emplace();
  if (dynamic) dynamic->interval = main.dynamic->interval;
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

/// Shows the states to be read. Those that are missing are made once all of the file is found to
/// fit; by then the same file may have initialized the parameter.
void OptimizerState::read_states(const ParameterRef& parameter,
                                 const std::shared_ptr<UpdateRule>& rule,
                                 const std::vector<UpdateState>& states, Visitor& v) {
  Visitor::Reading& file = *v.reading();
  std::optional<Shape> shape =
      parameter.is_initialized() ? parameter.shape() : file.shape_for(parameter);
  bool updated = file.number("t") > 0;
  auto is_there = [&](const UpdateState& state) { return file.contains(state.name); };
  bool has_states = shape && (updated || std::ranges::any_of(states, is_there));
  bool has_copy = shape && (updated || file.contains("fp32_param"));
  auto show = [&](const std::string& name, auto array_of) {
    auto take = [held = shared_from_this(), parameter, rule, array_of, wanted = *shape,
                 name](const Array& values) -> Visitor::Commit {
      check_state(name, values, wanted);
      if (Array* array = array_of(*rule)) return writing(*array, values);
      return [held, parameter, rule, array_of, values] {
        held->prepare_for_update(parameter);
        if (Array* array = array_of(*rule)) write_values(*array, values);
      };
    };
    v.computed(
        name, [] { return Array(); }, take);
  };
  for (std::size_t i = 0; has_states && i < states.size(); ++i) {
    show(states[i].name,
         [i](UpdateRule& r) { return i < r.states.size() ? &r.states[i] : nullptr; });
  }
  bool wants_copy =
      parameter.is_initialized() ? is_narrow(parameter.array()) : file.contains("fp32_param");
  if (has_copy && rule->uses_fp32_update() && wants_copy) {
    show("fp32_param",
         [](UpdateRule& r) { return r.fp32_param.defined() ? &r.fp32_param : nullptr; });
  }
  file.then([rule, has_states, has_copy] {
    if (!has_states) rule->states.clear();
    if (!has_copy) rule->fp32_param = {};
  });
}

void OptimizerState::members_of(const ParameterRef& parameter,
                                std::set<const OptimizerHook*>& shown, Visitor& v) {
  std::shared_ptr<UpdateRule> rule = rule_of(parameter);
  Visitor::Reading* file = v.reading();
  std::vector<UpdateState> states = algorithm->states();
  v("t", rule->t);
  if (!file) {
    for (std::size_t i = 0; i < rule->states.size(); ++i) v(states[i].name, rule->states[i]);
    if (rule->fp32_param.defined()) v("fp32_param", rule->fp32_param);
  } else {
    read_states(parameter, rule, states, v);
  }
  for (const auto& [name, shared] : algorithm->hyperparameters()) {
    std::string key = "hyperparam/" + name;
    if (file ? !file->contains(key) : !rule->has_own(name)) continue;
    v.computed(
        key, [rule, name = name] { return rule->hyperparam(name); },
        [rule, name = name](double value) { rule->set_hyperparam(name, value); });
  }
  if (v.reads("update_enabled")) {  // Chainer's files have none
    v.computed(
        "update_enabled", [parameter] { return parameter.update_enabled(); },
        [parameter](bool on) { parameter.set_update_enabled(on); });
  }
  for (const auto& hook : rule->hooks()) {
    if (shown.insert(hook.get()).second) v(std::string("hook/") + hook->name(), *hook);
  }
}

void Optimizer::members(Visitor& v) const {
  OptimizerState& state = *state_;
  Visitor::Reading* file = v.reading();
  v("t", state.t);
  v("epoch", state.epoch);
  for (const auto& [name, value] : state.algorithm->hyperparameters()) {
    v.optional("hyperparam/" + name, *value);  // Chainer's files have none
  }
  state.algorithm->members(v);
  std::set<const OptimizerHook*> shown;
  for (const auto& hook : state.hooks) {
    v(std::string("hook/") + hook->name(), *hook);
    shown.insert(hook.get());
  }
  for (const NamedParameter& named : target().namedparams()) {
    v.group(named.path.substr(1),
            [&](Visitor& each) { state.members_of(named.parameter, shown, each); });
  }
  if (!state.dynamic) {
    if (!v.reads("static_loss_scale")) return;  // Chainer's files have none
    v.computed(
        "static_loss_scale", [held = state_] { return held->loss_scale; },
        [held = state_](double scale) {
          held->loss_scale = scale;
          held->change_structure();
        });
    return;
  }
  // A file from before the first update may lack the scale.
  DynamicLossScale& dynamic = *state.dynamic;
  v.optional("loss_scale_interval", dynamic.interval);
  if (file && !file->contains("loss_scale") && file->number("t") == 0) {
    file->then([held = state_] {
      held->dynamic->scale = {};
      held->change_structure();
    });
    return;
  }
  if (!dynamic.scale.defined() && (file || state.t > 0)) dynamic.prepare(cpu());
  if (!dynamic.scale.defined()) return;
  v("loss_scale", dynamic.scale);
  v("loss_scale_overflowed", dynamic.overflowed);
}

double& Optimizer::attribute(const std::string& name) const {
  stay_eager("it asks an optimizer for a hyperparameter");
  return number_of(*state_->algorithm, state_->algorithm->hyperparameters(), name);
}

OptimizerState::OptimizerState(std::shared_ptr<OptimizerAlgorithm> a) : algorithm(std::move(a)) {}

Optimizer::Optimizer(std::shared_ptr<OptimizerAlgorithm> algorithm)
    : state_(std::make_shared<OptimizerState>(std::move(algorithm))) {}

}  // namespace rensa
