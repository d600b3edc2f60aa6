// Hooks as rows of core/update_rules.def: each is one launch over all parameters, those with norms
// a few.
#include "rensa/optimizers/hooks.h"
#include "rensa/core/update_rule_ids.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "rensa/array/creation.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/optimizers/row_launch.h"

namespace rensa {

void add_to(HookList& hooks, std::shared_ptr<OptimizerHook> hook) {
  if (!hook) throw ValueError("add_hook: no hook, but a null pointer");
  for (const auto& other : hooks) {
    if (std::string_view(other->name()) == hook->name()) {
      throw ValueError(fmt::format("add_hook: there is a hook \"{}\" already; remove_hook it first",
                                   hook->name()));
    }
  }
  hooks.push_back(std::move(hook));
}

void remove_from(HookList& hooks, const std::string& name) {
  if (std::erase_if(hooks, [&](const auto& hook) { return hook->name() == name; }) == 0) {
    throw ValueError(fmt::format("remove_hook: there is no hook \"{}\"", name));
  }
}

Array squared_sums(const std::vector<Array>& arrays) {
  Device device = arrays.empty() ? cpu() : arrays[0].device();
  Array sums = xp::empty({static_cast<std::int64_t>(arrays.size()) + 1}, float64, device);
  operations::SquaredSums op;
  for (const Array& array : arrays) {
    if (array.device() != device) {
      throw NotImplementedError(
          fmt::format("squared_sums: arrays on {} and {}, one device at a time", device.str(),
                      array.device().str()));
    }
    op.in.push_back(array.operand());
  }
  op.out = sums.operand();
  launch(op);
  return sums;
}

namespace optimizer_hooks {

namespace {

/// A row over the gradients of all parameters, with the same numbers.
template <class Numbers>
void launch_row(const UpdateCall& call, const char* name, UpdateRuleId rule, Numbers numbers,
                const Array& own = {}) {
  RowLaunch launch(name, rule);
  int set = launch.add_set(std::move(numbers));
  for (const UpdatedParameter& p : call.parameters) {
    operations::UpdateTarget& target = launch.add(p.array, p.grad, set);
    if (own.defined()) target.numbers = own.operand();
  }
  launch.run();
}

/// The hook, held by what a recording asks.
template <class Hook> std::shared_ptr<const Hook> held(const Hook& hook) {
  return std::static_pointer_cast<const Hook>(hook.shared_from_this());
}

using Values = std::vector<double>;

}  // namespace

void WeightDecay::operator()(const UpdateCall& call) {
  launch_row(call, name(), UpdateRuleId::weight_decay,
             [h = held(*this)] { return Values{h->rate}; });
}

void Lasso::operator()(const UpdateCall& call) {
  launch_row(call, name(), UpdateRuleId::lasso, [h = held(*this)] { return Values{h->rate}; });
}

void GradientClipping::operator()(const UpdateCall& call) {
  std::vector<Array> gradients;
  for (const UpdatedParameter& p : call.parameters) gradients.push_back(p.grad);
  if (gradients.empty()) return;
  Array norm = xp::sqrt(squared_sums(gradients)[{Slice(-1, none)}]);
  launch_row(
      call, name(), UpdateRuleId::gradient_clipping,
      [h = held(*this)] { return Values{h->threshold}; }, norm);
}

void GradientHardClipping::operator()(const UpdateCall& call) {
  launch_row(call, name(), UpdateRuleId::gradient_hard_clipping, [h = held(*this)] {
    return Values{h->lower_bound, h->upper_bound};
  });
}

void GradientNoise::operator()(const UpdateCall& call) {
  RowLaunch launch(name(), UpdateRuleId::gradient_noise);
  std::vector<Array> noise;  // held until the launch
  for (const UpdatedParameter& p : call.parameters) {
    int set = launch.shared_set(p.rule, [&] {
      return launch.add_set([h = held(*this), rule = p.rule] {
        return Values{std::sqrt(h->eta / std::pow(1 + static_cast<double>(rule->t), 0.55))};
      });
    });
    noise.push_back(xp::random::normal(0, 1, p.array.shape(), p.array.dtype(), p.array.device()));
    launch.add(p.array, p.grad, set).states.push_back(noise.back().operand());
  }
  launch.run();
}

void GradientLARS::operator()(const UpdateCall& call) {
  auto n = static_cast<std::int64_t>(call.parameters.size());
  std::vector<Array> arrays;  // parameter, gradient, parameter, ...
  for (const UpdatedParameter& p : call.parameters) arrays.insert(arrays.end(), {p.array, p.grad});
  if (arrays.empty()) return;
  Array norms = xp::sqrt(squared_sums(arrays));
  RowLaunch launch(name(), UpdateRuleId::gradient_lars);
  int set = launch.add_set([h = held(*this)] {
    return Values{h->threshold, h->weight_decay, h->eps};
  });
  std::vector<Array> own;
  for (std::int64_t i = 0; i < n; ++i) {
    const UpdatedParameter& p = call.parameters[static_cast<std::size_t>(i)];
    own.push_back(norms[{Slice(2 * i, 2 * i + 2)}]);
    launch.add(p.array, p.grad, set).numbers = own.back().operand();
  }
  launch.run();
}

}  // namespace optimizer_hooks

}  // namespace rensa
