// The functors of pointwise.def, over one value type V: pw::name::apply(inputs..., outputs...).
// Read by the host compiler (after <cmath>), by nvcc and by NVRTC.
#pragma once

#include "rensa/operations/pointwise/special_functors.h"

namespace rensa {

namespace m {
template <class V> RENSA_FN V sigmoid(V a) { return V(1) / (V(1) + exp(-a)); }
}  // namespace m

namespace pw {

#define RENSA_UNPACK(...) __VA_ARGS__
#define RENSA_POINTWISE(name, rule, inputs, outputs, statements)                               \
  struct name {                                                                                \
    template <class V> static RENSA_FN void apply(RENSA_UNPACK inputs, RENSA_UNPACK outputs) { \
      statements                                                                               \
    }                                                                                          \
  };
#include "rensa/operations/pointwise/pointwise.def"
#undef RENSA_POINTWISE
#undef RENSA_UNPACK

// How many inputs and outputs a row has: outputs are references.
template <class T> struct is_output { static constexpr bool value = false; };
template <class T> struct is_output<T&> { static constexpr bool value = true; };
template <class... A> RENSA_FN constexpr int count_inputs(void (*)(A...)) {
  return (0 + ... + (is_output<A>::value ? 0 : 1));
}
template <class... A> RENSA_FN constexpr int count_outputs(void (*)(A...)) {
  return (0 + ... + (is_output<A>::value ? 1 : 0));
}
template <class Row> inline constexpr int num_inputs = count_inputs(&Row::template apply<float>);
template <class Row> inline constexpr int num_outputs = count_outputs(&Row::template apply<float>);

/// The numbers from 0 to N - 1, as template arguments.
template <int... I> struct indices {};
template <int N, int... I> struct make_indices {
  using type = typename make_indices<N - 1, N - 1, I...>::type;
};
template <int... I> struct make_indices<0, I...> { using type = indices<I...>; };
template <int N> using indices_to = typename make_indices<N>::type;

template <class Row, class V, int... I, int... O>
RENSA_FN void call(const V* x, V* y, indices<I...>, indices<O...>) {
  Row::template apply<V>(x[I]..., y[O]...);
}
/// Row's outputs y of its inputs x.
template <class Row, class V>
RENSA_FN void call(const V (&x)[num_inputs<Row>], V (&y)[num_outputs<Row>]) {
  call<Row>(x, y, indices_to<num_inputs<Row>>{}, indices_to<num_outputs<Row>>{});
}

/// One output alone, as a function of all inputs: what a compiler makes of several of them shares
/// their common parts.
template <class Row, int k> struct output {
  template <class... V> RENSA_FN auto operator()(V... inputs) const { return only(inputs...); }
  template <class V, class... Others> static RENSA_FN V only(V first, Others... others) {
    V x[] = {first, others...}, y[num_outputs<Row>];
    call<Row>(x, y);
    return y[k];
  }
};

}  // namespace pw

}  // namespace rensa
