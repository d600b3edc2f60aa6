// Variable: its gradient, its data, its place in the graph.
#include "rensa/autograd/variable.h"

#include <fmt/format.h>

#include <ostream>
#include <utility>

#include "rensa/array/print.h"
#include "rensa/autograd/backward.h"
#include "rensa/autograd/function_node.h"
#include "rensa/autograd/graph.h"
#include "rensa/autograd/parameter.h"
#include "rensa/core/error.h"

namespace rensa {

namespace autograd {

void store_grad(const std::shared_ptr<VariableBody>& body, Variable gradient) {
  if (!gradient.defined()) return host_effect_on(body, [](VariableBody& b) { b.grad.reset(); });
  host_effect_on(body, [gradient = std::move(gradient)](VariableBody& b) {
    if (b.grad) *b.grad = gradient;
    else b.grad = std::make_unique<Variable>(gradient);
  });
}

Variable added_to_grad(const std::shared_ptr<VariableBody>& body, const Variable& gradient) {
  if (!body->grad) return gradient;
  bind_recording(body, [](const VariableBody& b) -> const Storage* {
    return b.grad ? b.grad->array().storage().get() : nullptr;
  });
  return *body->grad + gradient;
}

void check_gradient(const char* operation, const Shape& shape, Dtype dtype, Device device,
                    const Array& g) {
  if (g.shape() == shape && g.dtype() == dtype && g.device() == device) return;
  std::string text = fmt::format("{}: a gradient {} for a variable {} {} {}", operation,
                                 g.view().describe(), device.str(), shape.str(), dtype_name(dtype));
  if (!(g.shape() == shape)) throw ShapeError(text);
  if (g.dtype() != dtype) throw DtypeError(text);
  throw DeviceError(text + "; move it with .to(...)");
}

}  // namespace autograd

namespace {

[[noreturn]] void throw_undefined(const char* what) {
  throw ValueError(fmt::format("{}: this Variable is undefined (default-constructed)", what));
}

VariableBody& body_of(const Variable& v, const char* what) {
  if (!v.defined()) throw_undefined(what);
  return *v.body();
}

}  // namespace

Variable::Variable(Array array, bool requires_grad) {
  if (!array.defined()) throw ValueError("Variable: the array is undefined");
  body_ = autograd::make_body(std::move(array), requires_grad);
}

namespace autograd {

std::shared_ptr<VariableBody> make_body(Array array, bool requires_grad) {
  auto node = std::make_shared<VariableNode>();
  if (array.defined()) describe(*node, array);
  node->requires_grad = requires_grad && is_differentiable(node->dtype);
  return make_body(std::move(array), std::move(node));
}

std::shared_ptr<VariableBody> make_body(Array array, std::shared_ptr<VariableNode> node) {
  auto body = std::make_shared<VariableBody>();
  body->array = std::move(array);
  body->node = std::move(node);
  body->node->body = body;
  return body;
}

void describe(VariableNode& node, const Array& array) {
  node.shape = array.shape();
  node.dtype = array.dtype();
  node.device = array.device();
}

}  // namespace autograd

const Array& Variable::array() const {
  const VariableBody& body = body_of(*this, "array");
  if (!body.array.defined()) {
    throw ValueError(fmt::format(
        "array: parameter \"{}\" is not initialized: it takes its shape at the first forward, or "
        "by initialize(shape)",
        body.name));
  }
  return body.array;
}

bool Variable::requires_grad() const { return node()->requires_grad; }

const std::string& Variable::name() const { return body_of(*this, "name").name; }

const std::shared_ptr<VariableNode>& Variable::node() const { return body_of(*this, "node").node; }

std::shared_ptr<FunctionNode> Variable::creator() const { return node()->creator; }

Array Variable::grad() const {
  const VariableBody& body = body_of(*this, "grad");
  return body.grad ? body.grad->array() : Array();
}

Variable Variable::grad_var() const {
  const VariableBody& body = body_of(*this, "grad_var");
  return body.grad ? *body.grad : Variable();
}

void Variable::set_grad(const Array& g) const {
  set_grad_var(g.defined() ? constant(g) : Variable());
}

void Variable::set_grad_var(const Variable& g) const {
  body_of(*this, "set_grad");
  if (g.defined()) {
    const Array& a = array();
    autograd::check_gradient("set_grad", a.shape(), a.dtype(), a.device(), g.array());
  }
  autograd::store_grad(body_, g);
}

void Variable::cleargrad() const {
  body_of(*this, "cleargrad");
  autograd::store_grad(body_, {});
}

void Variable::addgrad(const Variable& other) const {
  body_of(*this, "addgrad");
  Array theirs = other.grad();
  if (!theirs.defined()) return;
  Array mine = grad();
  if (mine.defined()) {
    set_grad(mine + theirs.to(mine.device()));
  } else {
    set_grad(theirs.copy(device()));
  }
}

void Variable::copydata(const Variable& other) const {
  VariableBody& body = body_of(*this, "copydata");
  const VariableBody& source = body_of(other, "copydata");
  if (!source.array.defined()) return;
  if (!body.array.defined()) {
    autograd::set_array(*this, source.array.copy(autograd::home_device(body)));
    return;
  }
  const Array& to = body.array;
  const Array& from = source.array;
  if (!(to.shape() == from.shape())) {
    throw ShapeError(
        fmt::format("copydata: from {} into {}", from.view().describe(), to.view().describe()));
  }
  if (to.device() == from.device()) {
    to.assign(from);
  } else if (to.dtype() == from.dtype() && to.is_contiguous()) {
    to.set(from.ascontiguous());
  } else {
    to.assign(from.to(to.device()));
  }
}

namespace {

const Array& array_to_write(const char* operation, const Variable& v) {
  if (auto creator = v.creator()) {
    throw ValueError(fmt::format(
        "{}: {} gave this variable, which is not written in place: make a new one, or unchain() it",
        operation, creator->name()));
  }
  return v.array();
}

}  // namespace

const Variable& Variable::fill(Scalar value) const {
  array_to_write("fill", *this).fill(value);
  return *this;
}

const Variable& Variable::assign(const Array& source) const {
  array_to_write("assign", *this).assign(source);
  return *this;
}

void Variable::backward(const BackwardOptions& options) const& {
  rensa::backward({*this}, options);
}
void Variable::backward(const BackwardOptions& options) && {
  Variables given(1);
  given[0] = std::move(*this);
  rensa::backward(std::move(given), options);
}

void Variable::unchain() const {
  VariableNode& n = *node();
  n.creator.reset();
  n.rank = 0;
}

void Variable::unchain_backward() const {
  std::vector<std::shared_ptr<FunctionNode>> pending;
  if (auto function = creator()) pending.push_back(std::move(function));
  while (!pending.empty()) {
    std::shared_ptr<FunctionNode> function = std::move(pending.back());
    pending.pop_back();
    for (const auto& input : function->inputs()) {
      if (input->creator) pending.push_back(input->creator);
    }
    function->unchain();
  }
}

std::string Variable::str() const {
  if (!defined()) return "variable(undefined)";
  std::string start = body_->name.empty() ? "variable(" : "variable " + body_->name + "(";
  if (!body_->array.defined()) return start + "not initialized)";
  std::string values = xp::array2string(body_->array, {.separator = ", ", .prefix = start});
  auto function = creator();
  return start + values + (function ? fmt::format(", creator={})", function->name()) : ")");
}

std::ostream& operator<<(std::ostream& os, const Variable& v) { return os << v.str(); }

}  // namespace rensa
