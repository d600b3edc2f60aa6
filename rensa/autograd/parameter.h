// Parameter: a leaf variable that a model owns. It may wait for its shape until the first forward.
// It lives on the heap: ParameterRef is a shared handle to it, Parameter the member of a model.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "rensa/autograd/variable.h"

namespace rensa {

/// Fills an array in place: initializers::LeCunNormal() and friends, a constant, or any callable.
class Initializer {
 public:
  Initializer() = default;  // none
  Initializer(double constant);
  Initializer(int constant) : Initializer(static_cast<double>(constant)) {}
  Initializer(Array values);
  template <class F>
  requires std::invocable<const F&, const Array&> Initializer(F fill) {
    if constexpr (requires { dtype_ = fill.dtype; }) dtype_ = fill.dtype;
    fill_ = std::move(fill);
  }
  explicit operator bool() const { return static_cast<bool>(fill_); }
  void operator()(const Array& out) const { fill_(out); }
  /// The value of a constant initializer's `Array`, whose shape a parameter takes at once.
  const Array& values() const { return values_; }
  /// What it fills is of this dtype: its own, that of floating values, else get_dtype().
  Dtype dtype() const;
  /// The same for `dtype`; for what is to be float32 where config().dtype is mixed.
  Initializer of(Dtype dtype) const;
  Initializer precise() const;  // the same, float32 where config().dtype is mixed

 private:
  std::optional<Dtype> dtype_, map_mixed_;
  std::function<void(const Array&)> fill_;
  Array values_;
};

/// How copying a model treats its parameters: Chainer's Link.copy modes. Where a parameter that
/// waits for its shape is shared, the first one that gets an array gives it to the others.
enum class CopyMode { share, copy, init };

/// A shared handle to a parameter: what Link::params() gives and optimizers hold.
class ParameterRef : public Variable {
 public:
  ParameterRef() = default;

  /// Whether the array is made.
  bool is_initialized() const { return defined() && body_->array.defined(); }
  /// Makes the array, on the device the model was last moved to, of the initializer's dtype
  /// (config().dtype, mostly), and fills it; the gradient stays undefined. No-op when initialized.
  /// Throws ShapeError where the initializer's values have another shape.
  void initialize(const Shape& shape) const;
  /// Puts the array (and gradient) on `device`; before initialization, notes it for then. Unlike a
  /// Variable, of which to() gives another one, a parameter moves itself, and gives itself.
  const ParameterRef& to(Device device) const;
  const ParameterRef& to_device(Device device) const { return to(device); }
  const ParameterRef& to_gpu() const { return to(current_gpu()); }
  const ParameterRef& to_gpu(int index) const { return to(gpu(index)); }
  const ParameterRef& to_cpu() const { return to(cpu()); }
  /// Where the array is, or will be.
  Device device() const;
  /// Left out of optimizer updates when off.
  bool update_enabled() const;
  void set_update_enabled(bool on) const;

  /// The optimizer's rule and state for this parameter (optimizers/update_rule.h). Throws
  /// ValueError before Optimizer::setup, which gives it one.
  const std::shared_ptr<class UpdateRule>& update_rule() const;
  bool has_update_rule() const;
  void set_update_rule(std::shared_ptr<class UpdateRule> rule) const;

  // A sum is no parameter. In place: p.array() += 1; else: Variable y = p; y += 1.
  void operator+=(const auto&) const = delete;
  void operator-=(const auto&) const = delete;
  void operator*=(const auto&) const = delete;
  void operator/=(const auto&) const = delete;

  explicit ParameterRef(std::shared_ptr<VariableBody> body) : Variable(std::move(body)) {}
};

/// A parameter as a model's member. A value: moving it moves the parameter, copying it, as a copy
/// of the model does, makes a new one, with a deep copy of the array unless a CopyModeScope says
/// otherwise. Gradient, update rule and graph are not copied. `Variable w = l.W` and
/// `ParameterRef w = l.W` are handles of it; `auto w = l.W`, which would be one or a copy by its
/// reader, does not compile. A parameter that two links share is a member of both, tied in one.
class Parameter : public ParameterRef {
 public:
  /// No parameter, such as the bias of a layer without one: visitors skip it.
  Parameter() = default;
  /// Waits for initialize().
  explicit Parameter(Initializer initializer);
  Parameter(Initializer initializer, const Shape& shape);
  explicit Parameter(const Parameter& other);
  explicit Parameter(Parameter& other) : Parameter(std::as_const(other)) {}
  template <std::same_as<Parameter> P> Parameter(P&) {
    static_assert(sizeof(P) == 0,
                  "auto w = l.W: write Variable w = l.W, or const auto& w = l.W, for the parameter "
                  "itself, and l.W.array().copy() for its values");
  }
  Parameter& operator=(const Parameter& other) { return *this = Parameter(other); }
  Parameter(Parameter&&) = default;
  Parameter& operator=(Parameter&&) = default;
  ParameterRef ref() const { return *this; }  // a handle to it

  /// Makes this another name of `owner`'s parameter: Visitor::tied says it in members(). No-op
  /// where it is that already. Throws ValueError for itself and for an undefined owner, ShapeError
  /// and DtypeError where both have arrays, which differ.
  void tie(const Parameter& owner);
};

/// A persistent array as a model's member: saved, moved and copied with it, not optimized. Copying
/// makes a deep copy (a shared one under CopyMode::share). It may be undefined until the first
/// call.
///
/// Values assigned to it go into its memory where it has their shape, dtype and device, so that a
/// recorded step does it again and who holds the array sees them: `mean = 0.9 * mean + 0.1 * m;`.
/// Others, and the first ones, are copied to new memory.
class Persistent : public Array {
 public:
  Persistent();
  explicit Persistent(Array array);
  explicit Persistent(const Persistent& other);
  explicit Persistent(Persistent& other) : Persistent(std::as_const(other)) {}
  template <std::same_as<Persistent> P> Persistent(P&) {
    static_assert(sizeof(P) == 0,
                  "auto m = l.mean: write Array m = l.mean, or const auto& m = l.mean, for the "
                  "array itself, and l.mean.copy() for a copy");
  }
  Persistent& operator=(const Persistent& other) { return *this = Persistent(other); }
  Persistent& operator=(const Array& values);
  Persistent(Persistent&&) = default;
  Persistent& operator=(Persistent&&) = default;

  /// Where the array is; of an undefined one, where a file's values will be: the device that was
  /// current when it was made, or that its model was last moved to.
  Device home() const { return defined() ? device() : home_; }
  /// Puts the array, or the values that a file will have for it, on `device`.
  void move_to(Device device);

 private:
  Device home_;
};

/// What the copies of Parameters and Persistents made in this scope do, on this thread.
class [[nodiscard]] CopyModeScope {
 public:
  [[nodiscard]] explicit CopyModeScope(CopyMode mode);
  ~CopyModeScope();
  CopyModeScope(const CopyModeScope&) = delete;
  CopyModeScope& operator=(const CopyModeScope&) = delete;

 private:
  CopyMode previous_;
};

}  // namespace rensa
