// Extensions and triggers on their way to a trainer, and what is told of captured steps.
#pragma once

#include <functional>
#include <utility>

#include "arguments.h"

namespace rensa::python {

/// None is no trigger. `owner` is to hold a function of Python's, where the collector sees it;
/// without one the trigger holds it.
training::Trigger trigger_of(nb::handle object, nb::handle owner = {});

/// The counts by their names.
nb::dict dict_of(const CaptureStats& stats);

/// An extension of the engine's, until a trainer gets a copy of it.
struct AnyExtension {
  std::function<void(const training::Trainer&, const training::ExtendOptions&)> add;
};

template <class E> AnyExtension any_extension(E extension) {
  return {[extension = std::move(extension)](const training::Trainer& trainer,
                                             const training::ExtendOptions& options) {
    trainer.extend(E(extension), options);
  }};
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
