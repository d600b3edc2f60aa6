// Parameters, initializers and the modes in which models are copied.
#include "rensa/autograd/parameter.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "rensa/array/random_tape.h"
#include "rensa/autograd/graph.h"
#include "rensa/autograd/parameter_parts.h"
#include "rensa/autograd/recomputation.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"

namespace rensa {

/// What a parameter is beyond a variable.
struct ParameterState {
  Initializer initializer;
  Device device;  // where it will be made
  bool update_enabled = true;
  std::atomic<bool> named = false;  // by some model's members(), which several threads may read
  bool awaits_its_name = false;     // it is in unnamed_parameters
  std::shared_ptr<UpdateRule> rule;
  std::optional<Communicator> ranks_of_parts;
  /// Of one that waits for its shape: the parameters, itself among them, that will share its array.
  std::shared_ptr<std::vector<std::weak_ptr<VariableBody>>> sharers;
};

namespace {

thread_local CopyMode current_copy_mode = CopyMode::copy;
/// Parameters that got a gradient before any model named them.
thread_local std::vector<std::weak_ptr<VariableBody>> unnamed_parameters;

// A new parameter that differs from `like` only in its array.
std::shared_ptr<VariableBody> new_parameter(const VariableBody& like, Array array) {
  auto body = autograd::make_body(std::move(array), true);
  body->name = like.name;
  body->parameter = std::make_shared<ParameterState>();
  body->parameter->initializer = like.parameter->initializer;
  body->parameter->device = autograd::home_device(like);
  body->parameter->update_enabled = like.parameter->update_enabled;
  body->parameter->ranks_of_parts = like.parameter->ranks_of_parts;
  return body;
}

std::shared_ptr<VariableBody> copy_parameter(const std::shared_ptr<VariableBody>& source) {
  const Array& array = source->array;
  if (current_copy_mode == CopyMode::share) {
    auto copy = new_parameter(*source, array);
    if (array.defined()) return copy;
    auto& sharers = source->parameter->sharers;
    if (!sharers) sharers = std::make_shared<std::vector<std::weak_ptr<VariableBody>>>(1, source);
    sharers->push_back(copy);
    copy->parameter->sharers = sharers;
    return copy;
  }
  if (!array.defined()) return new_parameter(*source, {});
  if (current_copy_mode == CopyMode::copy) return new_parameter(*source, array.copy('K'));
  Array fresh = xp::empty_like(array);
  source->parameter->initializer(fresh);
  return new_parameter(*source, std::move(fresh));
}

ParameterState& state_of(const ParameterRef& parameter, const char* operation) {
  if (parameter.defined()) return *parameter.body()->parameter;
  throw ValueError(fmt::format(
      "{}: this parameter is undefined (default-constructed); a Parameter takes an initializer",
      operation));
}

}  // namespace

namespace autograd {

CopyMode copy_mode() { return current_copy_mode; }

Device home_device(const VariableBody& body) {
  if (body.array.defined()) return body.array.device();
  return body.parameter ? body.parameter->device : ThreadState::current().device;
}

void set_array(const Variable& parameter, Array array) {
  VariableBody& body = *parameter.body();
  describe(*body.node, array);
  body.node->requires_grad = true;
  body.array = std::move(array);
  if (!body.parameter) return;
  body.parameter->device = body.array.device();
  auto sharers = std::exchange(body.parameter->sharers, nullptr);
  if (!sharers) return;
  for (const auto& known : *sharers) {
    auto other = known.lock();
    if (!other || other->array.defined()) continue;
    other->parameter->sharers = nullptr;
    set_array(Variable(other), body.array.to(other->parameter->device));
  }
}

const Communicator* ranks_of_parts(const ParameterRef& parameter) {
  const auto& ranks = state_of(parameter, "ranks_of_parts").ranks_of_parts;
  return ranks ? &*ranks : nullptr;
}
void set_ranks_of_parts(const ParameterRef& parameter, const Communicator& ranks) {
  state_of(parameter, "set_ranks_of_parts").ranks_of_parts = ranks;
}

Array array_for(const ParameterRef& parameter, const Shape& shape) {
  return xp::empty(shape, dtype_for(parameter), parameter.body()->parameter->device);
}

Dtype dtype_for(const ParameterRef& parameter) {
  return parameter.body()->parameter->initializer.dtype();
}

void note_named(const ParameterRef& parameter) {
  parameter.body()->parameter->named.store(true, std::memory_order_relaxed);
}

void note_gradient(const std::shared_ptr<VariableBody>& body) {
  ParameterState& state = *body->parameter;
  if (!config().debug || state.named || state.awaits_its_name) return;
  state.awaits_its_name = true;
  auto& list = unnamed_parameters;
  if (list.size() == list.capacity()) {
    std::erase_if(list, [](const auto& known) { return known.expired(); });
  }
  list.push_back(body);
}

std::vector<ParameterRef> unnamed_with_gradient() {
  std::vector<ParameterRef> found;
  std::erase_if(unnamed_parameters, [&](const std::weak_ptr<VariableBody>& known) {
    auto body = known.lock();
    if (!body || body->parameter->named) return true;
    if (body->grad && body->parameter->update_enabled) found.emplace_back(body);
    return false;
  });
  return found;
}

}  // namespace autograd

Initializer::Initializer(double constant)
    : fill_([constant](const Array& out) { out.fill(constant); }) {}

Initializer::Initializer(Array values) : values_(std::move(values)) {
  if (!values_.defined()) throw ValueError("Initializer: the array is undefined");
  fill_ = [source = values_](const Array& out) {
    if (!(source.shape() == out.shape())) {
      throw ShapeError(fmt::format("initialize: a parameter {} from values {}", out.shape().str(),
                                   source.view().describe()));
    }
    out.assign(source.to(out.device()));
  };
}

Dtype Initializer::dtype() const {
  if (dtype_) return *dtype_;
  if (values_.defined() && dtype_kind(values_.dtype()) == 'f') return values_.dtype();
  return get_dtype(std::nullopt, map_mixed_);
}

Initializer Initializer::of(Dtype dtype) const {
  Initializer other = *this;
  other.dtype_ = dtype;
  return other;
}

Initializer Initializer::precise() const {
  Initializer other = *this;
  other.map_mixed_ = float32;
  return other;
}

Parameter::Parameter(Initializer initializer) {
  if (!initializer)
    throw ValueError(
        "Parameter: no initializer; pass a constant, an array or an "
        "initializer such as initializers::LeCunNormal()");
  body_ = autograd::make_body(Array(), true);
  body_->parameter = std::make_shared<ParameterState>();
  body_->parameter->device = ThreadState::current().device;
  body_->parameter->initializer = std::move(initializer);
  const Array& values = body_->parameter->initializer.values();
  if (values.defined()) initialize(values.shape());
}

Parameter::Parameter(Initializer initializer, const Shape& shape)
    : Parameter(std::move(initializer)) {
  if (is_initialized() && !(this->shape() == shape)) {
    throw ShapeError(
        fmt::format("Parameter: shape {} and values {}", shape.str(), array().view().describe()));
  }
  initialize(shape);
}

Parameter::Parameter(const Parameter& other)
    : ParameterRef(other.body_ ? copy_parameter(other.body_) : nullptr) {}

void Parameter::tie(const Parameter& owner) {
  if (this == &owner || !owner.defined()) {
    throw ValueError(
        fmt::format("tied: a parameter is tied to another one, not to {}",
                    this == &owner ? "itself" : "an undefined one (default-constructed)"));
  }
  if (body_ == owner.body_) return;
  if (is_initialized() && owner.is_initialized()) {
    auto text = [&] {
      return fmt::format("tied: a parameter {} cannot be one with {}", array().view().describe(),
                         owner.array().view().describe());
    };
    if (!(shape() == owner.shape())) throw ShapeError(text());
    if (dtype() != owner.dtype()) throw DtypeError(text());
  }
  body_ = owner.body_;
}

Persistent::Persistent() : home_(ThreadState::current().device) {}

Persistent::Persistent(Array array)
    : Array(std::move(array)), home_(defined() ? device() : ThreadState::current().device) {}

Persistent::Persistent(const Persistent& other)
    : Array(other.defined() && current_copy_mode != CopyMode::share
                ? other.copy('K')
                : static_cast<const Array&>(other)),
      home_(other.home()) {}

void Persistent::move_to(Device device) {
  home_ = device;
  if (defined() && this->device() != device) Array::operator=(to(device));
}

Persistent& Persistent::operator=(const Array& values) {
  if (!values.defined()) throw ValueError("Persistent: the values assigned to it are undefined");
  if (in_recomputing() && defined()) return *this;
  bool fits = defined() && shape() == values.shape() && dtype() == values.dtype() &&
              device() == values.device();
  if (fits) assign(values);
  else Array::operator=(values.copy('K'));
  return *this;
}

CopyModeScope::CopyModeScope(CopyMode mode) : previous_(std::exchange(current_copy_mode, mode)) {}
CopyModeScope::~CopyModeScope() { current_copy_mode = previous_; }

void ParameterRef::initialize(const Shape& shape) const {
  const ParameterState& state = state_of(*this, "initialize");
  if (is_initialized()) return;
  ThreadState& thread = ThreadState::current();
  if (thread.recorder) thread.recorder->cannot_record("it initializes a parameter");
  Array array = autograd::array_for(*this, shape);
  {
    xp::random::Tape::Aside once;  // in a second run of F::forget there is a parameter
    state.initializer(array);
  }
  autograd::set_array(*this, std::move(array));
}

const ParameterRef& ParameterRef::to(Device device) const {
  ParameterState& state = state_of(*this, "to");
  if (!is_initialized()) {
    state.device = device;
    return *this;
  }
  if (body_->array.device() == device) return *this;
  Array gradient = grad();
  autograd::set_array(*this, body_->array.to(device));
  if (gradient.defined()) set_grad(gradient.to(device));
  return *this;
}

Device ParameterRef::device() const { return state_of(*this, "device").device; }

bool ParameterRef::update_enabled() const {
  return state_of(*this, "update_enabled").update_enabled;
}
void ParameterRef::set_update_enabled(bool on) const {
  (void)state_of(*this, "set_update_enabled");
  host_effect_on(
      body_, [on](VariableBody& body) { body.parameter->update_enabled = on; }, on);
}

const std::shared_ptr<UpdateRule>& ParameterRef::update_rule() const {
  const ParameterState& state = state_of(*this, "update_rule");
  if (!state.rule) {
    throw ValueError(
        fmt::format("update_rule: the parameter{} has none yet; optimizer.setup(model) gives every "
                    "parameter of "
                    "the model one, to be called first",
                    name().empty() ? "" : " \"" + name() + "\""));
  }
  return state.rule;
}
bool ParameterRef::has_update_rule() const {
  return state_of(*this, "has_update_rule").rule != nullptr;
}
void ParameterRef::set_update_rule(std::shared_ptr<UpdateRule> rule) const {
  state_of(*this, "set_update_rule").rule = std::move(rule);
}

}  // namespace rensa
