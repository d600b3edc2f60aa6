// F::forget: memory for time.
#pragma once

#include <concepts>
#include <functional>
#include <type_traits>
#include <utility>

#include "rensa/autograd/recomputation.h"
#include "rensa/autograd/variable.h"

namespace rensa {
class Visitor;

namespace functions {

/// f(xs), of which nothing is kept but xs: f runs without a graph, and again, with one, when
/// gradients are wanted; those of parameters and variables that f finds by itself come with them in
/// Variable::backward (rensa::grad looks at xs alone). The second run has the configuration, the
/// device and the random numbers of the first, and changes nothing that a run changes:
/// in_recomputing() tells links so. What f reads beside xs has to be as it was: a parameter that is
/// changed between the runs is not noticed, and a Persistent that f changes in place (other than by
/// assignment) changes twice. With enable_double_backprop the second run's graph stays.
///
/// Throws ValueError where f gives an undefined variable, or other numbers of results or other
/// random numbers when it runs again; NotImplementedError where it uses a State.
Variables forget(const std::function<Variables(const Variables&)>& f, const Variables& xs);

/// The same of a function of one or more variables that gives one (then it is the result) or
/// several. A link is given as std::ref(link), and lives until gradients have been computed.
template <class F, class... X>
requires(sizeof...(X) > 0 && (std::convertible_to<const X&, const Variable&> && ...) &&
         std::invocable<F&, const X&...>) auto forget(F f, const X&... x) {
  static_assert(
      !requires(F & link, Visitor & v) { link.members(v); },
      "F::forget(std::ref(link), x): f is copied, and a copy of a link has other "
      "parameters");
  using Result = std::invoke_result_t<F&, std::conditional_t<true, const Variable&, X>...>;
  auto call =
      [f = std::move(f)]<std::size_t... I>(const Variables& xs, std::index_sequence<I...>) mutable {
    return f(xs[I]...);
  };
  constexpr auto kIndexes = std::index_sequence_for<X...>();
  if constexpr (std::same_as<std::remove_cvref_t<Result>, Variables>) {
    return forget([call](const Variables& xs) mutable { return call(xs, kIndexes); },
                  Variables{x...});
  } else {
    return forget([call](const Variables& xs) mutable { return Variables{call(xs, kIndexes)}; },
                  Variables{x...})[0];
  }
}

}  // namespace functions

namespace F = functions;

}  // namespace rensa
