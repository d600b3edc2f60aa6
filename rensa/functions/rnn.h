// Cells of recurrent networks, with gradients of any order, and networks of several layers over
// sequences.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

/// A long short-term memory's cell: of its state `c_prev` (n, units, ...) and its input `x`
/// (m, 4 * units, ...), m <= n, the new state and the output h (m, units, ...):
///   c = tanh(a) * sigmoid(i) + sigmoid(f) * c_prev, h = sigmoid(o) * tanh(c)
/// where a, i, f, o are the elements of each four of x along axis 1. Rows of c_prev beyond m stay
/// as they are (sequences that have ended, of a batch sorted by length). One kernel, and one
/// backward where m is n. Throws ShapeError for other shapes.
[[nodiscard]] std::pair<Variable, Variable> lstm(const Variable& c_prev, const Variable& x);

/// A memory with a forget gate for each of N children's states `cs` (n, units, ...):
///   c = tanh(a) * sigmoid(i) + sum_k sigmoid(f_k) * cs[k], h = sigmoid(o) * tanh(c)
/// where a, i, o, f_1, ..., f_N are the equal parts of x (n, (3 + N) * units, ...) along axis 1
/// (Tai et al., "Improved semantic representations from tree-structured long short-term memory
/// networks"). Throws ShapeError.
[[nodiscard]] std::pair<Variable, Variable> tree_lstm(const Variables& cs, const Variable& x);

/// A memory of two children: c is the sum of both as lstm() would have them, the output gate is
/// sigmoid(o1 + o2) (Zhu et al., "Long short-term memory over tree structures"). Throws ShapeError.
[[nodiscard]] std::pair<Variable, Variable> slstm(const Variable& c_prev1, const Variable& c_prev2,
                                                  const Variable& x1, const Variable& x2);

// --- over sequences ---
//
// Several layers, each over all the time: xs[t] (B_t, I) is what the sequences of the batch have at
// time t, B_t >= B_t+1 (sequences sorted by length, the longest first; transpose_sequence makes
// such a list). hx (layers, B, N), B >= B_0, is what each layer starts from, hy what it ends with
// for each sequence; ys[t] (B_t, N) is what the last layer gives. Of networks in both directions
// hx is (2 * layers, B, N), forward and backward in turns, and ys[t] (B_t, 2 * N). ws[i][j] and
// bs[i][j] are a layer's (and direction's) weights (N, I or N, or 2 * N of both directions below)
// and biases (N,), the first half for the input, the second for the last output. Between layers
// elements are dropped with the probability dropout_ratio, as dropout() does. A layer's inputs go
// through one product for all the time, and so do the gradients of its weights.
//
// Throw ShapeError, which names what does not fit, for B_t that rise or are 0 too, and ValueError
// for no xs or another number of layers, weights or biases.

/// What functions with a cell give.
struct NStepLSTMOutput {
  Variable hy, cy;  // the last states (layers, B, units) of h and c
  Variables ys;     // the outputs of each time, in the lengths of xs
};
/// What functions without a cell give.
struct NStepOutput {
  Variable hy;   // the last states (layers, B, units)
  Variables ys;  // the outputs of each time, in the lengths of xs
};
/// For each layer and direction its weights, or its biases.
using WeightLists = std::vector<Variables>;

/// Of long short-term memories: eight weights, for the gates i, f, the input a and the gate o.
[[nodiscard]] NStepLSTMOutput n_step_lstm(int n_layers, double dropout_ratio, const Variable& hx,
                                          const Variable& cx, const WeightLists& ws,
                                          const WeightLists& bs, const Variables& xs);
[[nodiscard]] NStepLSTMOutput n_step_bilstm(int n_layers, double dropout_ratio, const Variable& hx,
                                            const Variable& cx, const WeightLists& ws,
                                            const WeightLists& bs, const Variables& xs);
/// Of gated recurrent units, h = (1 - z) * n + z * h: six weights, for the gates r, z and
/// n = tanh(W_2 x + b_2 + r * (W_5 h + b_5)).
[[nodiscard]] NStepOutput n_step_gru(int n_layers, double dropout_ratio, const Variable& hx,
                                     const WeightLists& ws, const WeightLists& bs,
                                     const Variables& xs);
[[nodiscard]] NStepOutput n_step_bigru(int n_layers, double dropout_ratio, const Variable& hx,
                                       const WeightLists& ws, const WeightLists& bs,
                                       const Variables& xs);
/// Of units h = activation(W_0 x + b_0 + W_1 h + b_1): two weights. `activation` is "tanh" or
/// "relu", else ValueError.
[[nodiscard]] NStepOutput n_step_rnn(int n_layers, double dropout_ratio, const Variable& hx,
                                     const WeightLists& ws, const WeightLists& bs,
                                     const Variables& xs, std::string_view activation = "tanh");
[[nodiscard]] NStepOutput n_step_birnn(int n_layers, double dropout_ratio, const Variable& hx,
                                       const WeightLists& ws, const WeightLists& bs,
                                       const Variables& xs, std::string_view activation = "tanh");

namespace detail {

enum class CellKind : unsigned char { lstm, gru, rnn_tanh, rnn_relu };
/// What a network over sequences is made of.
struct SequenceNetwork {
  const char* name;
  CellKind kind;
  int n_layers;
  int directions;
  double dropout_ratio;
};

}  // namespace detail

}  // namespace functions

namespace F = functions;

}  // namespace rensa
