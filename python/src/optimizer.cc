// rensa.optimizers: the class of all of them, and hooks.
#include "link.h"

#include <nanobind/stl/shared_ptr.h>

#include "bind.h"
#include "rensa/core/error.h"
#include "rensa/optimizers/algorithm.h"
#include "rensa/optimizers/update_rule.h"

namespace rensa::python {

namespace {

/// A hook of any kind, until an optimizer gets it.
struct AnyHook {
  std::shared_ptr<OptimizerHook> hook;
};

/// A function of Python's, called with the optimizer before each update.
class HookOfPython : public OptimizerHook {
 public:
  HookOfPython(nb::handle function, std::string name, bool post, nb::handle optimizer)
      : function_(optimizer, function),
        optimizer_(nb::module_::import_("weakref").attr("ref")(optimizer)),
        name_(std::move(name)),
        post_(post) {}
  const char* name() const override { return name_.c_str(); }
  Timing timing() const override { return post_ ? Timing::post : Timing::pre; }
  void operator()(const UpdateCall& call) override {
    // The function sees gradients by the parameters: unscaled ones, and of the dtype of these.
    for (const UpdatedParameter& p : call.parameters) show(p);
    {
      nb::gil_scoped_acquire lock;
      nb::object optimizer = optimizer_.object();
      if (optimizer.is_none()) return;
      check_owner(call, nb::cast<const Optimizer&>(optimizer));
      call_function(call, optimizer);
    }
    for (const UpdatedParameter& p : call.parameters) take(p);
  }

 private:
  static void show(const UpdatedParameter& p) {
    Array shown = p.parameter.grad();
    if (shown.defined() && shown.data() == p.grad.data()) return;
    p.parameter.set_grad(p.grad.astype(p.parameter.array().dtype(), false));
  }
  /// What the function has made of the gradient, in place or by another array.
  static void take(const UpdatedParameter& p) {
    Array made = p.parameter.grad();
    if (!made.defined()) p.grad.fill(0);
    else if (made.data() != p.grad.data()) p.grad.assign(made.astype(p.grad.dtype(), false));
  }
  /// With the optimizer; or, where it says so, with each parameter's rule and the parameter.
  void call_function(const UpdateCall& call, nb::handle optimizer) const {
    nb::object function = function_.get();
    nb::object each = nb::getattr(function, "call_for_each_param", nb::none());
    if (each.ptr() != Py_True) {
      function(optimizer);
      return;
    }
    for (const UpdatedParameter& p : call.parameters)
      function(nb::cast(p.parameter.update_rule()), parameter_object(p.parameter));
  }
  void check_owner(const UpdateCall& call, const Optimizer& optimizer) const {
    if (call.parameters.empty()) return;
    if (call.parameters[0].rule->owner.lock() == optimizer.state()) return;
    throw NotImplementedError("the hook \"" + name_ +
                              "\" is of Python's and of one optimizer, but replicas are updated by "
                              "others: add hooks before the ParallelUpdater is made");
  }

  HeldByOwner function_;
  Held optimizer_;  // a weak reference: the optimizer holds this hook
  std::string name_;
  bool post_;
};

template <class Hook, class... Arguments, class... Extra>
void bind_hook(nb::module_& m, const char* name, const Extra&... extra) {
  m.def(
      name, [](Arguments... arguments) { return AnyHook{std::make_shared<Hook>(arguments...)}; },
      extra...);
}

void bind_hooks(nb::module_& m) {
  namespace hooks = optimizer_hooks;
  nb::class_<AnyHook>(m, "OptimizerHook", "What is done to gradients before or after each update.")
      .def_prop_ro("name", [](const AnyHook& h) { return std::string(h.hook->name()); });
  bind_hook<hooks::WeightDecay, double>(m, "WeightDecay", nb::arg("rate"));
  bind_hook<hooks::Lasso, double>(m, "Lasso", nb::arg("rate"));
  bind_hook<hooks::GradientClipping, double>(m, "GradientClipping", nb::arg("threshold"));
  bind_hook<hooks::GradientHardClipping, double, double>(
      m, "GradientHardClipping", nb::arg("lower_bound"), nb::arg("upper_bound"));
  bind_hook<hooks::GradientNoise, double>(m, "GradientNoise", nb::arg("eta"));
  bind_hook<hooks::GradientLARS, double, double, double>(
      m, "GradientLARS", nb::arg("threshold") = 1e-2, nb::arg("weight_decay") = 0.0,
      nb::arg("eps") = 1e-9);
}

void add_hook(nb::handle_t<Optimizer> self, nb::object hook, std::optional<std::string> name,
              const std::string& timing) {
  auto& optimizer = nb::cast<const Optimizer&>(self);
  if (timing != "auto" && timing != "pre" && timing != "post") {
    throw ValueError("add_hook: timing is 'auto', 'pre' or 'post', not '" + timing + "'");
  }
  AnyHook known;
  if (nb::try_cast(hook, known)) {
    optimizer.add_hook(known.hook);
    return;
  }
  std::string called = name.value_or(nb::cast<std::string>(nb::str(
      nb::object(nb::getattr(hook, "name", nb::getattr(hook, "__name__", nb::str("function")))))));
  bool post = timing == "post" ||
              nb::cast<std::string>(
                  nb::str(nb::object(nb::getattr(hook, "timing", nb::str("pre"))))) == "post";
  self.attr("__dict__")["_has_own_hooks"] = true;
  optimizer.add_hook(std::make_shared<HookOfPython>(hook, called, post, self));
}

/// Chainer's update(): with the gradients that are there, or with those of lossfun(*args).
nb::object update(nb::handle_t<Optimizer> self, nb::handle lossfun, const nb::args& args,
                  const nb::kwargs& kwargs) {
  auto& optimizer = nb::cast<const Optimizer&>(self);
  if (lossfun.is_none()) {
    unlocked([&] { optimizer.update(); });
    return nb::none();
  }
  return given(unlocked([&] {
    return optimizer.update([&]() -> Variable {
      nb::gil_scoped_acquire lock;
      nb::object loss = lossfun(*args, **kwargs);
      Variable variable;
      if (!nb::try_cast(loss, variable)) {
        throw nb::type_error(("Optimizer.update: lossfun gives a Variable, not " +
                              nb::cast<std::string>(nb::repr(loss.type())))
                                 .c_str());
      }
      return variable;
    });
  }));
}

nb::object hyperparameter(const Optimizer& optimizer, const std::string& name) {
  try {
    return nb::float_(optimizer.attribute(name));
  } catch (const ValueError& error) {
    throw nb::attribute_error(error.what());
  }
}

std::vector<std::string> hyperparameters_of(const OptimizerState& state) {
  std::vector<std::string> names;
  for (const auto& [name, number] : state.algorithm->hyperparameters()) names.push_back(name);
  return names;
}

std::shared_ptr<OptimizerState> owner_of(const UpdateRule& rule) {
  auto owner = rule.owner.lock();
  if (!owner) throw ValueError("UpdateRule: its optimizer is gone");
  return owner;
}

/// What is kept for a parameter, by name; nothing before its first update.
nb::dict states_of(const UpdateRule& rule) {
  nb::dict states;
  std::vector<UpdateState> named = owner_of(rule)->algorithm->states();
  for (std::size_t i = 0; i < rule.states.size() && i < named.size(); ++i) {
    states[nb::cast(std::string(named[i].name))] = given(rule.states[i]);
  }
  return states;
}

void bind_update_rule(nb::module_& m) {
  nb::class_<UpdateRule>(m, "UpdateRule", nb::dynamic_attr(),
                         "What an optimizer keeps for one parameter, and what that has of its own.")
      .def(
          "__init__",
          [](nb::handle) {
            throw NotImplementedError(
                "UpdateRule: rules are made by an optimizer's setup(link), one for each parameter; "
                "parameter.update_enabled = False leaves one out");
          })
      .def_prop_ro("state", &states_of, "Arrays by name; none before the first update.")
      .def_prop_ro(
          "t", [](const UpdateRule& r) { return r.t; }, "Updates so far.")
      .def("_hyperparam", &UpdateRule::hyperparam)
      .def("_set_hyperparam", &UpdateRule::set_hyperparam)
      .def("_hyperparameters", [](const UpdateRule& r) { return hyperparameters_of(*owner_of(r)); })
      .def("use_fp32_update", &UpdateRule::use_fp32_update, nb::arg("flag") = true)
      .def(
          "add_hook", [](UpdateRule& r, const AnyHook& hook) { r.add_hook(hook.hook); },
          nb::arg("hook"))
      .def("remove_hook", &UpdateRule::remove_hook, nb::arg("name"));
  m.def("_update_rule", [](const ParameterRef& p) -> std::shared_ptr<UpdateRule> {
    return p.has_update_rule() ? p.update_rule() : nullptr;
  });
}

}  // namespace

void bind_optimizer_class(nb::module_& m, nb::module_& hooks) {
  bind_update_rule(m);
  nb::class_<Optimizer>(m, "Optimizer", nb::dynamic_attr(), nb::is_weak_referenceable(),
                        "Updates a model's parameters.")
      .def(
          "setup",
          [](nb::handle_t<Optimizer> self, nb::handle link) {
            if (!nb::isinstance<Link>(link)) {
              std::string kind = nb::cast<std::string>(nb::repr(link.type()));
              throw nb::type_error(
                  ("Optimizer.setup: the optimization target must be a link, not " + kind).c_str());
            }
            auto& optimizer = nb::cast<const Optimizer&>(self);
            auto& model = nb::cast<Link&>(link);
            unlocked([&] { optimizer.setup(model); });
            self.attr("__dict__")["_target"] = link;  // lives as long as the optimizer
            return nb::borrow(self);
          },
          nb::arg("link"), "Gives every parameter of the model an update rule.")
      .def_prop_ro("target",
                   [](nb::handle_t<Optimizer> self) {
                     return nb::object(nb::dict(self.attr("__dict__")).contains("_target")
                                           ? nb::object(self.attr("__dict__")["_target"])
                                           : nb::none());
                   })
      .def("update", &update, nb::arg("lossfun").none() = nb::none(), nb::arg("args"),
           nb::arg("kwargs"), "With the gradients that are there, or with those of lossfun(*args).")
      .def("add_hook", &add_hook, nb::arg("hook"), nb::arg("name") = nb::none(),
           nb::arg("timing") = "auto")
      .def("remove_hook", &Optimizer::remove_hook, nb::arg("name"))
      .def("zero_grads", [](const Optimizer& o) { unlocked([&] { o.zero_grads(); }); })
      .def(
          "use_cleargrads", [](const Optimizer&, bool) {}, nb::arg("use") = true,
          "Gradients are always cleared.")
      .def(
          "use_fp32_update", [](const Optimizer& o, bool on) { o.use_fp32_update(on); },
          nb::arg("flag") = true)
      .def(
          "loss_scaling",
          [](const Optimizer& o, double interval, std::optional<double> scale) {
            o.loss_scaling({interval, scale});
          },
          nb::arg("interval") = 1000.0, nb::arg("scale") = nb::none())
      .def("set_loss_scale", [](const Optimizer& o, double scale) { o.set_loss_scale(scale); })
      .def(
          "new_epoch", [](const Optimizer& o, bool) { o.new_epoch(); }, nb::arg("auto") = false)
      .def_prop_ro("t", &Optimizer::t, "Updates so far.")
      .def_prop_ro("epoch", &Optimizer::epoch)
      .def("__getattr__", &hyperparameter, "A hyperparameter of that name.")
      .def("_hyperparameters", [](const Optimizer& o) { return hyperparameters_of(*o.state()); })
      .def("_has_hyperparameter",
           [](const Optimizer& o, const std::string& name) {
             try {
               o.attribute(name);
               return true;
             } catch (const ValueError&) {
               return false;
             }
           })
      .def("_set_hyperparameter", [](const Optimizer& o, const std::string& name, double value) {
        o.attribute(name) = value;
      });
  bind_hooks(hooks);
}

}  // namespace rensa::python
