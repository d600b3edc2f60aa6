// rensa.training: updaters, Trainer, extensions and triggers.
#include "training.h"
#include <csignal>

#include "bind.h"
#include "link.h"
#include "rensa/core/thread_state.h"

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

/// The object that Python made, or a new one.
nb::object object_of(const Trainer& trainer) {
  nb::object known = object_at(place_of(trainer));
  return known.is_valid() ? known : nb::cast(trainer);
}

/// trainer.observation: what is written to it is observed.
struct ObservationOfPython {
  Trainer trainer;
};

// --- triggers ---

void bind_trigger_class(nb::module_& m) {
  nb::class_<Trigger>(m, "Trigger", "When an extension is called, and when a run is over.")
      .def("__call__",
           [](Trigger& t, Trainer& trainer) { return unlocked([&] { return t(trainer); }); });
  m.def(
      "IntervalTrigger",
      [](double period, const std::string& unit) { return Trigger(period, unit); },
      nb::arg("period"), nb::arg("unit"));
}

// --- updaters ---

/// The engine's object, or a TypeError that says what is needed.
template <class T> T& needed(nb::handle object, const char* what) {
  T* found = nullptr;
  if (nb::try_cast(object, found) && found) return *found;
  throw nb::type_error(
      (std::string(what) + " is needed, not " + nb::cast<std::string>(nb::repr(object.type())))
          .c_str());
}

template <class T> Named<T> named_of(nb::handle object) {
  const char* what = std::is_same_v<T, Iterator> ? "an iterator" : "an optimizer";
  if (!PyDict_Check(object.ptr())) return needed<T>(object, what);
  std::vector<std::pair<std::string, T>> entries;
  for (auto [name, value] : nb::borrow<nb::dict>(object)) {
    entries.emplace_back(nb::cast<std::string>(name), needed<T>(value, what));
  }
  return Named<T>(entries);
}

std::optional<Device> optional_device(nb::handle object) {
  if (object.is_none()) return {};
  return device_of_object(object);
}

/// Makes arrays of a batch: a function of Python's of a list of examples and a device.
std::function<Columns(const Batch&, Device)> converter_of(nb::handle object, nb::handle owner) {
  if (object.is_none()) return {};
  auto function = std::make_shared<HeldByOwner>(owner, object);
  return [function](const Batch& batch, Device device) {
    nb::gil_scoped_acquire lock;
    nb::object examples = nb::cast(batch).attr("examples")();
    nb::object columns = function->get()(examples, nb::cast(device));
    Columns arrays;
    if (!PyTuple_Check(columns.ptr())) return Columns{plain_array_of(columns)};
    for (nb::handle column : nb::borrow<nb::tuple>(columns))
      arrays.push_back(plain_array_of(column));
    return arrays;
  };
}

std::function<Variable(const Variables&)> loss_of(nb::handle object, nb::handle owner) {
  if (object.is_none()) return {};
  if (nb::isinstance<Link>(object)) {
    auto link = std::make_shared<HeldByOwner>(owner, object);
    return [link, &model = nb::cast<Link&>(object)](const Variables& x) { return model.invoke(x); };
  }
  auto function = std::make_shared<HeldByOwner>(owner, object);
  return [function](const Variables& x) {
    nb::gil_scoped_acquire lock;
    nb::list arguments;
    for (const Variable& variable : x) arguments.append(given(variable));
    return nb::cast<Variable>(function->get()(*nb::tuple(arguments)));
  };
}

/// Python's update_core in place of the engine's.
class UpdaterBodyOfPython : public training::UpdaterBody {
 public:
  UpdaterBodyOfPython(Named<Iterator> iterators, Named<Optimizer> optimizers, nb::object updater)
      : UpdaterBody(std::move(iterators), std::move(optimizers)), updater_(std::move(updater)) {}

 protected:
  void update_core() override {
    nb::gil_scoped_acquire lock;
    nb::object updater = updater_.object();  // a weak reference
    if (!updater.is_none()) updater.attr("update_core")();
  }

 private:
  Held updater_;
};

bool overrides_update_core(nb::handle self) {
  return !nb::object(self.type().attr("update_core")).is(nb::type<Updater>().attr("update_core"));
}

// What is made in Python. Their threads may be waiting for the interpreter's lock.
struct UpdaterOfPython : Updater {
  explicit UpdaterOfPython(const Updater& made, const CaptureStats* its_stats = nullptr)
      : Updater(made), stats(its_stats) {
    body_ = let_go_unlocked(body_);
  }
  nb::object capture_stats() const {
    return stats == nullptr ? nb::none() : nb::object(dict_of(*stats));
  }
  const CaptureStats* stats;  // of the body; null where update_core is Python's
};
struct StandardUpdaterOfPython : UpdaterOfPython {
  using UpdaterOfPython::UpdaterOfPython;
};
struct ParallelUpdaterOfPython : UpdaterOfPython {
  using UpdaterOfPython::UpdaterOfPython;
};

void make_standard(nb::handle_t<Updater> self, nb::handle iterator, nb::handle optimizer,
                   nb::handle converter, nb::handle device, nb::handle loss_func, bool capture,
                   int accumulate, bool replay_lists) {
  Named<Iterator> iterators = named_of<Iterator>(iterator);
  Named<Optimizer> optimizers = named_of<Optimizer>(optimizer);
  auto* place = nb::inst_ptr<StandardUpdaterOfPython>(self);
  if (overrides_update_core(self)) {
    if (!loss_func.is_none() || capture || accumulate != 1) {
      throw ValueError(
          "StandardUpdater: loss_func, capture and accumulate are for the update_core that is "
          "overridden");
    }
    nb::object weak = nb::module_::import_("weakref").attr("ref")(self);
    new (place) StandardUpdaterOfPython(
        Updater(std::make_shared<UpdaterBodyOfPython>(iterators, optimizers, weak)));
    if (auto target = optional_device(device)) {
      for (const auto& [name, each] : optimizers) each.target().to(*target);
    }
  } else {
    training::StandardUpdaterOptions options;
    options.device = optional_device(device);
    options.converter = converter_of(converter, self);
    options.loss_func = loss_of(loss_func, self);
    options.accumulate = accumulate;
    options.capture = capture;
    options.capture_options.replay_lists = replay_lists;
    training::StandardUpdater made(iterators, optimizers, options);
    new (place) StandardUpdaterOfPython(made, &made.capture_stats());
  }
  nb::inst_mark_ready(self);
  self.attr("_optimizers") = optimizer;  // whose targets live as long as the updater
  self.attr("converter") = converter.is_none()
                               ? nb::module_::import_("rensa.converters").attr("concat_examples")
                               : nb::borrow(converter);
  self.attr("device") = device;
}

void make_parallel(nb::handle_t<Updater> self, nb::handle iterator, nb::handle optimizer,
                   nb::handle converter, const nb::dict& devices, bool capture,
                   const std::string& reduction) {
  if (overrides_update_core(self)) {
    throw NotImplementedError(
        "ParallelUpdater: update_core cannot be overridden; derive from StandardUpdater");
  }
  training::ParallelUpdaterOptions options;
  options.reduction = reduction;
  options.converter = converter_of(converter, self);
  options.capture = capture;
  // A hook of Python's is of one optimizer: main's.
  options.update_on_main = nb::dict(optimizer.attr("__dict__")).contains("_has_own_hooks");
  for (auto [name, device] : devices) {
    options.devices.emplace_back(nb::cast<std::string>(name), device_of_object(device));
  }
  training::ParallelUpdater made(needed<Iterator>(iterator, "an iterator"),
                                 needed<Optimizer>(optimizer, "an optimizer"), options);
  new (nb::inst_ptr<ParallelUpdaterOfPython>(self))
      ParallelUpdaterOfPython(made, &made.capture_stats());
  nb::inst_mark_ready(self);
  self.attr("_optimizers") = optimizer;
}

constexpr const char* kStatsDoc =
    "What captured iterations came to so far; None where update_core is overridden.";

void bind_updaters(nb::module_& m) {
  nb::class_<Updater> updater(m, "Updater", nb::dynamic_attr(), nb::is_weak_referenceable(),
                              "One training iteration.");
  updater
      .def(
          "update", [](const Updater& u) { unlocked([&] { u.update(); }); }, "One iteration.")
      .def(
          "update_core",
          [](const Updater&) {
            throw NotImplementedError("update_core: for classes of one's own");
          },
          "What an iteration does; a class of one's own overrides it.")
      .def_prop_ro("iteration", &Updater::iteration)
      .def_prop_ro("epoch", &Updater::epoch)
      .def_prop_ro("is_new_epoch", &Updater::is_new_epoch)
      .def_prop_ro("epoch_detail", &Updater::epoch_detail)
      .def_prop_ro("previous_epoch_detail", &Updater::previous_epoch_detail)
      .def("get_iterator", &Updater::get_iterator, nb::arg("name") = "main")
      .def(
          "get_optimizer",
          [](nb::handle_t<Updater> self, const std::string& name) -> nb::object {
            nb::object all = nb::getattr(self, "_optimizers", nb::none());
            if (all.is_none()) return nb::cast(nb::cast<const Updater&>(self).get_optimizer(name));
            if (PyDict_Check(all.ptr())) return nb::borrow(all[name.c_str()]);
            nb::cast<const Updater&>(self).get_optimizer(name);
            return all;
          },
          nb::arg("name") = "main")
      .def("connect_trainer", [](const Updater&, nb::handle) {})
      .def("finalize", [](const Updater&) {});
  nb::class_<StandardUpdaterOfPython, Updater>(m, "StandardUpdater",
                                               "Takes a batch, its loss, gradients and an update.")
      .def(
          "__init__",
          [](nb::handle_t<Updater> self, nb::handle iterator, nb::handle optimizer,
             nb::handle converter, nb::handle device, nb::handle loss_func, bool capture,
             int accumulate, bool replay_lists) {
            make_standard(self, iterator, optimizer, converter, device, loss_func, capture,
                          accumulate, replay_lists);
          },
          nb::arg("iterator"), nb::arg("optimizer"), nb::arg("converter").none() = nb::none(),
          nb::arg("device").none() = nb::none(), nb::arg("loss_func").none() = nb::none(),
          nb::kw_only(), nb::arg("capture") = false, nb::arg("accumulate") = 1,
          nb::arg("replay_lists") = false)
      .def_prop_ro("capture_stats", &UpdaterOfPython::capture_stats, kStatsDoc);
  nb::class_<ParallelUpdaterOfPython, Updater>(m, "ParallelUpdater",
                                               "One model trained on several devices.")
      .def(
          "__init__",
          [](nb::handle_t<Updater> self, nb::handle iterator, nb::handle optimizer,
             nb::handle converter, const nb::dict& devices, bool capture,
             const std::string& reduction) {
            make_parallel(self, iterator, optimizer, converter, devices, capture, reduction);
          },
          nb::arg("iterator"), nb::arg("optimizer"), nb::arg("converter").none() = nb::none(),
          nb::arg("devices") = nb::dict(), nb::kw_only(), nb::arg("capture") = false,
          nb::arg("reduction") = "sum")
      .def_prop_ro("capture_stats", &UpdaterOfPython::capture_stats, kStatsDoc);
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

nb::object extend(nb::handle_t<Trainer> self, nb::object extension, std::optional<std::string> name,
                  nb::handle trigger, std::optional<int> priority) {
  auto& trainer = nb::cast<const Trainer&>(self);
  ExtendOptions options{
      .name = name.value_or(""), .trigger = trigger_of(trigger, self), .priority = priority};
  AnyExtension* known = nullptr;
  if (nb::try_cast(extension, known) && known) known->add(trainer, options);
  else trainer.extend(ExtensionOfPython(self, extension), options);
  // What it holds of Python's lives as long as the trainer.
  nb::dict(self.attr("__dict__"))
      .attr("setdefault")("_extensions", nb::list())
      .attr("append")(extension);
  return nb::borrow(self);
}

void bind_extension_class(nb::module_& m) {
  using namespace rensa::extensions;
  nb::class_<AnyExtension>(m, "EngineExtension", nb::dynamic_attr(),
                           "An extension of the engine's.");
  m.attr("PRIORITY_WRITER") = training::kPriorityWriter;
  m.attr("PRIORITY_EDITOR") = training::kPriorityEditor;
  m.attr("PRIORITY_READER") = training::kPriorityReader;
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

void run(Trainer& trainer) {
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
             const std::string& out) {
            new (nb::inst_ptr<Trainer>(self)) Trainer(needed<Updater>(updater, "an updater"),
                                                      trigger_of(stop_trigger, self), out);
            nb::inst_mark_ready(self);
            self.attr("_updater") = updater;
            remember_object(place_of(nb::cast<const Trainer&>(self)), self);
          },
          nb::arg("updater"), nb::arg("stop_trigger").none() = nb::none(),
          nb::arg("out") = "result")
      .def("extend", &extend, nb::arg("extension"), nb::arg("name") = nb::none(),
           nb::arg("trigger").none() = nb::none(), nb::arg("priority") = nb::none())
      .def("run", &run,
           "The whole run. Ctrl-C lets the iteration end, snapshots be written, and raises "
           "KeyboardInterrupt.")
      .def("stop", &Trainer::stop)
      .def_prop_ro("updater",
                   [](nb::handle_t<Trainer> self) -> nb::object {
                     nb::object known = nb::getattr(self, "_updater", nb::none());
                     return known.is_none() ? nb::cast(nb::cast<const Trainer&>(self).updater())
                                            : known;
                   })
      .def_prop_ro(
          "observation", [](const Trainer& t) { return ObservationOfPython{t}; },
          "What was observed in this iteration, by name; what is written to it is observed too.")
      .def_prop_ro("out", &Trainer::out)
      .def_prop_ro("elapsed_time", &Trainer::elapsed_time);
}

/// chainer.report.
void report_values(const nb::dict& values, nb::handle observer) {
  const Link* link = observer.is_none() ? nullptr : &nb::cast<const Link&>(observer);
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
  bind_updaters(updaters);
  bind_trainer(training);
  bind_extension_class(extensions);
  bind_extensions(extensions);
  networks.def("report", &report_values, nb::arg("values"),
               nb::arg("observer").none() = nb::none());
}

}  // namespace rensa::python
