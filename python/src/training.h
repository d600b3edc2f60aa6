// Extensions and triggers on their way to a trainer, and what is told of captured steps.
#pragma once

#include <functional>
#include <utility>

#include "arguments.h"
#include "data.h"

namespace rensa::python {

/// None is no trigger. `owner` is to hold a function of Python's, where the collector sees it;
/// without one the trigger holds it.
training::Trigger trigger_of(nb::handle object, nb::handle owner = {});

/// The counts by their names.
nb::dict dict_of(const CaptureStats& stats);

/// An extension of the engine's, until a trainer gets a copy of it.
struct AnyExtension {
  std::function<void(const training::Trainer&, const training::ExtendOptions&)> add;
  std::shared_ptr<training::Extension> call;  // what is called without a trainer
};

template <class E> AnyExtension any_extension(E extension) {
  auto call = std::make_shared<E>(extension);
  return {[extension = std::move(extension)](const training::Trainer& trainer,
                                             const training::ExtendOptions& options) {
            trainer.extend(E(extension), options);
          },
          call};
}

/// The object of Python's that stands for a trainer, or a new one.
nb::object trainer_object(const training::Trainer& trainer);
/// An updater of the engine's; or one of Python's, with Chainer's attributes and `update`.
training::Updater python_updater(nb::handle object);
/// Before something of the engine's asks a trainer: an updater of Python's counts by itself.
void count_as_python(const training::Trainer& trainer);
void bind_updaters(nb::module_& m);
/// Makes arrays of a batch: a function of Python's of a list of examples and a device. The owner
/// holds it.
std::function<Columns(const Batch&, Device)> converter_of(nb::handle object, nb::handle owner);
std::optional<Device> optional_device(nb::handle object);

/// The engine's object, or a TypeError that says what is needed.
template <class T> T& needed(nb::handle object, const char* what) {
  T* found = nullptr;
  if (nb::try_cast(object, found) && found) return *found;
  throw nb::type_error(
      (std::string(what) + " is needed, not " + nb::cast<std::string>(nb::repr(object.type())))
          .c_str());
}

/// Iterators or optimizers by name, or the one.
template <class T> training::Named<T> named_of(nb::handle object) {
  auto one = [](nb::handle of) -> T {
    if constexpr (std::is_same_v<T, Iterator>) return python_iterator(of);
    else return needed<T>(of, "an optimizer");
  };
  if (!PyDict_Check(object.ptr())) return one(object);
  std::vector<std::pair<std::string, T>> entries;
  for (auto [name, value] : nb::borrow<nb::dict>(object)) {
    entries.emplace_back(nb::cast<std::string>(name), one(value));
  }
  return training::Named<T>(entries);
}

template <> struct InOf<training::Trigger> { using type = Argument<training::Trigger>; };
template <> struct InOf<Optimizer> { using type = Argument<std::optional<Optimizer>>; };
inline const Optimizer& give(const Argument<std::optional<Optimizer>>& argument) {
  return *argument.get();
}
inline std::optional<Optimizer> give(
    const std::optional<Argument<std::optional<Optimizer>>>& argument) {
  if (!argument) return {};
  return *argument->get();
}

}  // namespace rensa::python

namespace nanobind::detail {
RENSA_CASTER(
    rensa::training::Trigger,
    "rensa._engine.training.triggers.Trigger | tuple[float, str] | collections.abc.Callable",
    !is_text(src), rensa::python::trigger_of(src), value ? cast(value) : none())
RENSA_CASTER(std::optional<rensa::Optimizer>, "rensa._engine.optimizers.Optimizer",
             isinstance<rensa::Optimizer>(src), (cast<rensa::Optimizer&>(src)), none())
}  // namespace nanobind::detail
