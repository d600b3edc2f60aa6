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

GradientSum::GradientSum(std::vector<Device> devices, std::int64_t pack_bytes)
    : devices_(std::move(devices)), pack_bytes_(pack_bytes), gradients_(devices_.size()) {}

void GradientSum::plan_early(const Link& model) {
  if (!early_ && devices_.size() > 1 && cuda::share_memory(devices_))
    early_.emplace(devices_, pack_bytes_);
  if (early_) early_->plan(model);
}

GradientWatch* GradientSum::early(int member, const Link& model) {
  own(member).clear();  // with the gradients of the step before, whose memory is used again
  return early_ ? early_->watch(member, model) : nullptr;
}

void GradientSum::finish_early(int member) {
  if (early_) early_->finish(member);
}

void GradientSum::collect(int member, const Link& model) {
  own(member).clear();
  std::set<const Storage*> seen;
  for (const ParameterRef& parameter : model.params()) {
    Array taken = early_ ? early_->taken(member, own(member).size()) : Array();
    Array g = parameter.grad();
    if (g.defined()) {
      g = rensa::detail::dense_as(g, parameter.array());
      // Two parameters that were added to one another have one gradient array, and memory of
      // somebody else's may be out of the others' reach.
      if (!seen.insert(g.storage().get()).second || g.storage()->is_foreign()) g = g.copy();
    }
    Gradient::Part rest{g.defined(), std::move(g)};
    if (taken.defined()) own(member).push_back({parameter, {true, std::move(taken)}, rest});
    else own(member).push_back({parameter, rest, {false, {}}});
  }
}

void GradientSum::fill_missing(int member) {
  for (std::size_t i = 0; i < own(member).size(); ++i) {
    for (Gradient::Part Gradient::*part : {&Gradient::main, &Gradient::late}) {
      bool wanted = std::any_of(gradients_.begin(), gradients_.end(), [&](const auto& gradients) {
        return (gradients[i].*part).present;
      });
      Gradient& gradient = own(member)[i];
      Gradient::Part& mine = gradient.*part;
      if (wanted && !mine.present) mine.array = xp::zeros_like(gradient.parameter.array());
    }
  }
}

void GradientSum::sum() {
  if (devices_.size() == 1) return;
  if (!cuda::share_memory(devices_)) return sum_by_copies();
  // Backward makes the last parameters' gradients first.
  std::vector<std::vector<Operand>> arrays(gradients_.size());
  for (std::size_t i = gradients_[0].size(); i-- > 0;) {
    bool is_summed = early_ && early_->is_summed(i);
    if (!is_summed) add_operands(i, &Gradient::main, arrays);
    add_operands(i, &Gradient::late, arrays);
  }
  for (operations::RankSum& sum : operations::rank_sums(arrays)) launch(sum);
  if (early_) early_->close();
}

/// Of each member's part of the i-th gradient, where there is one.
void GradientSum::add_operands(std::size_t i, Gradient::Part Gradient::*part,
                               std::vector<std::vector<Operand>>& arrays) {
  for (std::size_t member = 0; member < gradients_.size(); ++member) {
    Array& array = (gradients_[member][i].*part).array;
    if (!array.defined()) continue;
    array = rensa::detail::dense_as(array, (gradients_[0][i].*part).array);
    arrays[member].push_back(as_it_lies(array).operand());
  }
}

void GradientSum::sum_by_copies() {
  for (std::size_t i = 0; i < gradients_[0].size(); ++i) {
    Array& sum = gradients_[0][i].main.array;
    if (!sum.defined()) continue;
    for (std::size_t m = 1; m < gradients_.size(); ++m)
      sum += gradients_[m][i].main.array.to(sum.device());
    for (std::size_t m = 1; m < gradients_.size(); ++m) {
      Array& other = gradients_[m][i].main.array;
      if (other.device() == sum.device()) other.assign(sum);
      else other = sum.to(other.device());
    }
  }
}

void GradientSum::give_back(int member) {
  for (const auto& [parameter, main, late] : own(member)) {
    if (!main.array.defined()) continue;
    parameter.set_grad(late.array.defined() ? main.array + late.array : main.array);
  }
}

}  // namespace rensa::training
