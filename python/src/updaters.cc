// rensa.training.updaters.
#include "bind.h"
#include "data.h"
#include "link.h"
#include "rensa/links/visitor.h"
#include "serialize.h"
#include "training.h"

namespace rensa::python {

using training::Named;
using training::Updater;

std::optional<Device> optional_device(nb::handle object) {
  if (object.is_none()) return {};
  return device_of_object(object);
}

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

namespace {

/// The epochs of an updater of Python's, which the engine asks an iterator for.
class ClockOfUpdater final : public EpochsOfPython {
 public:
  using EpochsOfPython::EpochsOfPython;
  void members(Visitor&) override {}  // the updater's are shown with it
  std::optional<Batch> next() override { refuse(); }
  void reset() override {}
  double epoch_detail() const override { return read<double>("epoch_detail", 0); }
  const Dataset& dataset() const override { refuse(); }
  bool repeats() const override { return true; }

 private:
  [[noreturn]] static void refuse() {
    throw NotImplementedError("an updater of Python's has no iterator that the engine knows");
  }
};

/// Stands for the model of an updater of Python's that names no optimizer.
struct Nothing : Chain<Nothing> {
  void members(Visitor&) override {}
  Variable operator()(const Variable& x) const { return x; }
};

Named<Optimizer> optimizers_of(nb::handle updater) {
  nb::object all = nb::getattr(updater, "get_all_optimizers", nb::none());
  if (!all.is_none()) all = all();
  if (PyDict_Check(all.ptr()) && nb::len(all) > 0) return named_of<Optimizer>(all);
  static auto* nothing = new Nothing();
  optimizers::SGD optimizer;
  optimizer.setup(*nothing);
  return Named<Optimizer>(optimizer);
}

/// An object of Python's with Chainer's attributes and methods of updaters.
class UpdaterBodyLike final : public training::UpdaterBody {
 public:
  explicit UpdaterBodyLike(nb::handle updater)
      : UpdaterBody(Iterator(std::make_shared<ClockOfUpdater>(updater)), optimizers_of(updater)),
        updater_(nb::borrow(updater)) {}
  /// Takes its count of iterations over.
  void count() {
    nb::object iteration = nb::getattr(updater_.object, "iteration", nb::none());
    if (!PyLong_Check(iteration.ptr())) return;
    struct SetIteration final : Visitor {
      void parameter(std::string_view, Parameter&) override {}
      void persistent(std::string_view, Persistent&) override {}
      void state(std::string_view, State&) override {}
      void value(std::string_view name, const Access& access) override {
        if (name == "iteration") access.set(count);
      }
      void link(std::string_view, Link&) override {}
      void group(std::string_view, const Members&) override {}
      std::int64_t count = 0;
    } set;
    set.count = nb::cast<std::int64_t>(iteration);
    UpdaterBody::members(set);
  }

  void members(Visitor& v) override {
    UpdaterBody::members(v);
    show_serialized(v, updater_.object,
                    {{"iteration", [this] { return nb::object(nb::int_(iteration())); }}});
  }

 protected:
  void update_core() override {
    nb::gil_scoped_acquire lock;
    updater_.object.attr("update")();
  }

 private:
  Held updater_;
};

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
  void members(Visitor& v) override {
    UpdaterBody::members(v);
    nb::gil_scoped_acquire lock;
    nb::object updater = updater_.object();  // a weak reference
    if (!updater.is_none()) show_serialized(v, updater);
  }

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
                   const std::string& reduction, int accumulate, bool update_on_main,
                   std::int64_t pack_bytes) {
  if (overrides_update_core(self)) {
    throw NotImplementedError(
        "ParallelUpdater: update_core cannot be overridden; derive from StandardUpdater");
  }
  training::ParallelUpdaterOptions options;
  options.reduction = reduction;
  options.converter = converter_of(converter, self);
  options.capture = capture;
  options.accumulate = accumulate, options.pack_bytes = pack_bytes;
  // A hook of Python's is of one optimizer: main's.
  options.update_on_main =
      update_on_main || nb::dict(optimizer.attr("__dict__")).contains("_has_own_hooks");
  for (auto [name, device] : devices) {
    options.devices.emplace_back(nb::cast<std::string>(name), device_of_object(device));
  }
  training::ParallelUpdater made(python_iterator(iterator),
                                 needed<Optimizer>(optimizer, "an optimizer"), options);
  new (nb::inst_ptr<ParallelUpdaterOfPython>(self))
      ParallelUpdaterOfPython(made, &made.capture_stats());
  nb::inst_mark_ready(self);
  self.attr("_optimizers") = optimizer;
}

constexpr const char* kStatsDoc =
    "What captured iterations came to so far; None where update_core is overridden.";

}  // namespace

training::Updater python_updater(nb::handle object) {
  Updater* known = nullptr;
  if (nb::try_cast(object, known) && known) return *known;
  if (!nb::hasattr(object, "update") || !nb::hasattr(object, "iteration"))
    needed<Updater>(object, "an updater");
  return Updater(std::make_shared<UpdaterBodyLike>(object));
}

void count_as_python(const training::Trainer& trainer) {
  struct Opened : Updater {
    explicit Opened(const Updater& updater) : Updater(updater) {}
    UpdaterBodyLike* body() const { return dynamic_cast<UpdaterBodyLike*>(body_.get()); }
  };
  if (UpdaterBodyLike* body = Opened(trainer.updater()).body()) body->count();
}

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
             const std::string& reduction, int accumulate, bool update_on_main,
             std::int64_t pack_bytes) {
            make_parallel(self, iterator, optimizer, converter, devices, capture, reduction,
                          accumulate, update_on_main, pack_bytes);
          },
          nb::arg("iterator"), nb::arg("optimizer"), nb::arg("converter").none() = nb::none(),
          nb::arg("devices") = nb::dict(), nb::kw_only(), nb::arg("capture") = false,
          nb::arg("reduction") = "sum", nb::arg("accumulate") = 1,
          nb::arg("update_on_main") = false,
          nb::arg("pack_bytes") = training::ParallelUpdaterOptions{}.pack_bytes)
      .def_prop_ro("capture_stats", &UpdaterOfPython::capture_stats, kStatsDoc);
}

}  // namespace rensa::python
