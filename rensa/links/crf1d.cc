// L::CRF1d.
#include "rensa/links/crf1d.h"

#include <algorithm>
#include <numeric>

#include "rensa/functions/joining_functions.h"
#include "rensa/functions/sequence_loss.h"

namespace rensa::links {

namespace {

using Places = std::vector<std::size_t>;

/// The places of sequences, from the longest to the shortest.
Places falling(const Variables& xs) {
  Places places(xs.size());
  std::iota(places.begin(), places.end(), 0);
  std::stable_sort(places.begin(), places.end(),
                   [&](std::size_t a, std::size_t b) { return xs[a].shape(0) > xs[b].shape(0); });
  return places;
}

/// The steps of the sequences at `places`.
Variables steps_of(const Variables& sequences, const Places& places) {
  Variables sorted;
  for (std::size_t i : places) sorted.push_back(sequences.at(i));
  return F::transpose_sequence(sorted);
}

}  // namespace

CRF1d::CRF1d(std::int64_t n_label, const Initializer& initial_cost)
    : cost(initial_cost, {n_label, n_label}) {}

Variable CRF1d::operator()(const Variables& xs, const Variables& ys, std::string_view reduce,
                           bool transpose) const {
  if (!transpose || xs.size() != ys.size()) return F::crf1d(cost, xs, ys, reduce);
  Places places = falling(xs);
  return F::crf1d(cost, steps_of(xs, places), steps_of(ys, places), reduce);
}

std::pair<Variable, std::vector<Array>> CRF1d::argmax(const Variables& xs, bool transpose) const {
  if (!transpose) return F::argmax_crf1d(cost, xs);
  Places places = falling(xs);
  auto [score, path] = F::argmax_crf1d(cost, steps_of(xs, places));
  Variables steps(path.begin(), path.end());
  Variables labels = F::transpose_sequence(steps);
  std::vector<Array> found(xs.size());
  for (std::size_t i = 0; i < places.size(); ++i) found[places[i]] = labels.at(i).array();
  return {score, found};
}

}  // namespace rensa::links
