// What the functions over sequences and the links of them share.
#pragma once

#include <cstdint>
#include <vector>

#include "rensa/functions/rnn.h"

namespace rensa::functions::detail {

/// Throws ShapeError, naming the link, where a state that it goes on with has other rows than x.
void check_state_rows(const char* link, const Variable& x, const Variable& state);

/// Weights of a layer, and so biases: 8, 6 and 2.
std::size_t weights_of(CellKind kind);

struct Sequences {
  Variable x;                         // (sum of batches, I): time after time
  std::vector<std::int64_t> batches;  // how many sequences reach each time
  // Rows are computed with as many elements as this divides; 0: as many as suit the device.
  std::int64_t row_multiple = 0;
};
struct SequenceOutput {
  Variable hy, cy;  // cy of long short-term memories
  Variable y;       // (sum of batches, N or 2 * N)
};
/// What the functions of rnn.h do, of sequences behind one another.
SequenceOutput run_sequences(const SequenceNetwork& network, const Variable& hx, const Variable& cx,
                             const WeightLists& ws, const WeightLists& bs, const Sequences& xs);

/// What goes from one time to the next: the last output, and the memory where there is one.
struct Memory {
  Variable h, c;
};
/// From the first time to the last one, the other way round, or two layers of the same input, one
/// each way, whose steps go together: sequences are of one length then.
enum class Direction : unsigned char { forward, backward, both };
/// One layer. Its parts for the gates lie behind one another: of long short-term memories a, i, f
/// and o; of gated recurrent units n, r, z for the input and r, z, n for the last output. Of both
/// directions the weights and biases of the second one lie behind all of the first one's, and its
/// columns of states and outputs do: they are 2 * N wide.
struct Layer {
  const char* name;  // of the network, for errors
  CellKind kind;
  Direction direction;
  std::vector<std::int64_t> batches;  // as Sequences has them
  Variable input, bias;               // (gates * N, I), (gates * N,)
  Variable last, last_bias;  // (gates * N, N) for the last output; (gates * N,) of gated recurrent
                             // units, whose gates see the two biases apart
};
struct LayerOutput {
  Memory end;
  Variable y;  // (sum of batches, N): time after time
};
/// One function with a backward of its own: what the input gives, and the gradients of weights and
/// input, are one product each for all times. `start` (batches[0], N) and what the layer ends with
/// have a row for each sequence. Throws DtypeError where not all is of one floating dtype; under an
/// Autocast products compute in its dtype, and states are of any but float64.
LayerOutput run_layer(const Layer& layer, const Variable& x, const Memory& start);

/// x with the slices `order` along `axis`, each of which is once in there; `back` is the order that
/// undoes it.
Variable reorder(const Variable& x, int axis, const Array& order, const Array& back);

}  // namespace rensa::functions::detail
