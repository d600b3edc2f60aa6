// Summing gradients over NCCL, or by copies to the first member.
#include "rensa/training/gradient_sum.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <utility>

#include "rensa/core/error.h"

namespace rensa::training {

namespace {

bool different_gpus(const std::vector<Device>& devices) {
  std::set<Device> all(devices.begin(), devices.end());
  return all.size() == devices.size() && devices.size() > 1 &&
         std::all_of(devices.begin(), devices.end(), [](Device d) { return d.is_cuda(); });
}

}  // namespace

GradientSum::GradientSum(const std::vector<Device>& devices) : gradients_(devices.size()) {
  if (!different_gpus(devices)) return;
  try {
    nccl_ = std::make_unique<cuda::AllReduceGroup>(devices);
  } catch (const CudaError& error) {
    std::fprintf(stderr, "rensa: ParallelUpdater sums gradients by copies between GPUs: %s\n",
                 error.what());
  }
}

void GradientSum::operator()(ReplicaTeam& team, int member, Link& model) {
  auto& own = gradients_[static_cast<std::size_t>(member)];
  own.clear();
  std::set<const Storage*> seen;
  for (const ParameterRef& parameter : model.params()) {
    Array g = parameter.grad();
    if (g.defined()) {
      g = g.ascontiguous();
      // Two parameters that were added to one another have one gradient array.
      if (!seen.insert(g.storage().get()).second) g = g.copy();
    }
    own.push_back({parameter, g.defined(), std::move(g)});
  }
  team.barrier();  // all gradients are queued; whoever failed has been noticed
  fill_missing(member);
  if (nccl_) {
    sum_by_nccl(member);
  } else {
    team.barrier();  // all have looked at what the others lack
    if (member == 0) sum_by_copies();
    team.barrier();
  }
  for (const Gradient& g : own) {
    if (g.array.defined()) g.parameter.set_grad(g.array);
  }
}

void GradientSum::fill_missing(int member) {
  auto& own = gradients_[static_cast<std::size_t>(member)];
  for (std::size_t i = 0; i < own.size(); ++i) {
    bool wanted = std::any_of(gradients_.begin(), gradients_.end(),
                              [&](const auto& gradients) { return gradients[i].present; });
    if (wanted && !own[i].array.defined()) own[i].array = xp::zeros_like(own[i].parameter.array());
  }
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

void GradientSum::sum_by_nccl(int member) {
  std::vector<Operand> operands;
  for (const Gradient& g : gradients_[static_cast<std::size_t>(member)]) {
    if (g.array.defined()) operands.push_back(g.array.operand());
  }
  nccl_->sum(member, operands);
}

}  // namespace rensa::training
