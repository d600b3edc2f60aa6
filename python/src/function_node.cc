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
      .def_prop_ro("label",
                   [](nb::handle_t<FunctionNode> self) {
                     auto& node = nb::cast<FunctionNode&>(self);
                     if (dynamic_cast<FunctionOfPython*>(&node))
                       return nb::cast<std::string>(self.type().attr("__name__"));
                     return std::string(node.name());
                   })
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

namespace {

/// Functions whose results are a struct in C++, and a tuple here.
void bind_several_results(nb::module_& functions) {
  functions.def(
      "classification_summary",
      [](Argument<Variable> y, Argument<Variable> t, std::optional<std::int64_t> label_num,
         double beta, std::int64_t ignore_label) {
        auto s = unlocked([&] {
          return F::classification_summary(y.get(), t.get(), label_num, beta, ignore_label);
        });
        return given(Variables{s.precision, s.recall, s.fbeta, s.support});
      },
      nb::arg("y"), nb::arg("t"), nb::arg("label_num") = nb::none(), nb::arg("beta") = 1.0,
      nb::arg("ignore_label") = -1, "(precision, recall, fbeta, support), each of all classes.");
  functions.def(
      "discriminative_margin_based_clustering_loss",
      [](Argument<Variable> embeddings, Argument<Variable> labels, double delta_v, double delta_d,
         std::int64_t max_embedding_dim, int norm, double alpha, double beta, double gamma) {
        auto parts = unlocked([&] {
          return F::discriminative_margin_based_clustering_loss(
              embeddings.get(), labels.get(), delta_v, delta_d, max_embedding_dim,
              {.norm = norm, .alpha = alpha, .beta = beta, .gamma = gamma});
        });
        return given(Variables{parts.variance, parts.distance, parts.regularization});
      },
      nb::arg("embeddings"), nb::arg("labels"), nb::arg("delta_v"), nb::arg("delta_d"),
      nb::arg("max_embedding_dim"), nb::arg("norm") = 1, nb::arg("alpha") = 1.0,
      nb::arg("beta") = 1.0, nb::arg("gamma") = 0.001,
      "The parts of the loss: (variance, distance, regularization).");
  functions.def(
      "negative_sampling",
      [](Argument<Variable> x, Argument<Variable> t, Argument<Variable> W, nb::object sampler,
         int sample_size, const std::string& reduce, bool return_samples) {
        Held function(sampler);
        auto draw = [&](const Shape& shape) {
          nb::gil_scoped_acquire lock;
          nb::list extents;
          for (std::int64_t extent : shape) extents.append(extent);
          return array_of(function.object(nb::tuple(extents)), {}, x.get().device());
        };
        Array samples;
        Variable loss = unlocked([&] {
          return F::negative_sampling(x.get(), t.get(), W.get(), draw, sample_size,
                                      {.reduce = reduce, .return_samples = &samples});
        });
        return with_more(given(loss), return_samples, samples);
      },
      nb::arg("x"), nb::arg("t"), nb::arg("W"), nb::arg("sampler"), nb::arg("sample_size"),
      nb::arg("reduce") = "sum", nb::kw_only(), nb::arg("return_samples") = false,
      "`sampler` is a function of a shape, which draws words.");
}

}  // namespace

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
      "get_item",
      [](Argument<Variable> x, nb::object slices) { return nb::object(nb::cast(x.get())[slices]); },
      nb::arg("x"), nb::arg("slices"), "x[slices].");
  functions.def(
      "scatter_add",
      [](Argument<Variable> a, nb::handle slices, Argument<Variable> b) {
        std::vector<Index> index = index_of(slices);
        return given(unlocked([&] { return F::scatter_add(a.get(), Selector(index), b.get()); }));
      },
      nb::arg("a"), nb::arg("slices"), nb::arg("b"),
      "a with b added to a[slices]; every one of equal indices counts.");
  bind_several_results(functions);
}

}  // namespace rensa::python
