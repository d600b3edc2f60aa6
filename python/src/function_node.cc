// rensa.FunctionNode, functions that take functions of Python's, and captured steps.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/trampoline.h>

#include "bind.h"
#include "link.h"
#include "training.h"

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
class FunctionOfPython : public FunctionNode {
 public:
  NB_TRAMPOLINE(FunctionNode, 4);
  FunctionOfPython() : FunctionNode("Function") {}

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

/// rensa.capture's: a step of Python's and its recordings.
class CapturedStep {
 public:
  explicit CapturedStep(const CaptureOptions& options)
      : cache_(std::make_shared<CaptureCache>(options)) {}
  nb::object call(nb::handle self, const nb::args& args) {
    Variables inputs = variables_of(args);
    Variables results = unlocked([&] {
      return cache_->call(
          [&](const Variables& in) {
            nb::gil_scoped_acquire lock;
            nb::object result = self.attr("step")(*nb::tuple(given(in)));
            one_ = !PyTuple_Check(result.ptr());
            return result.is_none() ? Variables{} : all_of(result, variable_of);
          },
          inputs);
    });
    if (results.empty()) return nb::none();
    return one_ ? given(results[0]) : given(results);
  }
  nb::dict stats() const { return dict_of(cache_->stats()); }

 private:
  std::shared_ptr<CaptureCache> cache_;
  bool one_ = true;  // whether the step gives one variable, not a tuple
};

FunctionOfPython& own(FunctionNode& node) {
  if (auto* found = dynamic_cast<FunctionOfPython*>(&node)) return *found;
  throw ValueError(std::string(node.name()) + ": what it keeps is the engine's");
}

}  // namespace

nb::dict dict_of(const CaptureStats& stats) {
  nb::dict dict;
  dict["calls"] = stats.calls, dict["warmups"] = stats.warmups;
  dict["recordings"] = stats.recordings, dict["replays"] = stats.replays;
  dict["fallbacks"] = stats.fallbacks, dict["last_fallback"] = stats.last_fallback;
  return dict;
}

void bind_function_nodes(nb::module_& m) {
  nb::class_<FunctionNode, FunctionOfPython>(
      m, "FunctionNode", nb::dynamic_attr(), nb::is_weak_referenceable(),
      "A differentiable function: forward on arrays, backward on variables.")
      .def(nb::init<>())
      .def(
          "apply",
          [](std::shared_ptr<FunctionNode> node, Argument<Variables> inputs) {
            return given(unlocked([&] { return node->apply(inputs.get()); }));
          },
          nb::arg("inputs"), "Runs forward and links the outputs to the inputs: a tuple.")
      .def("retain_inputs",
           [](FunctionNode& n, const std::vector<int>& indexes) { own(n).retain_inputs(indexes); })
      .def("retain_outputs",
           [](FunctionNode& n, const std::vector<int>& indexes) { own(n).retain_outputs(indexes); })
      .def("get_retained_inputs",
           [](FunctionNode& n) { return given(own(n).get_retained_inputs()); })
      .def("get_retained_outputs",
           [](FunctionNode& n) { return given(own(n).get_retained_outputs()); })
      .def_prop_ro("label", [](const FunctionNode& n) { return std::string(n.name()); })
      .def_prop_ro("rank", &FunctionNode::rank)
      .def("unchain", &FunctionNode::unchain);
  nb::class_<CapturedStep>(m, "capture", nb::dynamic_attr(), nb::is_weak_referenceable(),
                           "A step, recorded and replayed: step = rensa.capture(function).")
      .def(
          "__init__",
          [](nb::handle_t<CapturedStep> self, nb::object step, bool replay_lists,
             std::optional<int> audit_every) {
            new (nb::inst_ptr<CapturedStep>(self))
                CapturedStep({.replay_lists = replay_lists, .audit_every = audit_every});
            nb::inst_mark_ready(self);
            self.attr("step") = step;
          },
          nb::arg("step"), nb::kw_only(), nb::arg("replay_lists") = false,
          nb::arg("audit_every") = nb::none())
      .def("__call__",
           [](nb::handle_t<CapturedStep> self, const nb::args& args) {
             return nb::cast<CapturedStep&>(self).call(self, args);
           })
      .def_prop_ro("stats", &CapturedStep::stats, "What calls came to so far.");
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
      nb::arg("func"), nb::arg("xs"),
      "func(*xs), whose inner results are computed again for the gradients.");
  functions.def(
      "get_item", [](const Variable& x, nb::object slices) { return nb::cast(x)[slices]; },
      nb::arg("x"), nb::arg("slices"), "x[slices].");
}

}  // namespace rensa::python
