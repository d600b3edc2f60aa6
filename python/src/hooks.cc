// rensa.function_hooks: what is told of each function that a thread applies and goes back through.
#include <nanobind/stl/shared_ptr.h>

#include "arguments.h"
#include "bind.h"
#include "rensa/autograd/function_hooks.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"

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

/// A hook, while Python's `with` lasts.
struct AnyFunctionHook {
  std::shared_ptr<FunctionHook> hook;
  std::shared_ptr<FunctionHookScope> scope;
};

void enter(AnyFunctionHook& h) {
  if (h.scope) throw ValueError("a function hook is in one scope at a time");
  h.scope = std::make_shared<FunctionHookScope>(*h.hook);
}

template <class Hook> Hook& of(AnyFunctionHook& h) { return static_cast<Hook&>(*h.hook); }

struct TimerOfPython : AnyFunctionHook {};
struct MemoryOfPython : AnyFunctionHook {};

void bind_timer(nb::module_& m) {
  using function_hooks::TimerHook;
  nb::class_<TimerOfPython, AnyFunctionHook>(m, "TimerHook", "How long functions take.")
      .def("__init__",
           [](TimerOfPython* self) {
             new (self) TimerOfPython();
             self->hook = std::make_shared<TimerHook>();
           })
      .def("total_time", [](TimerOfPython& h) { return of<TimerHook>(h).total_time(); })
      .def_prop_ro("call_history",
                   [](TimerOfPython& h) {
                     nb::list list;
                     for (const TimedCall& call : of<TimerHook>(h).call_history())
                       list.append(nb::make_tuple(call.name, call.elapsed_time));
                     return list;
                   })
      .def(
          "summary",
          [](TimerOfPython& h) {
            nb::dict all;
            for (const auto& [name, call] : of<TimerHook>(h).summary()) {
              nb::dict one;
              one["elapsed_time"] = call.elapsed_time, one["occurrence"] = call.occurrence;
              all[name.c_str()] = one;
            }
            return all;
          },
          "Seconds and numbers of calls by name.")
      .def(
          "str",
          [](TimerOfPython& h, const std::string& unit) { return of<TimerHook>(h).str(unit); },
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
  nb::class_<AnyFunctionHook>(m, "Hook", nb::dynamic_attr(),
                              "Told of functions within `with hook:`.")
      .def(
          "__init__",
          [](AnyFunctionHook* self, nb::handle of) {
            new (self) AnyFunctionHook{std::make_shared<HookOfPython>(of), nullptr};
          },
          nb::arg("of"), "`of` has FunctionHook's methods.")
      .def("__enter__",
           [](nb::handle_t<AnyFunctionHook> self) {
             auto& hook = nb::cast<AnyFunctionHook&>(self);
             unlocked([&] { enter(hook); });
             return nb::borrow(self);
           })
      .def("__exit__",
           [](AnyFunctionHook& h, const nb::args&) { unlocked([&] { h.scope.reset(); }); });
  bind_timer(m);
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

}  // namespace rensa::python
