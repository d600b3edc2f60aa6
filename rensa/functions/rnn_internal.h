// What the functions over sequences and the links of them share.
#pragma once

#include <cstdint>
#include <vector>

#include "rensa/functions/rnn.h"

namespace rensa::functions::detail {

/// h' of a gated recurrent unit, of h (n, N) and what the input and h give for r, z and n, (n, 3 *
/// N) each: row gru of operations/pointwise/recurrent.def.
Variable gru(const Variable& h, const Variable& x, const Variable& u);

/// Throws ShapeError, naming the link, where a state that it goes on with has other rows than x.
void check_state_rows(const char* link, const Variable& x, const Variable& state);

/// Weights of a layer, and so biases: 8, 6 and 2.
std::size_t weights_of(CellKind kind);

struct Sequences {
  Variable x;                         // (sum of batches, I): time after time
  std::vector<std::int64_t> batches;  // how many sequences reach each time
};
struct SequenceOutput {
  Variable hy, cy;  // cy of long short-term memories
  Variable y;       // (sum of batches, N or 2 * N)
};
/// What the functions of rnn.h do, of sequences behind one another.
SequenceOutput run_sequences(const SequenceNetwork& network, const Variable& hx, const Variable& cx,
                             const WeightLists& ws, const WeightLists& bs, const Sequences& xs);

/// x with the slices `order` along `axis`, each of which is once in there; `back` is the order that
/// undoes it.
Variable reorder(const Variable& x, int axis, const Array& order, const Array& back);

}  // namespace rensa::functions::detail
