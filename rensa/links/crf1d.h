// L::CRF1d: a linear-chain conditional random field.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "rensa/links/link.h"

namespace rensa {
namespace links {

/// F::crf1d with the cost of transitions between n_label labels as its parameter `cost`, 0 at
/// first.
class CRF1d : public Chain<CRF1d> {
 public:
  explicit CRF1d(std::int64_t n_label, const Initializer& initial_cost = 0);
  void members(Visitor& v) override { v("cost", cost); }

  /// As F::crf1d. With `transpose`, xs[i] (length, n_label) and ys[i] (length,) are sequences, in
  /// any order; by reduce "no" the losses are those of the sequences from the longest to the
  /// shortest.
  Variable operator()(const Variables& xs, const Variables& ys, std::string_view reduce = "mean",
                      bool transpose = false) const;
  /// As F::argmax_crf1d. With `transpose` the labels are those of the sequences xs[i], in their
  /// order; the scores go from the longest to the shortest.
  std::pair<Variable, std::vector<Array>> argmax(const Variables& xs, bool transpose = false) const;

  Parameter cost;
};

}  // namespace links

namespace L = links;

}  // namespace rensa
