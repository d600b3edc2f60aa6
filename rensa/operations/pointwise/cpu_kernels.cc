// The loops of pointwise.def, one for each row and value type, for one instruction set.
#include "rensa/operations/pointwise/cpu_kernels.h"

#include "rensa/backend/cpu/kernel_sources.h"
#include "rensa/operations/pointwise/pointwise_functors.h"

namespace rensa::host::RENSA_SET {

namespace {

// In whole blocks only, the last one padded, as in the elementwise kernels.
template <class V>
inline constexpr int kBlock = std::is_same_v<V, float> || std::is_same_v<V, double> ? 32 : 1;

template <class Row, class V, int... I, int... O>
__attribute__((noinline)) void pointwise_blocks(std::int64_t blocks, const V* const* in,
                                                V* const* out, pw::indices<I...>,
                                                pw::indices<O...>) {
  for (std::int64_t k = 0; k < blocks; ++k) {
    std::int64_t at = k * kBlock<V>;
    RENSA_IVDEP
    for (int i = 0; i < kBlock<V>; ++i) {
      V y[sizeof...(O)];
      Row::template apply<V>(in[I][at + i]..., y[O]...);
      ((out[O][at + i] = y[O]), ...);
    }
  }
}

template <class Row, class V>
void pointwise(std::int64_t n, const void* const* in, void* const* out) {
  constexpr int N = pw::num_inputs<Row>, M = pw::num_outputs<Row>;
  constexpr pw::indices_to<N> inputs;
  constexpr pw::indices_to<M> outputs;
  const V* x[N];
  V* y[M];
  for (int k = 0; k < N; ++k) x[k] = static_cast<const V*>(in[k]);
  for (int k = 0; k < M; ++k) y[k] = static_cast<V*>(out[k]);
  std::int64_t blocks = n / kBlock<V>, done = blocks * kBlock<V>;
  if (blocks > 0) pointwise_blocks<Row>(blocks, x, y, inputs, outputs);
  if (done == n) return;
  V padded[N + M][kBlock<V>];
  const V* padded_x[N];
  V* padded_y[M];
  std::size_t rest = static_cast<std::size_t>(n - done);
  for (int k = 0; k < N; ++k) {
    std::memcpy(padded[k], x[k] + done, rest * sizeof(V));
    for (std::size_t i = rest; i < kBlock<V>; ++i) padded[k][i] = padded[k][0];
    padded_x[k] = padded[k];
  }
  for (int k = 0; k < M; ++k) padded_y[k] = padded[N + k];
  pointwise_blocks<Row>(1, static_cast<const V* const*>(padded_x), padded_y, inputs, outputs);
  for (int k = 0; k < M; ++k) std::memcpy(y[k] + done, padded_y[k], rest * sizeof(V));
}

template <class V> void add(PointwiseTable& table) {
  constexpr ComputeType type = compute_type_of<V>;
#define RENSA_POINTWISE(name, rule, inputs, outputs, statements)                            \
  if constexpr (rule_takes(DtypeRule::rule, type)) {                                        \
    table.kernel[static_cast<int>(rensa::pointwise::Index::name)][static_cast<int>(type)] = \
        pointwise<pw::name, V>;                                                             \
  }
#include "rensa/operations/pointwise/pointwise.def"
#undef RENSA_POINTWISE
}

}  // namespace

void add_pointwise(PointwiseTable& table) {
  add<float>(table);
  add<double>(table);
  if constexpr (InstructionSet::RENSA_SET == InstructionSet::baseline) {
    add<complex_t<float>>(table);
    add<complex_t<double>>(table);
  }
}

}  // namespace rensa::host::RENSA_SET
