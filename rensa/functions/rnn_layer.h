// How the times of a recurrent layer follow each other, and the layer made of functions that know
// their gradients.
#pragma once

#include <cstdint>
#include <vector>

#include "rensa/functions/rnn_internal.h"

namespace rensa::functions::detail {

/// Rows [from, to) of what one time gives, or of what the layer starts from.
struct Piece {
  bool of_start;
  std::size_t step;
  std::int64_t from, to;
  std::int64_t rows() const { return to - from; }
};

/// The times of a layer in the order in which it goes through them. Sequences are sorted by length:
/// the first ones are under way at a time.
class LayerSteps {
 public:
  struct Step {
    std::int64_t begin, rows;  // among the rows of all times
  };

  /// `rows_each` rows are of one sequence.
  LayerSteps(const std::vector<std::int64_t>& batches, bool backward, std::int64_t rows_each = 1);

  std::size_t size() const { return steps_.size(); }
  const Step& operator[](std::size_t i) const { return steps_[i]; }
  /// The step that goes through time t.
  std::size_t in_time(std::size_t t) const { return backward_ ? steps_.size() - 1 - t : t; }
  bool all_of_one_batch() const { return steps_.front().rows == steps_.back().rows; }

  /// What the sequences of step i go on from.
  std::vector<Piece> before(std::size_t i) const;
  /// What each sequence ends with.
  std::vector<Piece> at_end() const;

 private:
  std::vector<Step> steps_;
  bool backward_;
};

/// The outputs of node rnn_layer for its inputs (rnn_layer.cc). `directions` are the steps of one
/// direction, or of two.
Variables composed_layer(CellKind kind, const std::vector<LayerSteps>& directions,
                         const Variables& in);

}  // namespace rensa::functions::detail
