// Losses of sequences of labels.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rensa/autograd/variable.h"

namespace rensa {
namespace functions {

struct CtcOptions {
  Array input_length = {};      // (n,) integer: how many steps of each sample count; all
  Array label_length = {};      // (n,) integer: how many labels of each; all
  std::string reduce = "mean";  // over the samples, or "no": (n,)
};
/// -log of the probability that x spells the labels t: of all paths with a class for each step that
/// give t where runs of one class are made single and `blank_symbol` is left out (Graves et al.,
/// "Connectionist temporal classification"). x (steps, n, classes), or a list of its steps, is
/// taken before softmax; t (n, labels) integer. Computed in float32 at least, in two launches and
/// the mean's, with a gradient in one. Where no path has room for the labels the loss is infinite
/// and its gradient NaN. Throws ShapeError, DtypeError; ValueError for a blank_symbol outside
/// [0, classes); on a GPU at the next wait, IndexError for a label outside of it, ValueError for a
/// length beyond x or t; NotImplementedError where the gradient is to be differentiated.
[[nodiscard]] Variable connectionist_temporal_classification(const Variable& x, const Variable& t,
                                                             std::int64_t blank_symbol,
                                                             const CtcOptions& options = {});
[[nodiscard]] Variable connectionist_temporal_classification(const Variables& x, const Variable& t,
                                                             std::int64_t blank_symbol,
                                                             const CtcOptions& options = {});

/// The negative log-likelihood of a linear-chain conditional random field: log Z less the sum of
/// xs[i][b, ys[i][b]] and of cost[ys[i][b], ys[i + 1][b]] over a sample's steps i (Lafferty et al.,
/// "Conditional random fields"). cost is (classes, classes); xs[i] (n_i, classes) and ys[i] (n_i,)
/// integer have the samples that are i + 1 steps long or longer, n_0 >= n_1 >= ...: sequences
/// sorted by length and transposed (transpose_sequence). "mean" is over the n_0 samples, "no" gives
/// (n_0,). Throws ShapeError, DtypeError, ValueError.
[[nodiscard]] Variable crf1d(const Variable& cost, const Variables& xs, const Variables& ys,
                             std::string_view reduce = "mean");
/// The labels of the greatest likelihood in crf1d's field, and their sum of xs and cost: the score
/// (n_0,) and the labels of each step, (n_i,) int64 (Viterbi's algorithm).
[[nodiscard]] std::pair<Variable, std::vector<Array>> argmax_crf1d(const Variable& cost,
                                                                   const Variables& xs);

}  // namespace functions

namespace F = functions;

}  // namespace rensa
