// Summing gradients where they lie, or by copies to the first member.
#include "rensa/training/gradient_sum.h"

#include <algorithm>
#include <set>
#include <utility>

#include "rensa/array/internal.h"
#include "rensa/device/launcher.h"
#include "rensa/device/peers.h"
#include "rensa/operations/rank_sum/rank_sum.h"

namespace rensa::training {

namespace {

/// The elements of a dense array, with the axes in the order in which they lie in memory.
Array as_it_lies(const Array& a) { return rensa::detail::MemoryOrder(a, Order('K')).permuted(a); }

}  // namespace

GradientSum::GradientSum(std::vector<Device> devices)
    : devices_(std::move(devices)), gradients_(devices_.size()) {}

void GradientSum::collect(int member, const Link& model) {
  own(member).clear();
  std::set<const Storage*> seen;
  for (const ParameterRef& parameter : model.params()) {
    Array g = parameter.grad();
    if (g.defined()) {
      g = rensa::detail::dense_as(g, parameter.array());
      // Two parameters that were added to one another have one gradient array, and memory of
      // somebody else's may be out of the others' reach.
      if (!seen.insert(g.storage().get()).second || g.storage()->is_foreign()) g = g.copy();
    }
    own(member).push_back({parameter, g.defined(), std::move(g)});
  }
}

void GradientSum::fill_missing(int member) {
  for (std::size_t i = 0; i < own(member).size(); ++i) {
    bool wanted = std::any_of(gradients_.begin(), gradients_.end(),
                              [&](const auto& gradients) { return gradients[i].present; });
    Gradient& gradient = own(member)[i];
    if (wanted && !gradient.present) gradient.array = xp::zeros_like(gradient.parameter.array());
  }
}

void GradientSum::sum() {
  if (devices_.size() == 1) return;
  if (!cuda::share_memory(devices_)) return sum_by_copies();
  for (auto& others : gradients_) {
    for (std::size_t i = 0; i < others.size(); ++i) {
      Array &array = others[i].array, &first = gradients_[0][i].array;
      if (array.defined()) array = rensa::detail::dense_as(array, first);
    }
  }
  // Backward makes the last parameters' gradients first.
  std::vector<std::vector<Operand>> arrays(gradients_.size());
  for (std::size_t member = 0; member < gradients_.size(); ++member) {
    for (auto g = gradients_[member].rbegin(); g != gradients_[member].rend(); ++g) {
      if (g->array.defined()) arrays[member].push_back(as_it_lies(g->array).operand());
    }
  }
  for (operations::RankSum& sum : operations::rank_sums(arrays)) launch(sum);
}

void GradientSum::sum_by_copies() {
  for (std::size_t i = 0; i < gradients_[0].size(); ++i) {
    Array& sum = gradients_[0][i].array;
    if (!sum.defined()) continue;
    for (std::size_t m = 1; m < gradients_.size(); ++m)
      sum += gradients_[m][i].array.to(sum.device());
    for (std::size_t m = 1; m < gradients_.size(); ++m) {
      Array& other = gradients_[m][i].array;
      if (other.device() == sum.device()) other.assign(sum);
      else other = sum.to(other.device());
    }
  }
}

void GradientSum::give_back(int member) {
  for (const Gradient& g : own(member)) {
    if (g.array.defined()) g.parameter.set_grad(g.array);
  }
}

}  // namespace rensa::training
