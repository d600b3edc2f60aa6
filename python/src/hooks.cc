// rensa.function_hooks and link_hooks: what is told of each function that a thread applies and goes
// back through, and of each call of a link.
#include <nanobind/stl/shared_ptr.h>

#include "arguments.h"
#include "bind.h"
#include "link.h"
#include "link_hooks.h"
#include "rensa/autograd/function_hooks.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/device/tracer.h"
#include "rensa/links/link_hooks.h"

namespace rensa::python {

namespace {

nb::object node_object(const FunctionNode& function) {
  return nb::cast(const_cast<FunctionNode&>(function).shared_from_this());
}

nb::tuple arrays_of_variables(const Variables& variables) {
  nb::list list;
  for (const Variable& v : variables) list.append(v.defined() ? given(v.array()) : nb::none());
  return nb::tuple(list);
}

/// A hook whose methods are Python's, with Chainer's arguments.
class HookOfPython final : public FunctionHook {
 public:
  explicit HookOfPython(nb::handle object) : object_(nb::borrow(object)) {}
  void added() override { call("added"); }
  void deleted() override { call("deleted"); }
  void forward_preprocess(const FunctionNode& f, const Variables& inputs) override {
    call_of(f, "forward_preprocess", inputs, nullptr);
  }
  void forward_postprocess(const FunctionNode& f, const Variables& inputs) override {
    call_of(f, "forward_postprocess", inputs, nullptr);
  }
  void backward_preprocess(const FunctionNode& f, const Variables& gys) override {
    call_of(f, "backward_preprocess", {}, &gys);
  }
  void backward_postprocess(const FunctionNode& f, const Variables& gys) override {
    call_of(f, "backward_postprocess", {}, &gys);
  }

 private:
  void call(const char* method) {
    nb::gil_scoped_acquire lock;
    object_.object.attr(method)(nb::none());
  }
  void call_of(const FunctionNode& f, const char* method, const Variables& inputs,
               const Variables* gradients) {
    nb::gil_scoped_acquire lock;
    nb::object function = node_object(f);
    if (!gradients) object_.object.attr(method)(function, arrays_of_variables(inputs));
    else object_.object.attr(method)(function, nb::none(), arrays_of_variables(*gradients));
  }
  Held object_;
};

/// A hook of links whose methods are Python's, with Chainer's arguments.
class LinkHookOfPython final : public LinkHook {
 public:
  LinkHookOfPython(nb::handle object, std::string name)
      : object_(std::make_shared<Held>(nb::borrow(object))), name_(std::move(name)) {}
  std::string name() const override { return name_; }
  std::unique_ptr<LinkHook> clone() const override {
    return std::make_unique<LinkHookOfPython>(*this);
  }
  void added(const HookedLink& link) override { tell("added", link); }
  void deleted(const HookedLink& link) override { tell("deleted", link); }
  void forward_preprocess(HookedCall& call) override {
    stay_eager("a hook of Python's is told of each call of a link, of which replays make none");
    nb::gil_scoped_acquire lock;
    object_->object.attr("forward_preprocess")(arguments(call));
  }
  void forward_postprocess(HookedCall& call, const Variable& y) override {
    nb::gil_scoped_acquire lock;
    nb::object told = arguments(call);
    const CallOfPython* own = call_of_python(call);
    told.attr("out") = own ? own->result : given(y);
    object_->object.attr("forward_postprocess")(told);
  }

 private:
  /// None of a part of a link of the engine's that Python has not looked at.
  static nb::object object_of(const Link& link) {
    nb::object found = nb::find(link);
    return found.is_valid() ? found : nb::none();
  }
  static const CallOfPython* call_of_python(const HookedCall& call) {
    const CallOfPython* innermost = CallOfPython::innermost();
    return innermost && &innermost->link == &call.link().link ? innermost : nullptr;
  }
  static nb::object arguments(const HookedCall& call) {
    const Link& link = call.link().link;
    nb::object told = nb::module_::import_("types").attr("SimpleNamespace")();
    told.attr("link") = object_of(link), told.attr("link_name") = link.type_name();
    told.attr("forward_name") = "forward";
    if (const CallOfPython* own = call_of_python(call)) {
      told.attr("args") = own->args, told.attr("kwargs") = own->kwargs;
      return told;
    }
    nb::list x;
    for (const Variable& v : call.x()) x.append(given(v));
    told.attr("args") = nb::tuple(x), told.attr("kwargs") = nb::dict();
    return told;
  }
  void tell(const char* method, const HookedLink& link) {
    nb::gil_scoped_acquire lock;
    object_->object.attr(method)(object_of(link.link));
  }
  std::shared_ptr<Held> object_;
  std::string name_;
};

/// A hook, while Python's `with` lasts.
struct AnyFunctionHook {
  std::shared_ptr<FunctionHook> hook;
  std::shared_ptr<FunctionHookScope> scope;
};

/// `with hook:`
template <class Scope, class AnyHook> void bind_scope(nb::class_<AnyHook>& bound) {
  bound
      .def("__enter__",
           [](nb::handle_t<AnyHook> self) {
             auto& h = nb::cast<AnyHook&>(self);
             if (h.scope) throw ValueError("a hook is in one scope at a time");
             unlocked([&] { h.scope = std::make_shared<Scope>(*h.hook); });
             return nb::borrow(self);
           })
      .def("__exit__", [](AnyHook& h, const nb::args&) { unlocked([&] { h.scope.reset(); }); });
}

template <class Hook> Hook& of(AnyFunctionHook& h) { return static_cast<Hook&>(*h.hook); }

struct MemoryOfPython : AnyFunctionHook {};

template <class Base> struct TimerOfPython : Base {};

/// Of functions or links.
template <class Timer, class Base> void bind_timer(nb::module_& m, const char* doc) {
  using Bound = TimerOfPython<Base>;
  auto timer = [](const Base& h) -> Timer& { return static_cast<Timer&>(*h.hook); };
  nb::class_<Bound, Base>(m, "TimerHook", doc)
      .def("__init__",
           [](Bound* self) {
             new (self) Bound();
             self->hook = std::make_shared<Timer>();
           })
      .def("total_time", [timer](const Bound& h) { return timer(h).total_time(); })
      .def_prop_ro("call_history",
                   [timer](const Bound& h) {
                     nb::list list;
                     for (const TimedCall& call : timer(h).call_history())
                       list.append(nb::make_tuple(call.name, call.elapsed_time));
                     return list;
                   })
      .def(
          "summary",
          [timer](const Bound& h) {
            nb::dict all;
            for (const auto& [name, call] : timer(h).summary()) {
              nb::dict one;
              one["elapsed_time"] = call.elapsed_time, one["occurrence"] = call.occurrence;
              all[name.c_str()] = one;
            }
            return all;
          },
          "Seconds and numbers of calls by name.")
      .def(
          "str", [timer](const Bound& h, const std::string& unit) { return timer(h).str(unit); },
          nb::arg("unit") = "auto", "The summary as a table.");
}

void bind_memory(nb::module_& m) {
  using function_hooks::MemoryProfileHook;
  nb::class_<MemoryOfPython, AnyFunctionHook>(m, "MemoryProfileHook",
                                              "How much memory functions ask for.")
      .def("__init__",
           [](MemoryOfPython* self) {
             new (self) MemoryOfPython();
             self->hook = std::make_shared<MemoryProfileHook>();
           })
      .def("total_used_bytes",
           [](MemoryOfPython& h) { return of<MemoryProfileHook>(h).total_used_bytes(); })
      .def("total_acquired_bytes",
           [](MemoryOfPython& h) { return of<MemoryProfileHook>(h).total_acquired_bytes(); })
      .def_prop_ro("call_history",
                   [](MemoryOfPython& h) {
                     nb::list list;
                     for (const auto& call : of<MemoryProfileHook>(h).call_history())
                       list.append(nb::make_tuple(call.name, call.used_bytes, call.acquired_bytes,
                                                  call.depth));
                     return list;
                   })
      .def(
          "str",
          [](MemoryOfPython& h, const std::string& unit) {
            return of<MemoryProfileHook>(h).str(unit);
          },
          nb::arg("unit") = "auto", "The summary as a table.");
}

}  // namespace

void bind_function_hooks(nb::module_& m) {
  nb::class_<AnyFunctionHook> hook(m, "Hook", nb::dynamic_attr(),
                                   "Told of functions within `with hook:`.");
  hook.def(
      "__init__",
      [](AnyFunctionHook* self, nb::handle of) {
        new (self) AnyFunctionHook{std::make_shared<HookOfPython>(of), nullptr};
      },
      nb::arg("of"), "`of` has FunctionHook's methods.");
  bind_scope<FunctionHookScope>(hook);
  bind_timer<function_hooks::TimerHook, AnyFunctionHook>(m, "How long functions take.");
  bind_memory(m);
  m.def(
      "PrintHook",
      [](bool statistics) {
        return AnyFunctionHook{std::make_shared<function_hooks::PrintHook>(statistics), nullptr};
      },
      nb::arg("statistics") = true, "Prints each function, with its inputs or gradients.");
  m.def("CUDAProfileHook", [] {
    return AnyFunctionHook{std::make_shared<function_hooks::CUDAProfileHook>(), nullptr};
  });
}

static void bind_normalizing_hooks(nb::module_& m) {
  using namespace link_hooks;  // NOLINT
  const SpectralNormalizationOptions spectral;
  m.def(
      "SpectralNormalization",
      [](int n_power_iteration, double eps, bool use_gamma, std::optional<double> factor,
         const std::string& weight_name, const std::optional<std::string>& name) {
        SpectralNormalizationOptions options;
        options.n_power_iteration = n_power_iteration, options.eps = eps;
        options.use_gamma = use_gamma, options.factor = factor;
        options.weight_name = weight_name;
        if (name) options.name = *name;
        nb::object made =
            nb::cast(AnyLinkHook{std::make_shared<SpectralNormalization>(options), true});
        made.attr("n_power_iteration") = n_power_iteration, made.attr("eps") = eps;
        made.attr("use_gamma") = use_gamma, made.attr("factor") = factor;
        made.attr("weight_name") = weight_name, made.attr("vector_name") = weight_name + "_u";
        return made;
      },
      nb::arg("n_power_iteration") = spectral.n_power_iteration, nb::arg("eps") = spectral.eps,
      nb::arg("use_gamma") = spectral.use_gamma, nb::arg("factor") = nb::none(),
      nb::arg("weight_name") = spectral.weight_name, nb::arg("name") = nb::none(),
      "The link computes with its weight divided by the weight's greatest singular value, times "
      "`factor`.");
  const WeightStandardizationOptions even;
  m.def(
      "WeightStandardization",
      [](double eps, const std::string& weight_name, const std::optional<std::string>& name) {
        WeightStandardizationOptions options;
        options.eps = eps, options.weight_name = weight_name;
        if (name) options.name = *name;
        nb::object made =
            nb::cast(AnyLinkHook{std::make_shared<WeightStandardization>(options), true});
        made.attr("eps") = eps, made.attr("weight_name") = weight_name;
        return made;
      },
      nb::kw_only(), nb::arg("eps") = even.eps, nb::arg("weight_name") = even.weight_name,
      nb::arg("name") = nb::none(),
      "The link computes with weights of mean 0 and variance 1 in each slice of their first axis.");
}

void bind_link_hooks(nb::module_& m) {
  nb::class_<AnyLinkHook> hook(m, "Hook", nb::dynamic_attr(),
                               "Told of the links that have it, and of all within `with hook:`.");
  hook.def(
          "__init__",
          [](AnyLinkHook* self, nb::handle of, const std::string& name) {
            new (self) AnyLinkHook{std::make_shared<LinkHookOfPython>(of, name)};
          },
          nb::arg("of"), nb::arg("name"), "`of` has LinkHook's methods.")
      .def_prop_ro("name", [](const AnyLinkHook& h) { return h.hook->name(); });
  bind_scope<LinkHookScope>(hook);
  bind_timer<link_hooks::TimerHook, AnyLinkHook>(m, "How long the calls of links take.");
  m.def("_is_open", &LinkHookScope::is_open);
  bind_normalizing_hooks(m);
}

}  // namespace rensa::python
