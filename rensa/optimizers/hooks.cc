// Hooks as rows of core/update_rules.def: each is one launch over all parameters, those with norms
// a few.
#include "rensa/optimizers/hooks.h"
#include "rensa/core/update_rule_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "rensa/array/creation.h"
#include "rensa/array/internal.h"
#include "rensa/array/manipulation.h"
#include "rensa/array/random_basics.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/graph.h"
#include "rensa/autograd/parameter_parts.h"
#include "rensa/core/error.h"
#include "rensa/device/launcher.h"
#include "rensa/device/tracer.h"
#include "rensa/links/link.h"
#include "rensa/optimizers/joint_update.h"
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

namespace {

/// The same on all ranks: adds to sums over parameters those of the parts that other ranks have.
/// `sums` are as many for each parameter, in their order, and may be followed by others. Whether
/// any parameter is cut.
bool add_other_parts(const Array& sums, const UpdateCall& call, std::int64_t for_each = 1) {
  std::vector<std::pair<Communicator, std::vector<Array>>> groups;  // what each has to add up
  for (std::size_t i = 0; i < call.parameters.size(); ++i) {
    const Communicator* ranks = autograd::ranks_of_parts(call.parameters[i].parameter);
    if (!ranks) continue;
    auto known = std::ranges::find(groups, *ranks, [](const auto& group) { return group.first; });
    if (known == groups.end()) known = groups.insert(known, {*ranks, {}});
    auto at = static_cast<std::int64_t>(i) * for_each;
    known->second.push_back(sums[{Slice(at, at + for_each)}]);
  }
  for (const auto& [ranks, own] : groups) {
    Array all = ranks.allreduce(xp::concatenate(own), ReduceOp::sum, "sums of squares of parts");
    for (std::size_t i = 0; i < own.size(); ++i) {
      auto at = static_cast<std::int64_t>(i) * for_each;
      own[i].assign(all[{Slice(at, at + for_each)}]);
    }
  }
  return !groups.empty();
}

}  // namespace

Array squared_norm(const UpdateCall& call) {
  std::vector<Array> gradients;
  for (const UpdatedParameter& p : call.parameters) gradients.push_back(p.grad);
  Array sums = squared_sums(gradients), own = sums[{Slice(-1, none)}];
  if (add_other_parts(sums, call)) {
    own = xp::sum(sums[{Slice(0, -1)}], {.axis = 0, .keepdims = true});
  }
  return call.joint ? call.joint->total(own) : own;
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
  if (call.parameters.empty() && !call.joint) return;
  Array norm = xp::sqrt(squared_norm(call));
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
    Array drawn = xp::random::normal(0, 1, p.array.shape(), p.array.dtype(), p.array.device());
    noise.push_back(detail::dense_as(drawn, p.array));
    launch.add(p.array, p.grad, set).states.push_back(noise.back().operand());
  }
  launch.run();
}

void GradientLARS::operator()(const UpdateCall& call) {
  auto n = static_cast<std::int64_t>(call.parameters.size());
  std::vector<Array> arrays;  // parameter, gradient, parameter, ...
  for (const UpdatedParameter& p : call.parameters) arrays.insert(arrays.end(), {p.array, p.grad});
  if (arrays.empty()) return;
  Array sums = squared_sums(arrays);
  add_other_parts(sums, call, 2);
  Array norms = xp::sqrt(sums);
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

MovingAverage::MovingAverage(const Link& model, const Link& average, double decay) : decay(decay) {
  if (!(decay >= 0 && decay <= 1)) {
    throw ValueError(fmt::format("{}: a decay of {}, which is not from 0 to 1", name(), decay));
  }
  std::vector<NamedParameter> from = model.namedparams(), to = average.namedparams();
  auto path = [](const NamedParameter& named) { return named.path; };
  if (!std::ranges::equal(from, to, {}, path, path)) {
    throw ValueError(
        fmt::format("{}: the model and the average have not the same parameters; make "
                    "one by model.copy(CopyMode::copy)",
                    name()));
  }
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i].parameter.body() == to[i].parameter.body()) {
      throw ValueError(
          fmt::format("{}: {} of the model is that of the average, too; make it by "
                      "model.copy(CopyMode::copy), or with a Parameter of its own",
                      name(), from[i].path));
    }
    entries_.push_back({from[i].path.substr(1), from[i].parameter, to[i].parameter, {}});
  }
}

Array MovingAverage::Entry::prepare() {
  bool made = average.is_initialized();
  if (!made || average.device() != parameter.device()) {
    stay_eager("it makes or moves a moving average");
    average.to(parameter.device());
    average.initialize(parameter.shape());
    if (!made) average.array().assign(parameter.array());
  }
  if (!detail::lies_as(average.array(), parameter.array())) {
    stay_eager("it makes or moves a moving average");
    autograd::set_array(average, detail::dense_as(average.array(), parameter.array()));
  }
  if (itemsize(average.dtype()) >= 4) return average.array();
  if (!wide.defined() || wide.device() != parameter.device() ||
      !detail::lies_as(wide, parameter.array())) {
    stay_eager("it makes a float32 copy of a moving average");
    wide = (wide.defined() ? wide : average.array()).to(parameter.device()).astype(float32);
    wide = detail::dense_as(wide, parameter.array());
  }
  return wide;
}

void MovingAverage::operator()(const UpdateCall& call) {
  RowLaunch launch(name(), UpdateRuleId::moving_average, call.parameters.size());
  int set = launch.add_set([h = held(*this)] { return Values{1 - h->decay}; });
  std::vector<Array> averages;  // held until the launch
  for (Entry& entry : entries_) {
    auto updated = std::ranges::find(call.parameters, entry.parameter.body(),
                                     [](const UpdatedParameter& p) { return p.parameter.body(); });
    if (updated == call.parameters.end()) continue;
    averages.push_back(entry.prepare());
    operations::UpdateTarget& target = launch.add(averages.back(), updated->array, set);
    if (entry.wide.defined()) target.narrow = entry.average.array().operand();
    auto memory = [h = held(*this), &entry] {
      const Array& values = entry.average.array();
      return std::pair(values.storage().get(), entry.wide.storage().get());
    };
    if (ThreadState::current().recorder) {
      hold_recording_while([memory, before = memory()] { return memory() == before; });
    }
  }
  launch.run(call.enabled);
}

void MovingAverage::members(Visitor& v) {
  v.optional("decay", decay);
  for (Entry& entry : entries_) {
    if (!entry.average.is_initialized() || !v.reads(entry.path)) continue;
    Array values = entry.wide.defined() ? entry.wide : entry.average.array();
    v.computed(
        entry.path, [values] { return values; },
        [values](const Array& read) { return writing(values, read); });
  }
}

}  // namespace optimizer_hooks

}  // namespace rensa
