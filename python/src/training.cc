// rensa.training: updaters, Trainer, extensions and triggers.
#include "training.h"
#include <nanobind/stl/map.h>

#include <csignal>

#include "bind.h"
#include "link.h"
#include "rensa/core/thread_state.h"
#include "serialize.h"

namespace rensa::python {

namespace {

using training::ExtendOptions;
using training::Extension;
using training::Named;
using training::Trainer;
using training::Trigger;
using training::Updater;

// --- the objects of trainers ---

/// What all handles of a trainer share.
const void* place_of(const Trainer& trainer) { return &trainer.observation(); }

nb::object object_of(const Trainer& trainer) { return trainer_object(trainer); }

/// trainer.observation: what is written to it is observed.
struct ObservationOfPython {
  Trainer trainer;
};

// --- triggers ---

/// Whole numbers as such.
nb::object number_of(double value) {
  auto whole = static_cast<std::int64_t>(value);
  if (static_cast<double>(whole) == value) return nb::int_(whole);
  return nb::float_(value);
}

void bind_trigger_class(nb::module_& m) {
  nb::class_<Trigger>(m, "Trigger", "When an extension is called, and when a run is over.")
      .def("__call__",
           [](Trigger& t, Trainer& trainer) {
             count_as_python(trainer);
             return unlocked([&] { return t(trainer); });
           })
      .def_prop_ro("period", &Trigger::period, "Of an interval; 0 of any other trigger.")
      .def_prop_ro("unit", &Trigger::unit)
      .def("__str__", [](const Trigger& t) {
        std::string period = nb::cast<std::string>(nb::str(number_of(t.period())));
        return t.unit().empty() ? "a trigger"
                                : "IntervalTrigger(" + period + ", '" + t.unit() + "')";
      });
  m.def(
      "IntervalTrigger",
      [](double period, const std::string& unit) { return Trigger(period, unit); },
      nb::arg("period"), nb::arg("unit"));
}

// --- extensions ---

/// A function of Python's, or an object with Chainer's attributes and methods.
class ExtensionOfPython final : public Extension {
 public:
  ExtensionOfPython(nb::handle trainer, nb::handle object)
      : held_(std::make_shared<HeldByOwner>(trainer, object)) {}
  void operator()(Trainer& trainer) override {
    nb::gil_scoped_acquire lock;
    held_->get()(object_of(trainer));
  }
  void initialize(Trainer& trainer) override { call("initialize", &trainer); }
  void finalize() override { call("finalize", nullptr); }
  void members(Visitor& v) override {
    nb::gil_scoped_acquire lock;
    show_serialized(v, held_->get());
  }
  void on_error(Trainer& trainer, const std::exception& error) override {
    nb::gil_scoped_acquire lock;
    nb::object found = nb::getattr(held_->get(), "on_error", nb::none());
    if (found.is_none()) return;
    auto* raised = dynamic_cast<const nb::python_error*>(&error);
    nb::object value = raised ? nb::borrow(raised->value())
                              : nb::handle(PyExc_RuntimeError)(nb::str(error.what()));
    found(object_of(trainer), value, value.attr("__traceback__"));
  }
  std::string default_name() const override {
    nb::gil_scoped_acquire lock;
    for (const char* name : {"name", "default_name", "__name__"}) {
      nb::object found = nb::getattr(held_->get(), name, nb::none());
      if (PyUnicode_Check(found.ptr())) return nb::cast<std::string>(found);
    }
    return nb::cast<std::string>(held_->get().type().attr("__name__"));
  }
  Trigger default_trigger() const override {
    nb::gil_scoped_acquire lock;
    nb::object found = nb::getattr(held_->get(), "trigger", nb::none());
    return found.is_none() ? Extension::default_trigger() : trigger_of(found);
  }
  int default_priority() const override {
    nb::gil_scoped_acquire lock;
    nb::object found = nb::getattr(held_->get(), "priority", nb::none());
    return found.is_none() ? Extension::default_priority() : nb::cast<int>(found);
  }

 private:
  void call(const char* method, Trainer* trainer) {
    nb::gil_scoped_acquire lock;
    nb::object found = nb::getattr(held_->get(), method, nb::none());
    if (found.is_none()) return;
    if (trainer) found(object_of(*trainer));
    else found();
  }
  std::shared_ptr<HeldByOwner> held_;
};

/// Enters an extension under the name that the trainer gives it.
void enter_name(nb::handle self, const std::string& name, nb::handle extension) {
  nb::object entered = self.attr("__dict__").attr("setdefault")("_extensions", nb::dict());
  nb::dict named = nb::borrow<nb::dict>(entered);
  std::string free = name;
  for (int n = 1; named.contains(free.c_str()); ++n) free = name + "_" + std::to_string(n);
  named[free.c_str()] = extension;  // lives as long as the trainer
  nb::object own = nb::getattr(extension, "name", nb::ellipsis());
  if (own.is_none()) nb::setattr(extension, "name", nb::str(free.c_str()));
}

nb::object extend(nb::handle_t<Trainer> self, nb::object extension, std::optional<std::string> name,
                  nb::handle trigger, std::optional<int> priority) {
  auto& trainer = nb::cast<const Trainer&>(self);
  ExtendOptions options{
      .name = name.value_or(""), .trigger = trigger_of(trigger, self), .priority = priority};
  AnyExtension* known = nullptr;
  if (nb::try_cast(extension, known) && known) {
    nb::object own = nb::getattr(extension, "trigger", nb::none());
    if (!options.trigger && !own.is_none()) options.trigger = trigger_of(own, self);
    known->add(trainer, options);
    enter_name(self, name.value_or(known->call->default_name()), extension);
  } else {
    ExtensionOfPython made(self, extension);
    std::string by_default = made.default_name();
    trainer.extend(std::move(made), options);
    enter_name(self, name.value_or(by_default), extension);
  }
  return nb::borrow(self);
}

/// An extension of the engine's as an object: a trainer gets a copy; called by itself it is one of
/// its own.
void bind_any_extension(nb::module_& m) {
  nb::class_<AnyExtension>(m, "EngineExtension", nb::dynamic_attr(), nb::is_weak_referenceable(),
                           "An extension of the engine's.")
      .def("__call__",
           [](AnyExtension& e, Trainer& trainer) {
             count_as_python(trainer);
             unlocked([&] { (*e.call)(trainer); });
           })
      .def("initialize",
           [](AnyExtension& e, Trainer& trainer) {
             count_as_python(trainer);
             unlocked([&] { e.call->initialize(trainer); });
           })
      .def("finalize", [](AnyExtension& e) { unlocked([&] { e.call->finalize(); }); })
      .def(
          "evaluate",
          [](AnyExtension& e) {
            auto* evaluator = dynamic_cast<extensions::Evaluator*>(e.call.get());
            if (!evaluator) throw nb::attribute_error("evaluate: this extension is no Evaluator");
            return unlocked([&] { return evaluator->evaluate(); });
          },
          "Of an Evaluator: the means by name.")
      .def_prop_ro("default_name", [](const AnyExtension& e) { return e.call->default_name(); })
      .def_prop_ro("priority", [](const AnyExtension& e) { return e.call->default_priority(); });
}

void bind_evaluator(nb::module_& m) {
  using namespace rensa::extensions;
  m.def(
      "Evaluator",
      [](nb::handle iterator, nb::object target, nb::handle converter, nb::handle device,
         nb::handle eval_func) {
        nb::object made = nb::cast(AnyExtension{});  // holds what is of Python's
        EvaluatorOptions options;
        options.converter = converter_of(converter, made);
        if (!eval_func.is_none()) {
          auto function = std::make_shared<HeldByOwner>(made, eval_func);
          options.eval_func = [function](const Variables& x) {
            nb::gil_scoped_acquire lock;
            function->get()(*nb::tuple(given(x)));
          };
        }
        nb::cast<AnyExtension&>(made) = any_extension(
            Evaluator(*named_of<Iterator>(iterator).find("main"), needed<Link>(target, "a link"),
                      optional_device(device), options));
        made.attr("_target") = target;
        return made;
      },
      nb::arg("iterator"), nb::arg("target"), nb::arg("converter").none() = nb::none(),
      nb::arg("device").none() = nb::none(), nb::arg("eval_func").none() = nb::none());
}

void bind_log_report(nb::module_& m) {
  using namespace rensa::extensions;
  m.def(
      "LogReport",
      [](const std::vector<std::string>& keys, Argument<Trigger> trigger,
         const std::string& filename, nb::object postprocess) {
        nb::object made = nb::cast(AnyExtension{});
        LogReportOptions options{.keys = keys, .trigger = trigger.get(), .filename = filename};
        if (!postprocess.is_none()) {
          auto function = std::make_shared<HeldByOwner>(made, postprocess);
          options.postprocess = [function](std::map<std::string, double>& means) {
            nb::gil_scoped_acquire lock;
            nb::object changed = nb::cast(means);
            function->get()(changed);
            means = nb::cast<std::map<std::string, double>>(changed);
          };
        }
        nb::cast<AnyExtension&>(made) = any_extension(LogReport(options));
        return made;
      },
      nb::arg("keys") = std::vector<std::string>(),
      nb::arg("trigger").none() = Argument<Trigger>(Trigger(1, "epoch")),
      nb::arg("filename") = "log", nb::arg("postprocess").none() = nb::none(),
      "Means of what is observed, as a JSON file; `postprocess` changes each entry before it is "
      "written.");
}

void bind_snapshots(nb::module_& m) {
  using namespace rensa::extensions;
  auto snapshot_options = [](const std::string& filename, int n_retains, bool autoload,
                             bool snapshot_on_error) {
    return SnapshotOptions{.filename = filename,
                           .snapshot_on_error = snapshot_on_error,
                           .n_retains = n_retains,
                           .autoload = autoload};
  };
  m.def(
      "snapshot",
      [=](const std::string& filename, int n_retains, bool autoload, bool snapshot_on_error) {
        return any_extension(
            Snapshot(snapshot_options(filename, n_retains, autoload, snapshot_on_error)));
      },
      nb::arg("filename") = "snapshot_iter_{.updater.iteration}", nb::kw_only(),
      nb::arg("n_retains") = -1, nb::arg("autoload") = false, nb::arg("snapshot_on_error") = false);
  m.def(
      "snapshot_object",
      [=](nb::object target, const std::string& filename, int n_retains, bool autoload) {
        SnapshotOptions options = snapshot_options(filename, n_retains, autoload, false);
        nb::object made =
            nb::cast(nb::isinstance<Link>(target)
                         ? any_extension(Snapshot(nb::cast<const Link&>(target), options))
                         : any_extension(Snapshot(nb::cast<const Optimizer&>(target), options)));
        made.attr("_target") = target;
        return made;
      },
      nb::arg("target"), nb::arg("filename"), nb::kw_only(), nb::arg("n_retains") = -1,
      nb::arg("autoload") = false);
}

void bind_extension_class(nb::module_& m) {
  using namespace rensa::extensions;
  bind_any_extension(m);
  m.attr("PRIORITY_WRITER") = training::kPriorityWriter;
  m.attr("PRIORITY_EDITOR") = training::kPriorityEditor;
  m.attr("PRIORITY_READER") = training::kPriorityReader;
  bind_evaluator(m);
  bind_log_report(m);
  bind_snapshots(m);
  m.def(
      "observe_lr",
      [](const std::string& optimizer_name, const std::string& observation_key) {
        return any_extension(observe_lr(optimizer_name, observation_key));
      },
      nb::arg("optimizer_name") = "main", nb::arg("observation_key") = "lr");
  m.def(
      "observe_value",
      [](const std::string& key, nb::object target_func) {
        nb::object made = nb::cast(AnyExtension{});
        auto function = std::make_shared<HeldByOwner>(made, target_func);
        nb::cast<AnyExtension&>(made) =
            any_extension(observe_value(key, [function](Trainer& trainer) {
              nb::gil_scoped_acquire lock;
              return nb::cast<double>(nb::float_(function->get()(object_of(trainer))));
            }));
        return made;
      },
      nb::arg("observation_key"), nb::arg("target_func"));
}

// --- the trainer ---

/// Leaves Ctrl-C to the engine while a run lasts: Python's handler is asked where Python runs, and
/// the engine may not call it.
class CtrlCOfTheEngine {
 public:
  CtrlCOfTheEngine() {
    nb::module_ threading = nb::module_::import_("threading");
    bool main = threading.attr("current_thread")().is(threading.attr("main_thread")());
    if (main) before_ = PyOS_setsig(SIGINT, SIG_DFL);
    if (before_ == SIG_IGN) PyOS_setsig(SIGINT, SIG_IGN);
  }
  ~CtrlCOfTheEngine() {
    if (before_) PyOS_setsig(SIGINT, before_);
  }
  CtrlCOfTheEngine(const CtrlCOfTheEngine&) = delete;
  CtrlCOfTheEngine& operator=(const CtrlCOfTheEngine&) = delete;

 private:
  PyOS_sighandler_t before_ = nullptr;
};

void run(Trainer& trainer, bool) {
  count_as_python(trainer);
  CtrlCOfTheEngine scope;
  try {
    unlocked([&] { trainer.run(); });
  } catch (const training::Interrupted& interrupted) {
    if (interrupted.signal() != SIGINT) throw;
    PyErr_SetString(PyExc_KeyboardInterrupt, interrupted.what());
    nb::raise_python_error();
  }
}

void bind_observation(nb::module_& m) {
  auto keys = [](const ObservationOfPython& o) {
    nb::list list;
    for (const auto& [name, value] : o.trainer.observation()) list.append(name);
    return list;
  };
  nb::class_<ObservationOfPython>(m, "Observation", "Values by name.")
      .def("__getitem__",
           [](const ObservationOfPython& o, const std::string& name) {
             auto found = o.trainer.observation().find(name);
             if (found == o.trainer.observation().end()) throw nb::key_error(name.c_str());
             return given(found->second);
           })
      .def("__setitem__",
           [](const ObservationOfPython& o, const std::string& name, Argument<Array> value) {
             o.trainer.observation()[name] = value.get();
           })
      .def("__contains__",
           [](const ObservationOfPython& o, const std::string& name) {
             return o.trainer.observation().contains(name);
           })
      .def("__len__", [](const ObservationOfPython& o) { return o.trainer.observation().size(); })
      .def("__iter__", [keys](const ObservationOfPython& o) { return nb::iter(keys(o)); })
      .def("keys", keys)
      .def(
          "get",
          [](const ObservationOfPython& o, const std::string& name, nb::object otherwise) {
            auto found = o.trainer.observation().find(name);
            return found == o.trainer.observation().end() ? otherwise : given(found->second);
          },
          nb::arg("name"), nb::arg("default") = nb::none());
}

void bind_trainer(nb::module_& m) {
  bind_observation(m);
  nb::class_<Trainer>(m, "Trainer", nb::dynamic_attr(), nb::is_weak_referenceable(),
                      "The training loop.")
      .def(
          "__init__",
          [](nb::handle_t<Trainer> self, nb::object updater, nb::handle stop_trigger,
             const std::string& out, nb::handle extensions) {
            Trigger stop = trigger_of(stop_trigger, self);
            if (!stop) stop = [](Trainer&) { return false; };
            new (nb::inst_ptr<Trainer>(self)) Trainer(python_updater(updater), stop, out);
            nb::inst_mark_ready(self);
            self.attr("_updater") = updater;
            remember_object(place_of(nb::cast<const Trainer&>(self)), self);
            count_as_python(nb::cast<const Trainer&>(self));
            if (extensions.is_none()) return;
            for (nb::handle extension : extensions) self.attr("extend")(extension);
          },
          nb::arg("updater"), nb::arg("stop_trigger").none() = nb::none(),
          nb::arg("out") = "result", nb::arg("extensions").none() = nb::none())
      .def(
          "get_extension",
          [](nb::handle self, const std::string& name) {
            auto named = nb::borrow<nb::dict>(nb::getattr(self, "_extensions", nb::dict()));
            if (!named.contains(name.c_str()))
              throw ValueError("Trainer: there is no extension " + name);
            return nb::object(named[name.c_str()]);
          },
          nb::arg("name"), "The extension that was entered under that name.")
      .def("extend", &extend, nb::arg("extension"), nb::arg("name") = nb::none(),
           nb::arg("trigger").none() = nb::none(), nb::arg("priority") = nb::none())
      .def("run", &run, nb::arg("show_loop_exception_msg") = true,
           "The whole run. Ctrl-C lets the iteration end, snapshots be written, and raises "
           "KeyboardInterrupt.")
      .def("stop", &Trainer::stop)
      .def_prop_ro("updater",
                   [](nb::handle_t<Trainer> self) -> nb::object {
                     nb::object known = nb::getattr(self, "_updater", nb::none());
                     return known.is_none() ? nb::cast(nb::cast<const Trainer&>(self).updater())
                                            : known;
                   })
      .def_prop_rw(
          "observation", [](const Trainer& t) { return ObservationOfPython{t}; },
          [](const Trainer& t, const nb::dict& values) {
            t.observation().clear();
            for (auto [name, value] : values)
              t.observation()[nb::cast<std::string>(name)] = plain_array_of(value);
          },
          "What was observed in this iteration, by name; what is written to it is observed too.")
      .def_prop_ro("out", &Trainer::out)
      .def_prop_ro("elapsed_time", &Trainer::elapsed_time);
}

/// chainer.report.
void report_values(const nb::dict& values, nb::handle observer) {
  const Link* link = observer.is_none() ? nullptr : &needed<Link>(observer, "report: a link");
  for (auto [key, value] : values) {
    auto name = nb::cast<std::string>(key);
    auto send = [&](Report one) { unlocked([&] { link ? report({one}, *link) : report({one}); }); };
    Variable variable;
    if (nb::try_cast(value, variable)) send(Report(name, variable));
    else if (auto number = scalar_of(value)) send(Report(name, number->as<double>()));
    else send(Report(name, plain_array_of(value)));
  }
}

}  // namespace

nb::object trainer_object(const Trainer& trainer) {
  nb::object known = object_at(place_of(trainer));
  return known.is_valid() ? known : nb::cast(trainer);
}

Trigger trigger_of(nb::handle object, nb::handle owner) {
  if (object.is_none()) return {};
  Trigger* known = nullptr;
  if (nb::try_cast(object, known) && known) return *known;
  if (PyTuple_Check(object.ptr()) && nb::len(object) == 2) {
    return Trigger(nb::cast<double>(object[0]), nb::cast<std::string>(object[1]));
  }
  if (!PyCallable_Check(object.ptr())) {
    throw nb::type_error(
        "a trigger is (period, 'epoch' or 'iteration'), or a function of the trainer");
  }
  auto ask = [](const nb::object& function, Trainer& trainer) {
    return nb::cast<bool>(nb::bool_(function(object_of(trainer))));
  };
  if (!owner.is_valid()) {
    return [held = std::make_shared<Held>(nb::borrow(object)), ask](Trainer& trainer) {
      nb::gil_scoped_acquire lock;
      return ask(held->object, trainer);
    };
  }
  return [held = std::make_shared<HeldByOwner>(owner, object), ask](Trainer& trainer) {
    nb::gil_scoped_acquire lock;
    return ask(held->get(), trainer);
  };
}

void bind_training(nb::module_& engine, nb::module_& networks) {
  nb::module_ training = engine.def_submodule("training");
  nb::module_ updaters = training.def_submodule("updaters");
  nb::module_ triggers = training.def_submodule("triggers");
  nb::module_ extensions = training.def_submodule("extensions");
  bind_trigger_class(triggers);
  bind_triggers(triggers);
  python::bind_updaters(updaters);
  bind_trainer(training);
  bind_extension_class(extensions);
  bind_extensions(extensions);
  networks.def("report", &report_values, nb::arg("values"),
               nb::arg("observer").none() = nb::none());
}

}  // namespace rensa::python
