// rensa.FunctionNode, and functions that take functions of Python's.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/trampoline.h>

#include "bind.h"
#include "link.h"

namespace rensa::python {

namespace {

/// The arrays of what a function of Python's gives: one, or a tuple.
template <class Of> auto all_of(nb::handle result, Of of) {
  std::vector<decltype(of(result))> values;
  if (PyTuple_Check(result.ptr()) || PyList_Check(result.ptr())) {
    for (nb::handle value : nb::borrow<nb::sequence>(result)) values.push_back(of(value));
  } else {
    values.push_back(of(result));
  }
  return values;
}

/// A function with a gradient whose forward and backward are Python's.
class OwnFunction : public FunctionNode {
 public:
  NB_TRAMPOLINE(FunctionNode, 4);
  OwnFunction() : FunctionNode("Function") {}

  Arrays forward(const Arrays& inputs) override {
    nb::gil_scoped_acquire lock;
    nb::handle self = nb_trampoline.base();
    return all_of(self.attr("forward")(given(inputs)), plain_array_of);
  }
  Variables backward(const Indexes& targets, const Variables& grad_outputs) override {
    nb::gil_scoped_acquire lock;
    nb::handle self = nb_trampoline.base();
    nb::list indexes;
    for (int target : targets) indexes.append(target);
    return all_of(self.attr("backward")(nb::tuple(indexes), given(grad_outputs)), variable_of);
  }
  using FunctionNode::get_retained_inputs;
  using FunctionNode::get_retained_outputs;
  using FunctionNode::retain_inputs;
  using FunctionNode::retain_outputs;
};

OwnFunction& own(FunctionNode& node) {
  if (auto* found = dynamic_cast<OwnFunction*>(&node)) return *found;
  throw ValueError(std::string(node.name()) + ": what it keeps is the engine's");
}

}  // namespace

void bind_function_nodes(nb::module_& m) {
  nb::class_<FunctionNode, OwnFunction>(m, "FunctionNode", nb::dynamic_attr(), nb::is_weak_referenceable(),
                                        "A differentiable function: forward on arrays, backward on variables.")
      .def(nb::init<>())
      .def(
          "apply",
          [](std::shared_ptr<FunctionNode> node, Argument<Variables> inputs) {
            return given(unlocked([&] { return node->apply(inputs.get()); }));
          },
          nb::arg("inputs"), "Runs forward and links the outputs to the inputs: a tuple.")
      .def("retain_inputs", [](FunctionNode& n, const std::vector<int>& indexes) { own(n).retain_inputs(indexes); })
      .def("retain_outputs", [](FunctionNode& n, const std::vector<int>& indexes) { own(n).retain_outputs(indexes); })
      .def("get_retained_inputs", [](FunctionNode& n) { return given(own(n).get_retained_inputs()); })
      .def("get_retained_outputs", [](FunctionNode& n) { return given(own(n).get_retained_outputs()); })
      .def_prop_ro("label", [](const FunctionNode& n) { return std::string(n.name()); })
      .def_prop_ro("rank", &FunctionNode::rank)
      .def("unchain", &FunctionNode::unchain);
}

void bind_calls_of_functions(nb::module_& functions) {
  functions.def(
      "forget",
      [](nb::object func, const nb::args& xs) {
        auto function = std::make_shared<Held>(std::move(func));
        auto one = std::make_shared<bool>(true);
        Variables inputs_of = variables_of(xs);
        Variables results = unlocked([&] {
          return F::forget(
              [function, one](const Variables& inputs) {
                nb::gil_scoped_acquire lock;
                nb::object result = function->object(*nb::tuple(given(inputs)));
                *one = !PyTuple_Check(result.ptr());
                return all_of(result, variable_of);
              },
              inputs_of);
        });
        return *one ? given(results[0]) : given(results);
      },
      nb::arg("func"), nb::arg("xs"), "func(*xs), whose inner results are computed again for the gradients.");
  functions.def(
      "get_item", [](const Variable& x, nb::object slices) { return nb::cast(x)[slices]; }, nb::arg("x"),
      nb::arg("slices"), "x[slices].");
}

}  // namespace rensa::python
