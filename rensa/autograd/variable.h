// Variable: an array in a computation that remembers how it was made. A handle: copies share.
#pragma once

#include <atomic>
#include <iosfwd>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rensa/array/routines.h"
#include "rensa/autograd/reduction_options.h"

namespace rensa {

class FunctionNode;
class Variable;
using Variables = std::vector<Variable>;  // what functions of several take and give

/// What the operators of Variable call, as those of Array do.
namespace operators {
#define RENSA_VARIABLE_OPERATOR(name)                  \
  Variable name(const Variable& a, const Variable& b); \
  Variable name(const Variable& a, Scalar b);          \
  Variable name(Scalar a, const Variable& b);
RENSA_VARIABLE_OPERATOR(add)
RENSA_VARIABLE_OPERATOR(subtract)
RENSA_VARIABLE_OPERATOR(multiply)
RENSA_VARIABLE_OPERATOR(divide)
#undef RENSA_VARIABLE_OPERATOR
Variable negative(const Variable& a);
}  // namespace operators

/// A variable's place in the graph. Function nodes hold their inputs' VariableNodes strongly and
/// their outputs' weakly, so a graph dies with its outputs. It knows the array's looks; the array
/// itself is kept by the functions that asked for it.
struct VariableNode {
  Shape shape;                              // of the array
  Dtype dtype = Dtype::float32;             // of the array
  Device device;                            // of the array
  bool requires_grad = true;                // whether a gradient is computed for it
  int rank = 0;                             // the longest way from a leaf of the graph
  std::atomic<int> lowest_user = kNoUser;   // of a leaf: the least rank of a function given it
  std::shared_ptr<FunctionNode> creator;    // the function that gave it; null for a leaf
  std::weak_ptr<struct VariableBody> body;  // the variable, while somebody holds it

  static constexpr int kNoUser = std::numeric_limits<int>::max();  // no function was given it
};

/// What the handles of one variable share.
struct VariableBody {
  Array array;                                       // the values
  std::shared_ptr<VariableNode> node;                // the place in the graph
  std::unique_ptr<Variable> grad;                    // a Variable, for double backward
  std::string name;                                  // what errors and graphs call it
  std::shared_ptr<struct ParameterState> parameter;  // set for parameters (autograd/parameter.h)
};

struct BackwardOptions {
  bool retain_grad = false;             // keep gradients of intermediate variables
  bool enable_double_backprop = false;  // record the graph of the backward computation
  double loss_scale = 1;                // the gradient starts from it in place of 1
};

class Variable {
 public:
  /// No variable: bool-like tests are defined(); everything else throws.
  Variable() = default;
  /// A leaf. Only floating and complex variables can require a gradient. One that nobody holds any
  /// longer when backward runs, such as an Array passed to a function, costs no gradient.
  Variable(Array array, bool requires_grad = true);
  Variable(const View& view) : Variable(static_cast<const Array&>(view)) {}
  Variable(const Selection& selection) : Variable(Array(selection)) {}

  bool defined() const { return body_ != nullptr; }
  /// The values. Throws ValueError for no variable, and a parameter without an array yet.
  const Array& array() const;
  const Shape& shape() const { return array().shape(); }  // the array's
  std::int64_t shape(int axis) const { return array().shape(axis); }
  int ndim() const { return array().ndim(); }           // the number of axes
  std::int64_t size() const { return array().size(); }  // the number of elements
  Dtype dtype() const { return array().dtype(); }       // of the array
  Device device() const { return array().device(); }    // where the array is
  /// The one element, converted. Waits (counted).
  template <class T> T item() const { return array().item<T>(); }
  /// "variable([1., 2.], creator=exp)": the name, the values, the function that gave it. Waits
  /// (counted).
  std::string str() const;
  bool requires_grad() const;       // whether backward gives it a gradient
  const std::string& name() const;  // what errors and graphs call it

  /// The gradient's array; undefined when there is none.
  [[nodiscard]] Array grad() const;
  /// The gradient as a variable, with its own graph after enable_double_backprop.
  [[nodiscard]] Variable grad_var() const;
  /// Throws ShapeError, DtypeError, DeviceError when `g` does not match this variable.
  void set_grad(const Array& g) const;
  void set_grad_var(const Variable& g) const;
  void cleargrad() const;  // drops the gradient
  /// Adds the other's gradient to this one's, across devices.
  void addgrad(const Variable& other) const;
  /// Copies the other's values into this array, across devices.
  void copydata(const Variable& other) const;

  /// Computes the gradients of all variables that this one depends on, by rank. A variable of one
  /// element starts from 1, one without elements from none; another must have its gradient set
  /// (else ValueError). The graph stays as long as somebody holds the variable; of one that is
  /// given up, as in std::move(loss).backward(), each function goes, with the arrays that it kept,
  /// once it has given its gradients.
  void backward(const BackwardOptions& options = {}) const&;
  void backward(const BackwardOptions& options = {}) &&;

  /// Cuts this variable (unchain) or all that it depends on (unchain_backward) off the graph.
  void unchain() const;
  void unchain_backward() const;
  std::shared_ptr<FunctionNode> creator() const;  // the function that gave it; null for a leaf
  int rank() const { return node()->rank; }       // the longest way from a leaf of the graph

  /// The same elements in another shape, with a gradient. Throws ShapeError.
  [[nodiscard]] Variable reshape(const Shape& shape) const;
  [[nodiscard]] Variable transpose() const;  // the axes reversed, or in the order `axes`
  [[nodiscard]] Variable transpose(const Shape& axes) const;
  [[nodiscard]] Variable T() const { return transpose(); }  // the axes reversed
  // F's functions of the same names, with gradients.
  [[nodiscard]] Variable sum(Axes axis = {}, bool keepdims = false) const;
  [[nodiscard]] Variable mean(Axes axis = {}, bool keepdims = false) const;
  [[nodiscard]] Variable prod(Axes axis = {}, bool keepdims = false) const;
  [[nodiscard]] Variable max(Axes axis = {}, bool keepdims = false) const;
  [[nodiscard]] Variable min(Axes axis = {}, bool keepdims = false) const;
  [[nodiscard]] Variable var(Axes axis = {}, double ddof = 0, bool keepdims = false) const;
  [[nodiscard]] Variable std(Axes axis = {}, double ddof = 0, bool keepdims = false) const;
  // By keywords: x.sum({.axis = 1, .keepdims = true}).
  [[nodiscard]] Variable sum(const functions::ReduceOptions& options) const;
  [[nodiscard]] Variable mean(const functions::ReduceOptions& options) const;
  [[nodiscard]] Variable prod(const functions::ReduceOptions& options) const;
  [[nodiscard]] Variable max(const functions::ReduceOptions& options) const;
  [[nodiscard]] Variable min(const functions::ReduceOptions& options) const;
  [[nodiscard]] Variable var(const functions::VarianceOptions& options) const;
  [[nodiscard]] Variable std(const functions::VarianceOptions& options) const;
  [[nodiscard]] Variable cumsum(Axes axis = {}) const;
  [[nodiscard]] Variable cumprod(Axes axis = {}) const;
  [[nodiscard]] Variable clip(std::optional<double> x_min, std::optional<double> x_max) const;
  [[nodiscard]] Variable repeat(const IntegerList& repeats, OptionalAxis axis = none) const;
  [[nodiscard]] Variable diagonal(std::int64_t offset = 0, int axis1 = 0, int axis2 = 1) const;
  [[nodiscard]] Variable astype(Dtype dtype) const;  // F::cast
  [[nodiscard]] Variable ravel() const;
  [[nodiscard]] Variable flatten() const { return ravel(); }
  [[nodiscard]] Variable squeeze(const AxisList& axis = {}) const;
  [[nodiscard]] Variable expand_dims(int axis) const;
  [[nodiscard]] Variable swapaxes(int a, int b) const;
  [[nodiscard]] Variable broadcast_to(const Shape& shape) const;
  /// This variable's values on `device`: itself when they are there already, else F::copy, with a
  /// gradient that goes back.
  [[nodiscard]] Variable to(Device device) const;
  [[nodiscard]] Variable to_cpu() const { return to(cpu()); }
  [[nodiscard]] Variable to_gpu() const { return to(current_gpu()); }
  [[nodiscard]] Variable to_gpu(int index) const { return to(gpu(index)); }
  /// F::get_item: basic indexing, and indexing by arrays of integers or bools.
  [[nodiscard]] Variable operator[](BasicIndex index) const;
  [[nodiscard]] Variable operator[](std::initializer_list<BasicIndex> index) const;
  [[nodiscard]] Variable operator[](const Selector& index) const;
  // Without a gradient: the array's.
  [[nodiscard]] Array argmax(Axes axis = {}) const;
  [[nodiscard]] Array argmin(Axes axis = {}) const;
  template <class T> std::vector<T> to_vector() const { return array().to_vector<T>(); }
  /// Writes into the array where it stands. Throws ValueError where a function gave this variable:
  /// the graph would say something else than the array.
  const Variable& fill(Scalar value) const;
  const Variable& assign(const Array& source) const;

#define RENSA_VARIABLE_OPERATOR(symbol, name)                                           \
  [[nodiscard]] friend Variable operator symbol(const Variable& a, const Variable& b) { \
    return operators::name(a, b);                                                       \
  }                                                                                     \
  [[nodiscard]] friend Variable operator symbol(const Variable& a, Scalar b) {          \
    return operators::name(a, b);                                                       \
  }                                                                                     \
  [[nodiscard]] friend Variable operator symbol(Scalar a, const Variable& b) {          \
    return operators::name(a, b);                                                       \
  }
  RENSA_VARIABLE_OPERATOR(+, add)
  RENSA_VARIABLE_OPERATOR(-, subtract)
  RENSA_VARIABLE_OPERATOR(*, multiply)
  RENSA_VARIABLE_OPERATOR(/, divide)
#undef RENSA_VARIABLE_OPERATOR
  [[nodiscard]] friend Variable operator-(const Variable& a) { return operators::negative(a); }
  [[nodiscard]] friend Variable operator+(const Variable& a) { return a; }

  // A function's result in place of this variable, as in Chainer: this handle stands for it from
  // now on; the array, and other handles of the old variable, stay as they are.
  Variable& operator+=(const Variable& b) { return *this = *this + b; }
  Variable& operator-=(const Variable& b) { return *this = *this - b; }
  Variable& operator*=(const Variable& b) { return *this = *this * b; }
  Variable& operator/=(const Variable& b) { return *this = *this / b; }
  Variable& operator+=(Scalar b) { return *this = *this + b; }
  Variable& operator-=(Scalar b) { return *this = *this - b; }
  Variable& operator*=(Scalar b) { return *this = *this * b; }
  Variable& operator/=(Scalar b) { return *this = *this / b; }

  // Of the values: arrays of bool, without a gradient.
#define RENSA_VARIABLE_COMPARISON(symbol)                                            \
  [[nodiscard]] friend Array operator symbol(const Variable& a, const Variable& b) { \
    return a.array() symbol b.array();                                               \
  }                                                                                  \
  [[nodiscard]] friend Array operator symbol(const Variable& a, Scalar b) {          \
    return a.array() symbol b;                                                       \
  }                                                                                  \
  [[nodiscard]] friend Array operator symbol(Scalar a, const Variable& b) {          \
    return a symbol b.array();                                                       \
  }
  RENSA_VARIABLE_COMPARISON(==)
  RENSA_VARIABLE_COMPARISON(!=)
  RENSA_VARIABLE_COMPARISON(<)
  RENSA_VARIABLE_COMPARISON(<=)
  RENSA_VARIABLE_COMPARISON(>)
  RENSA_VARIABLE_COMPARISON(>=)
#undef RENSA_VARIABLE_COMPARISON
  friend std::ostream& operator<<(std::ostream& os, const Variable& v);

  const std::shared_ptr<VariableNode>& node() const;                   // its place in the graph
  const std::shared_ptr<VariableBody>& body() const { return body_; }  // what all handles share
  explicit Variable(std::shared_ptr<VariableBody> body) : body_(std::move(body)) {}

 protected:
  std::shared_ptr<VariableBody> body_;
};

/// A variable of `array` that no gradient reaches: labels, masks, constants.
[[nodiscard]] inline Variable constant(Array array) { return Variable(std::move(array), false); }

/// chainer.grad: gradients of `outputs` with respect to `inputs`, as variables; the inputs' own
/// grad() is left alone. `grad_outputs` is empty for ones. Undefined where no path leads.
[[nodiscard]] Variables grad(const Variables& outputs, const Variables& inputs,
                             const Variables& grad_outputs = {},
                             bool enable_double_backprop = false);

}  // namespace rensa
