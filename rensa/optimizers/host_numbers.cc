// The walks that collect them.
#include "rensa/optimizers/host_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rensa/device/launcher.h"
#include "rensa/optimizers/row_launch.h"

namespace rensa {

namespace {

using Numbers = std::vector<std::string>;

/// "l1/ratio is 0.5", of members that stand somewhere: no function is called.
class HostNumbers final : public PathVisitor {
 public:
  HostNumbers(std::string prefix, Numbers& all) : PathVisitor(std::move(prefix)), all_(all) {}
  void value(std::string_view name, const Access& access) override {
    if (!access.place || access.kind == kind_of<Array>()) return;
    std::visit(
        [&](const auto& value) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, Array>) {
            all_.push_back(fmt::format("{} is {}", path(name), value));
          }
        },
        access.get());
  }
  void counter(std::string_view, Counter&) override {}
  void generator(std::string_view, xp::random::Generator&) override {}

 private:
  Numbers& all_;
};

void add_shown(const std::string& prefix, const Members& members, Numbers& all) {
  HostNumbers walk(prefix + "/", all);
  members.show(walk);
}

void add_algorithm(OptimizerAlgorithm& algorithm, Numbers& all) {
  for (const auto& [name, value] : algorithm.hyperparameters()) {
    all.push_back(fmt::format("{}/{} is {}", algorithm.name(), name, *value));
  }
  add_shown(algorithm.name(), algorithm, all);
}

/// What an update has been made of; what has gone since is passed by.
struct Parts {
  std::weak_ptr<OptimizerState> optimizer;
  std::vector<std::weak_ptr<UpdateRule>> rules;

  template <class F> void each_hook(const OptimizerState& state, const F& use) const {
    for (const auto& hook : state.hooks) use(*hook);
    for (const auto& rule : rules) {
      auto held = rule.lock();
      if (!held) continue;
      for (const auto& hook : held->hooks()) use(*hook);
    }
  }

  Numbers all() const {
    Numbers all;
    auto state = optimizer.lock();
    if (!state) return all;
    add_algorithm(*state->algorithm, all);
    each_hook(*state, [&](const OptimizerHook& hook) { add_shown(hook.name(), hook, all); });
    if (state->target && state->target->link) {
      add_shown(state->target->link->type_name(), *state->target->link, all);
    }
    return all;
  }

  /// Those that replays do not ask anew.
  Numbers recorded() const {
    RecorderScope apart(nullptr);
    Numbers all;
    auto state = optimizer.lock();
    if (!state) return all;
    if (!state->algorithm->asks_anew()) {
      add_algorithm(*state->algorithm, all);
      for (const auto& rule : rules) {
        auto held = rule.lock();
        if (!held) continue;
        for (const auto& [name, value] : held->own_hyperparams()) {
          all.push_back(fmt::format("{} is {}", name, value));
        }
      }
    }
    each_hook(*state, [&](const OptimizerHook& hook) {
      if (!hook.asks_anew()) add_shown(hook.name(), hook, all);
    });
    return all;
  }
};

}  // namespace

void watch_numbers(const UpdateCall& call, const std::shared_ptr<OptimizerState>& optimizer) {
  Recorder* recorder = ThreadState::current().recorder;
  if (!recorder) return;
  auto parts = std::make_shared<Parts>(Parts{optimizer, {}});
  for (const UpdatedParameter& p : call.parameters) parts->rules.emplace_back(p.rule);
  recorder->watch([parts] { return parts->all(); });
  Numbers recorded = parts->recorded();
  if (recorded.empty()) return;
  hold_recording_while(
      [parts, recorded = std::move(recorded)] { return parts->recorded() == recorded; });
}

bool shows_anything(const Members& members) {
  struct Walk final : Visitor {
    void parameter(std::string_view, Parameter&) override { found = true; }
    void persistent(std::string_view, Persistent&) override { found = true; }
    void state(std::string_view, State&) override { found = true; }
    void value(std::string_view, const Access&) override { found = true; }
    bool found = false;
  } walk;
  members.show(walk);
  return walk.found;
}

}  // namespace rensa
