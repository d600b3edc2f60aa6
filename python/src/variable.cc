// rensa.Variable and Parameter, gradients, and the configuration.
#include <nanobind/stl/shared_ptr.h>

#include <set>

#include "arguments.h"
#include "bind.h"

namespace rensa::python {

namespace {

/// A new handle's array in place of the old one: what Chainer's `x.array = ...` does.
void set_array(const Variable& v, const Array& array) {
  const auto& body = v.body();
  if (!body) throw ValueError("Variable.array: there is no variable");
  body->array = array;
  if (body->node) {
    body->node->shape = array.shape(), body->node->dtype = array.dtype();
    body->node->device = array.device();
  }
}

/// Chainer moves the variable itself, with its gradient.
void move(const Variable& v, Device device) {
  unlocked([&] {
    Array grad = v.grad();
    set_array(v, v.array().to(device));
    if (grad.defined()) v.set_grad(grad.to(device));
  });
}

Variable get_item(const Variable& v, nb::handle key) {
  std::vector<Index> index = index_of(key);
  return unlocked([&] {
    std::vector<BasicIndex> entries;
    for (const Index& entry : index) {
      if (entry.is_array()) return F::get_item(v, Selector(index));
      entries.push_back(entry.basic());
    }
    return F::get_item(v, std::span<const BasicIndex>(entries));
  });
}

/// A number of Python's, or a scalar of NumPy's: operators convert it to the variable's dtype.
std::optional<Scalar> operator_scalar(nb::handle object) {
  if (auto number = scalar_of(object)) return number;
  if (nb::isinstance<Array>(object) || nb::isinstance<Variable>(object)) return {};
  // numpy.generic has a dtype and no len(), and is no ndarray.
  if (!nb::hasattr(object, "dtype") || nb::hasattr(object, "__len__") ||
      !nb::hasattr(object, "item"))
    return {};
  return array_of(object, {}, cpu()).item_scalar();
}

/// x to the power of y, element by element.
class Power final : public FunctionNode {
 public:
  Power() : FunctionNode("power") {}
  Arrays forward(const Arrays& x) override {
    retain_inputs({0, 1});
    retain_outputs({0});
    return {xp::power(x[0], x[1])};
  }
  Variables backward(const Indexes& targets, const Variables& gy) override {
    Variables in = get_retained_inputs();
    Variable out = get_retained_outputs()[0];
    Variables gradients;
    for (int target : targets) {
      Variable g =
          target == 0 ? gy[0] * in[1] * power(in[0], in[1] - 1.0) : gy[0] * F::log(in[0]) * out;
      gradients.push_back(F::sum_to(g, in[target].shape()));
    }
    return gradients;
  }
  static Variable power(const Variable& x, const Variable& y) {
    return std::make_shared<Power>()->apply({x, y})[0];
  }
};

using Binary = Variable (*)(const Variable&, const Variable&);
using WithScalar = Variable (*)(const Variable&, Scalar);
using ScalarWith = Variable (*)(Scalar, const Variable&);

/// An operator of two, both ways round.
void def_operator(nb::class_<Variable>& variable, const std::string& name, Binary both,
                  WithScalar scalar_right, ScalarWith scalar_left) {
  auto not_implemented = [] { return nb::borrow(Py_NotImplemented); };
  variable.def(("__" + name + "__").c_str(),
               [=](const Variable& a, nb::handle b) -> nb::object {
                 if (auto number = operator_scalar(b))
                   return given(unlocked([&] { return scalar_right(a, *number); }));
                 if (!nb::isinstance<Variable>(b) && !is_operand(b)) return not_implemented();
                 Variable other = variable_of(b);
                 return given(unlocked([&] { return both(a, other); }));
               },
               nb::is_operator());
  variable.def(("__r" + name + "__").c_str(),
               [=](const Variable& b, nb::handle a) -> nb::object {
                 if (auto number = operator_scalar(a))
                   return given(unlocked([&] { return scalar_left(*number, b); }));
                 if (!nb::isinstance<Variable>(a) && !is_operand(a)) return not_implemented();
                 Variable other = variable_of(a);
                 return given(unlocked([&] { return both(other, b); }));
               },
               nb::is_operator());
}

template <class Compare>
void def_comparison(nb::class_<Variable>& variable, const char* name, Compare compare) {
  variable.def(
      name,
      [compare](const Variable& a, nb::handle b) -> nb::object {
        if (!nb::isinstance<Variable>(b) && !is_operand(b)) return nb::borrow(Py_NotImplemented);
        Array other = plain_array_of(b);
        return nb::cast(unlocked([&] { return compare(a.array(), other); }));
      },
      nb::is_operator());
}

void bind_comparisons(nb::class_<Variable>& variable) {
  def_comparison(variable, "__eq__",
                 [](const Array& a, const Array& b) -> Array { return a == b; });
  def_comparison(variable, "__ne__",
                 [](const Array& a, const Array& b) -> Array { return a != b; });
  def_comparison(variable, "__lt__", [](const Array& a, const Array& b) -> Array { return a < b; });
  def_comparison(variable, "__le__",
                 [](const Array& a, const Array& b) -> Array { return a <= b; });
  def_comparison(variable, "__gt__", [](const Array& a, const Array& b) -> Array { return a > b; });
  def_comparison(variable, "__ge__",
                 [](const Array& a, const Array& b) -> Array { return a >= b; });
}

void bind_operators(nb::class_<Variable>& variable) {
#define RENSA_OPERATOR(name, function)                                   \
  def_operator(variable, name, static_cast<Binary>(operators::function), \
               static_cast<WithScalar>(operators::function),             \
               static_cast<ScalarWith>(operators::function));
  RENSA_OPERATOR("add", add)
  RENSA_OPERATOR("sub", subtract)
  RENSA_OPERATOR("mul", multiply)
  RENSA_OPERATOR("truediv", divide)
#undef RENSA_OPERATOR
  bind_comparisons(variable);
  auto floor_of = [](nb::handle a, nb::handle b) {
    Array x = plain_array_of(a), y = plain_array_of(b);
    return given(unlocked([&] { return constant(xp::floor_divide(x, y)); }));
  };
  variable.def(
      "__floordiv__", [=](nb::handle a, nb::handle b) { return floor_of(a, b); },
      "Without a gradient.");
  variable.def("__rfloordiv__", [=](nb::handle b, nb::handle a) { return floor_of(a, b); });
  variable.def("__neg__", [](const Variable& a) { return -a; })
      .def("__abs__", [](const Variable& a) { return F::absolute(a); })
      .def(
          "__matmul__",
          [](const Variable& a, Argument<Variable> b) {
            return unlocked([&] { return F::matmul(a, b.get()); });
          },
          nb::is_operator())
      .def(
          "__rmatmul__",
          [](const Variable& b, Argument<Variable> a) {
            return unlocked([&] { return F::matmul(a.get(), b); });
          },
          nb::is_operator())
      .def(
          "__pow__",
          [](const Variable& a, nb::handle b) {
            auto number = operator_scalar(b);
            if (number && number->kind() != 'c') {
              return unlocked([&] { return F::pow(a, number->as<double>()); });
            }
            Variable exponent = variable_of(b);
            return unlocked([&] { return Power::power(a, exponent); });
          },
          nb::is_operator())
      .def(
          "__rpow__",
          [](const Variable& exponent, nb::handle base) {
            auto number = operator_scalar(base);
            Variable x = number
                             ? constant(xp::full({}, *number, exponent.dtype(), exponent.device()))
                             : variable_of(base);
            return unlocked([&] { return Power::power(x, exponent); });
          },
          nb::is_operator())
      .def("__hash__",
           [](const Variable& v) { return reinterpret_cast<std::intptr_t>(v.body().get()) >> 4; })
      .def("__bool__",
           [](const Variable& v) { return nb::cast<bool>(nb::bool_(nb::cast(v.array()))); })
      .def("__len__", [](const Variable& v) { return nb::len(nb::cast(v.array())); })
      .def("__getitem__", &get_item, nb::arg("key").none())
      .def("__repr__", [](const Variable& v) {
        return v.body() && v.body()->array.defined() ? unlocked([&] { return v.str(); })
                                                     : std::string("variable(None)");
      });
  // numpy_array * variable is the variable's.
  variable.attr("__array_ufunc__") = nb::none();
}

void bind_values(nb::class_<Variable>& variable) {
  auto array = [](const Variable& v) -> nb::object {
    return v.body() && v.body()->array.defined() ? nb::cast(v.body()->array) : nb::none();
  };
  auto assign = [](const Variable& v, Argument<Array> a) { set_array(v, a.get()); };
  auto assign_grad = [](const Variable& v, Argument<Array> g) {
    if (g.get().defined()) v.set_grad_var(Variable(g.get()));
    else v.cleargrad();
  };
  variable.def_prop_rw("array", array, assign, nb::arg("array").none(), "The values.")
      .def_prop_rw("data", array, assign, nb::arg("array").none(), "Chainer's old name for array.")
      .def_prop_rw(
          "grad", [](const Variable& v) { return given(v.grad()); }, assign_grad,
          nb::arg("g").none(), "The gradient's array, or None.")
      .def_prop_rw(
          "grad_var", [](const Variable& v) { return given(v.grad_var()); },
          [](const Variable& v, Argument<Variable> g) {
            if (g.get().defined()) v.set_grad_var(g.get());
            else v.cleargrad();
          },
          nb::arg("g").none(),
          "The gradient as a variable, with its own graph after enable_double_backprop.")
      .def_prop_rw(
          "name",
          [](const Variable& v) -> nb::object {
            return v.name().empty() ? nb::none() : nb::object(nb::str(v.name().c_str()));
          },
          [](const Variable& v, const std::optional<std::string>& name) {
            v.body()->name = name.value_or("");
          },
          nb::arg("name").none())
      .def_prop_ro("shape",
                   [](const Variable& v) {
                     nb::object array = nb::cast(v.array());
                     return nb::object(array.attr("shape"));  // an accessor would outlive it
                   })
      .def_prop_ro("ndim", [](const Variable& v) { return v.ndim(); })
      .def_prop_ro("size", [](const Variable& v) { return v.size(); })
      .def_prop_ro("dtype", [](const Variable& v) { return DtypeObject{v.dtype()}; })
      .def_prop_ro("device", [](const Variable& v) { return v.device(); })
      .def_prop_ro("rank", &Variable::rank)
      .def_prop_rw("requires_grad", &Variable::requires_grad,
                   [](const Variable& v, bool on) {
                     if (v.creator() && v.requires_grad() != on) {
                       throw ValueError(
                           "Variable.requires_grad: it is set of leaves; a function gave this one");
                     }
                     v.node()->requires_grad = on;
                   })
      .def_prop_ro("creator", [](const Variable& v) { return v.creator(); })
      .def_prop_ro("T", [](const Variable& v) { return unlocked([&] { return v.T(); }); })
      .def(
          "item", [](const Variable& v) { return nb::cast(v.array()).attr("item")(); },
          "The one element as a number. Waits.");
}

void bind_graph(nb::class_<Variable>& variable) {
  variable
      .def(
          "backward",
          [](const Variable& v, bool retain_grad, bool enable_double_backprop,
             std::optional<double> loss_scale) {
            BackwardOptions options{retain_grad, enable_double_backprop, loss_scale.value_or(1)};
            unlocked([&] { v.backward(options); });
          },
          nb::arg("retain_grad") = false, nb::arg("enable_double_backprop") = false,
          nb::arg("loss_scale") = nb::none(), "Gradients of all that this one depends on.")
      .def("cleargrad", &Variable::cleargrad, "Drops the gradient.")
      .def(
          "zerograd",
          [](const Variable& v) { unlocked([&] { v.set_grad(xp::zeros_like(v.array())); }); },
          "Chainer's old way: the gradient is zeros.")
      .def("addgrad",
           [](const Variable& v, const Variable& other) { unlocked([&] { v.addgrad(other); }); })
      .def("copydata",
           [](const Variable& v, const Variable& other) { unlocked([&] { v.copydata(other); }); })
      .def("unchain", &Variable::unchain)
      .def("unchain_backward", &Variable::unchain_backward)
      .def("to_cpu", [](const Variable& v) { move(v, cpu()); })
      .def(
          "to_gpu", [](const Variable& v, std::optional<int> device) { move(v, gpu_of(device)); },
          nb::arg("device") = nb::none())
      .def("to_device", [](const Variable& v, Argument<Device> device) { move(v, device.get()); });
}

/// chainer.backward: from the gradients given, or from those that the outputs have.
void backward_of(const Variables& outputs, const Variables& grad_outputs,
                 const BackwardOptions& options) {
  if (!grad_outputs.empty() && grad_outputs.size() != outputs.size()) {
    throw ValueError("backward: " + std::to_string(outputs.size()) + " outputs, but " +
                     std::to_string(grad_outputs.size()) + " of grad_outputs");
  }
  std::set<const VariableNode*> nodes;
  Variables apart;  // one may be there several times, and has the sum of its gradients then
  for (const Variable& y : outputs) {
    if (nodes.insert(y.node().get()).second) apart.push_back(y);
  }
  if (!grad_outputs.empty()) {
    for (const Variable& y : apart) y.cleargrad();
  }
  for (std::size_t i = 0; i < grad_outputs.size(); ++i) {
    const Variable &y = outputs[i], &gradient = grad_outputs[i];
    if (!gradient.defined()) continue;
    y.set_grad_var(y.grad().defined() ? y.grad_var() + gradient : gradient);
  }
  Variables left;  // what leads nowhere costs nothing
  for (const Variable& y : apart) {
    if (y.creator() && (grad_outputs.empty() || y.grad().defined())) left.push_back(y);
  }
  if (!left.empty()) backward(left, options);
}

void bind_parameters(nb::module_& m) {
  nb::class_<ParameterRef, Variable>(m, "Parameter", nb::is_weak_referenceable(),
                                     "A variable that a model owns.")
      .def(
          "__init__",
          [](nb::handle_t<ParameterRef> self, Argument<Initializer> initializer,
             Argument<Shape> shape, std::optional<std::string> name) {
            Initializer how = initializer.get() ? initializer.get() : Initializer(std::nan(""));
            bool has_shape = shape.get().size() > 0;
            auto* made = new (nb::inst_ptr<ParameterRef>(self))
                ParameterRef(has_shape ? Parameter(how, shape.get()).ref() : Parameter(how).ref());
            if (name) made->body()->name = *name;
            remember_object(made->body().get(), self);
          },
          nb::arg("initializer").none() = nb::none(), nb::arg("shape").none() = nb::none(),
          nb::arg("name") = nb::none(), "Waits for initialize(shape) where no shape is given.")
      .def_prop_ro("is_initialized", &ParameterRef::is_initialized)
      .def_prop_ro(
          "device", [](const ParameterRef& p) { return p.device(); },
          "Where the array is, or will be.")
      .def("initialize",
           [](const ParameterRef& p, Argument<Shape> shape) {
             unlocked([&] { p.initialize(shape.get()); });
           })
      .def_prop_rw("update_enabled", &ParameterRef::update_enabled,
                   &ParameterRef::set_update_enabled)
      .def("to_cpu", [](const ParameterRef& p) { unlocked([&] { p.to(cpu()); }); })
      .def(
          "to_gpu",
          [](const ParameterRef& p, std::optional<int> device) {
            unlocked([&] { p.to(gpu_of(device)); });
          },
          nb::arg("device") = nb::none())
      .def("to_device", [](const ParameterRef& p, Argument<Device> device) {
        unlocked([&] { p.to(device.get()); });
      });
}

/// A field of the thread's configuration by its name.
template <class Use> auto with_field(const std::string& name, Use use) {
  Config& c = config();
  if (name == "train") return use(c.train);
  if (name == "enable_backprop") return use(c.enable_backprop);
  if (name == "debug") return use(c.debug);
  if (name == "keep_graph_on_report") return use(c.keep_graph_on_report);
  if (name == "tf32") return use(c.tf32);
  if (name == "autotune") return use(c.autotune);
  if (name == "cudnn_deterministic") return use(c.cudnn_deterministic);
  throw nb::attribute_error(("the configuration has no " + name).c_str());
}

nb::object value_of(bool field) { return nb::bool_(field); }
nb::object value_of(UseTf32 field) {
  if (field.is_x3()) return nb::str("x3");
  return nb::bool_(bool(field));
}

void set_value(bool& field, nb::handle value) {
  if (!nb::isinstance<nb::bool_>(value)) throw nb::type_error("a bool is wanted");
  field = nb::cast<bool>(value);
}
void set_value(UseTf32& field, nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) {
    field = nb::cast<bool>(value);
    return;
  }
  bool is_x3 = nb::isinstance<nb::str>(value) && nb::cast<std::string>(value) == "x3";
  if (!is_x3) throw nb::type_error("tf32 is False, True or \"x3\"");
  field = UseTf32::x3();
}

void bind_config(nb::module_& m) {
  m.def("get_config", [](const std::string& name) {
    return with_field(name, [](auto& field) { return value_of(field); });
  });
  m.def("set_config", [](const std::string& name, nb::object value) {
    with_field(name, [&](auto& field) { set_value(field, value); });
  });
  m.def("use_cpu_for_gpus", &python::use_cpu_for_gpus, nb::arg("on"),
        "Code that names GPUs runs on the CPU.");
  m.def("gpu_of", &gpu_of, nb::arg("index") = nb::none(),
        "The GPU of that number, the current one without.");
  m.def(
      "get_dtype", [] { return DtypeObject{rensa::get_dtype()}; }, "The dtype of parameters.");
  m.def("set_dtype", [](nb::handle dtype) {
    nb::object name = nb::getattr(dtype, "name", nb::borrow(dtype));
    std::string text = PyUnicode_Check(name.ptr()) ? nb::cast<std::string>(name) : "";
    if (text == "mixed16") config().dtype = mixed16;
    else if (text == "mixed_bf16") config().dtype = mixed_bf16;
    else config().dtype = dtype_of_object(dtype);
  });
  m.def("is_mixed", [] { return config().dtype.is_mixed(); });
}

void bind_initializer_class(nb::module_& m) {
  nb::class_<Initializer>(m, "Initializer", nb::dynamic_attr(), nb::is_weak_referenceable(),
                          "Fills an array: the base of those of one's own, which have __call__.")
      .def(
          "__init__",
          [](nb::handle_t<Initializer> self, nb::handle dtype, Argument<Initializer> like) {
            new (nb::inst_ptr<Initializer>(self)) Initializer(like.get());
            nb::inst_mark_ready(self);
            self.attr("dtype") = dtype;
          },
          nb::arg("dtype").none() = nb::none(), nb::kw_only(), nb::arg("like").none() = nb::none())
      .def("__call__",
           [](const Initializer& i, Argument<Array> out) { unlocked([&] { i(out.get()); }); });
}

void bind_gradients(nb::module_& m) {
  m.def(
      "backward",
      [](Argument<Variables> outputs, Argument<Variables> grad_outputs, bool retain_grad,
         bool enable_double_backprop, std::optional<double> loss_scale) {
        BackwardOptions options{retain_grad, enable_double_backprop, loss_scale.value_or(1)};
        unlocked([&] { backward_of(outputs.get(), grad_outputs.get(), options); });
      },
      nb::arg("outputs"), nb::arg("grad_outputs") = Argument<Variables>(),
      nb::arg("retain_grad") = false, nb::arg("enable_double_backprop") = false,
      nb::arg("loss_scale") = nb::none(),
      "Gradients of all that the outputs depend on, from grad_outputs: None where there is none.");
  m.def(
      "grad",
      [](Argument<Variables> outputs, Argument<Variables> inputs, Argument<Variables> grad_outputs,
         bool enable_double_backprop) {
        return given(unlocked([&] {
          return grad(outputs.get(), inputs.get(), grad_outputs.get(), enable_double_backprop);
        }));
      },
      nb::arg("outputs"), nb::arg("inputs"), nb::arg("grad_outputs") = Argument<Variables>(),
      nb::arg("enable_double_backprop") = false,
      "Gradients of `outputs` with respect to `inputs`, as variables; None where no path leads.");
}

}  // namespace

void bind_variables(nb::module_& m) {
  bind_initializer_class(m);
  nb::class_<Variable> variable(m, "Variable", nb::dynamic_attr(),
                                "An array that remembers how it was computed.");
  variable.def(
      "__init__",
      [](Variable* self, Argument<Array> data, std::optional<std::string> name,
         Argument<Array> grad, bool requires_grad) {
        if (!data.get().defined()) {  // values may be assigned later
          auto body = std::make_shared<VariableBody>();
          body->node = std::make_shared<VariableNode>();
          body->node->requires_grad = requires_grad;
          if (name) body->name = *name;
          new (self) Variable(body);
          return;
        }
        bool differentiable =
            dtype_kind(data.get().dtype()) == 'f' || dtype_kind(data.get().dtype()) == 'c';
        new (self) Variable(data.get(), requires_grad && differentiable);
        if (name) self->body()->name = *name;
        if (grad.get().defined()) self->set_grad(grad.get());
      },
      nb::arg("data").none() = nb::none(), nb::kw_only(), nb::arg("name") = nb::none(),
      nb::arg("grad").none() = nb::none(), nb::arg("requires_grad") = true);
  bind_values(variable);
  bind_operators(variable);
  bind_graph(variable);
  bind_parameters(m);
  bind_config(m);
  bind_gradients(m);
}

}  // namespace rensa::python
