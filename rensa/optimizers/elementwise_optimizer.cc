// The kernel of an update that is given as text, and its numbers.
#include "rensa/optimizers/elementwise_optimizer.h"

#include <fmt/format.h>

#include "rensa/array/creation.h"
#include "rensa/core/update_rule_ids.h"
#include "rensa/kernel/elementwise_kernel.h"
#include "rensa/operations/runtime_kernel/runtime_kernel.h"
#include "rensa/optimizers/row_launch.h"

namespace rensa::optimizers {

namespace {

/// Whether an update may be left out is another kernel.
enum class Guard { none, enabled };

ElementwiseKernel make_kernel(const UpdateText& text, const std::vector<UpdateState>& states,
                              const std::vector<UpdateState>& numbers, Guard guard) {
  std::string outputs = "T param_", before = "typedef decltype(float() + param_) V;\n", after;
  before += "[[maybe_unused]] const V grad = grad_;\nV param = param_;\n";
  after += "param_ = param;\n";
  for (const UpdateState& state : states) {
    outputs += fmt::format(", T {}_", state.name);
    before += fmt::format("V {0} = {0}_;\n", state.name);
    after += fmt::format("{0}_ = {0};\n", state.name);
  }
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    before += fmt::format("[[maybe_unused]] const V {} = numbers_[{}];\n", numbers[k].name, k);
  }
  before += fmt::format("[[maybe_unused]] const V t = numbers_[{}];\n", numbers.size());
  std::string operation = before + "{\n" + text.operation + "\n}\n" + after;
  std::string inputs = "G grad_, raw float64 numbers_";
  if (guard == Guard::enabled) {
    inputs += ", raw float64 enabled_";
    operation = "if (enabled_[0] != 0) {\n" + operation + "}\n";
  }
  ElementwiseKernel::Options options;
  options.preamble = text.preamble;
  return {inputs, outputs, operation, text.name, std::move(options)};
}

class TextAlgorithm final : public OptimizerAlgorithm {
 public:
  explicit TextAlgorithm(const UpdateText& text)
      : name_(operations::keep_name(text.name)),
        states_(parse_update_states(text.states)),
        numbers_(parse_update_states(text.hyperparameters)),
        plain_(make_kernel(text, states_, numbers_, Guard::none)),
        guarded_(make_kernel(text, states_, numbers_, Guard::enabled)) {}

  const char* name() const override { return name_; }
  std::vector<UpdateState> states() const override { return states_; }
  NamedNumbers hyperparameters() override {
    NamedNumbers all;
    for (UpdateState& number : numbers_) all.emplace_back(number.name, &number.initial);
    return all;
  }

  bool asks_anew() const override { return true; }
  bool heeds_enabled() const override { return true; }

  void update(const UpdateCall& call) override {
    RowLaunch launch(name_, UpdateRuleId::number);
    std::vector<Array> numbers, elements;
    for (const UpdatedParameter& p : call.parameters) {
      numbers.push_back(add_numbers(launch, p, elements));
    }
    launch.run();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const UpdatedParameter& p = call.parameters[i];
      std::vector<KernelInput> arguments = {p.grad, numbers[i]};
      if (call.enabled.defined()) arguments.emplace_back(call.enabled);
      arguments.emplace_back(p.array);
      for (const Array& state : p.rule->states) arguments.emplace_back(state);
      (call.enabled.defined() ? guarded_ : plain_).call(arguments);
    }
  }

 private:
  /// An array for the hyperparameters and t on the parameter's device, asked anew by each replay,
  /// which `launch` fills; `elements` holds its elements until then.
  Array add_numbers(RowLaunch& launch, const UpdatedParameter& p, std::vector<Array>& elements) {
    auto algorithm = std::static_pointer_cast<TextAlgorithm>(shared_from_this());
    auto count = static_cast<std::int64_t>(numbers_.size()) + 1;
    Array all = xp::empty({count}, float64, p.array.device());
    for (std::int64_t k = 0; k < count; ++k) {
      elements.push_back(all[{Slice(k, k + 1)}]);
      int set = launch.add_set([algorithm, rule = p.rule, k] {
        return std::vector<double>{algorithm->number(*rule, static_cast<std::size_t>(k))};
      });
      launch.add(elements.back(), elements.back(), set);
    }
    return all;
  }

  double number(const UpdateRule& rule, std::size_t k) const {
    if (k == numbers_.size()) return static_cast<double>(rule.t);
    for (const auto& [name, value] : rule.own_hyperparams()) {
      if (name == numbers_[k].name) return value;
    }
    return numbers_[k].initial;
  }

  const char* name_;
  std::vector<UpdateState> states_, numbers_;
  ElementwiseKernel plain_, guarded_;
};

}  // namespace

ElementwiseOptimizer::ElementwiseOptimizer(const UpdateText& text)
    : Optimizer(std::make_shared<TextAlgorithm>(text)) {}

}  // namespace rensa::optimizers
