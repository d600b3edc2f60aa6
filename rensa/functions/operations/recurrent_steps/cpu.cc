// The times of a recurrent layer on the CPU: threads share the sequences.
#include <vector>

#include "rensa/core/thread_pool.h"
#include "rensa/functions/operations/recurrent_steps/cells.h"

namespace rensa::host {

namespace {

/// u = h * weight^T + bias, of one sequence of a direction.
void sum_products(const RecurrentArgs& args, int parts, std::int64_t direction, const float* h,
                  float* u) {
  std::int64_t first = direction * parts * args.units;
  for (int k = 0; k < parts * args.units; ++k) {
    const float* weight = args.weight + (first + k) * args.units;
    float sum = 0;
    for (int j = 0; j < args.units; ++j) sum += weight[j] * h[j];
    u[k] = args.bias ? sum + args.bias[first + k] : sum;
  }
}

template <class Unit> void follow_sequence(const RecurrentArgs& args, std::int64_t row) {
  constexpr int kParts = Unit::kParts;
  const int n = args.units;
  std::vector<float> sums(static_cast<std::size_t>(kParts) * static_cast<std::size_t>(n));
  const float *h = args.h + row * n, *c = args.c ? args.c + row * n : nullptr;
  for (std::int64_t i = 0; i < args.times; ++i) {
    std::int64_t place = (args.backward ? args.times - 1 - i : i) * args.rows + row;
    float* gates = args.gates + place * kParts * n;
    sum_products(args, kParts, row % args.directions, h, sums.data());
    for (int j = 0; j < n; ++j) {
      float x[kParts], u[kParts];
      for (int k = 0; k < kParts; ++k) x[k] = gates[k * n + j], u[k] = sums.data()[k * n + j];
      UnitState state{h[j], c ? c[j] : 0, 0};
      Unit::step(x, u, state);
      args.y[place * n + j] = state.h;
      if (args.kept) args.kept[place * n + j] = state.kept;
      for (int k = 0; kParts > 1 && k < kParts; ++k) gates[k * n + j] = x[k];
    }
    h = args.y + place * n;
    if (c) c = args.kept + place * n;
  }
}

template <operations::RecurrentCell cell> void follow(const RecurrentArgs& args) {
  parallel_for(args.rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      follow_sequence<RecurrentUnit<cell>>(args, row);
    }
  });
}

}  // namespace

}  // namespace rensa::host

namespace rensa::operations {

void RecurrentSteps::run_cpu() {
  RecurrentArgs args = recurrent_args(*this);
  switch (cell) {
    case RecurrentCell::lstm: return host::follow<RecurrentCell::lstm>(args);
    case RecurrentCell::gru: return host::follow<RecurrentCell::gru>(args);
    case RecurrentCell::tanh: return host::follow<RecurrentCell::tanh>(args);
    case RecurrentCell::relu: return host::follow<RecurrentCell::relu>(args);
  }
}

}  // namespace rensa::operations
