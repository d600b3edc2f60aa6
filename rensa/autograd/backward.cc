// Backward: gradients flow from the outputs to the leaves, function by function, highest rank
// first.
#include "rensa/autograd/backward.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory_resource>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "rensa/array/internal.h"
#include "rensa/autograd/autocast.h"
#include "rensa/autograd/function_hook.h"
#include "rensa/autograd/function_node.h"
#include "rensa/autograd/gradient_watch.h"
#include "rensa/autograd/graph.h"
#include "rensa/autograd/parameter.h"
#include "rensa/core/error.h"
#include "rensa/core/thread_state.h"

namespace rensa {

namespace {

/// One backward pass over a graph. Who derives from it says which gradients are wanted and what
/// becomes of them. It holds what it has still to do: a function that nobody else holds goes once
/// its gradients are there, and what it kept for them with it.
class BackwardPass {
 public:
  virtual ~BackwardPass() = default;

  /// Whether this thread runs one that fills leaves.
  static bool fills_leaves_now() { return running && running->fills_leaves(); }

  void seed(const Variable& output, const Variable& gradient) {
    accumulate(output.node(), gradient);
  }

  void run() {
    Running here(this);
    GradientWatch* watch = fills_leaves() ? GradientWatchScope::current() : nullptr;
    while (!functions_.empty()) {
      std::pop_heap(functions_.begin(), functions_.end());
      std::shared_ptr<FunctionNode> function = std::move(functions_.back().function);
      functions_.pop_back();
      step(*function);
      if (watch) show_complete(*watch);
    }
    for (const auto& leaf : leaves_) {
      auto found = gradients_.find(leaf);
      if (found != gradients_.end()) finish(leaf.get(), found->second);  // else it was taken
    }
    if (watch && !here.previous) watch->end();
  }

 protected:
  virtual bool wanted(const VariableNode& node) = 0;
  /// Whether gradients go into the variables themselves.
  virtual bool fills_leaves() const { return false; }
  /// Whether a leaf's gradient is for the leaf alone, so that a watch may take it.
  virtual bool shows(const VariableNode&) const { return true; }
  /// Whether a function's inputs get no gradients.
  virtual bool stops_at(const FunctionNode&) const { return false; }
  /// All of `node`'s gradient has arrived.
  virtual void finish(VariableNode* node, const Variable& gradient) = 0;

  // Small graphs stay off the heap.
  std::array<std::byte, 8192> buffer_;
  std::pmr::monotonic_buffer_resource memory_{buffer_.data(), buffer_.size()};

 private:
  struct Candidate {
    int rank, order;
    std::shared_ptr<FunctionNode> function;
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank < other.rank : order > other.order;
    }
  };

  void step(FunctionNode& function) {
    Variables grad_outputs(function.outputs().size());
    Device device;
    for (std::size_t i = 0; i < grad_outputs.size(); ++i) {
      auto node = function.outputs()[i].lock();
      auto found = node ? gradients_.find(node) : gradients_.end();
      if (found == gradients_.end()) continue;
      grad_outputs[i] = std::move(found->second);
      gradients_.erase(found);
      finish(node.get(), grad_outputs[i]);
      device = grad_outputs[i].device();
    }
    Indexes targets;
    targets.reserve(function.inputs().size());
    for (std::size_t i = 0; i < function.inputs().size(); ++i) {
      if (wanted(*function.inputs()[i])) targets.push_back(static_cast<int>(i));
    }
    if (targets.empty() || stops_at(function)) return;
    Variables gradients;
    {
      autograd::CurrentDevice on(device);
      autograd::CalledHooks hooked(&FunctionHook::backward_preprocess,
                                   &FunctionHook::backward_postprocess, function, grad_outputs);
      gradients = function.backward(targets, grad_outputs);
      hooked.end();
    }
    distribute(function, targets, gradients);
  }

  void distribute(const FunctionNode& function, const Indexes& targets,
                  const Variables& gradients) {
    bool only_targets = gradients.size() == targets.size();
    if (!only_targets && gradients.size() != function.inputs().size()) {
      throw ValueError(fmt::format("backward of {}: {} gradients for {} inputs, {} of them asked",
                                   function.name(), gradients.size(), function.inputs().size(),
                                   targets.size()));
    }
    for (std::size_t k = 0; k < targets.size(); ++k) {
      auto i = static_cast<std::size_t>(targets[k]);
      const Variable& gradient = gradients[only_targets ? k : i];
      if (!gradient.defined()) continue;
      const std::shared_ptr<VariableNode>& node = function.inputs()[i];
      const Array& g = gradient.array();
      if (!(g.shape() == node->shape) || g.dtype() != node->dtype || g.device() != node->device) {
        std::string name = fmt::format("backward of {}, input {}", function.name(), i);
        autograd::check_gradient(name.c_str(), node->shape, node->dtype, node->device, g);
      }
      if (config().debug) autograd::check_nan("gradient", function.name(), function.inputs(), {g});
      accumulate(node, gradient);
    }
  }

  /// Shows the leaves whose users are done: no function that is still to come has a higher rank
  /// than the next one.
  void show_complete(GradientWatch& watch) {
    int next = functions_.empty() ? -1 : functions_.front().rank;
    for (; seen_leaves_ < leaves_.size(); ++seen_leaves_) {
      int user = leaves_[seen_leaves_]->lowest_user.load(std::memory_order_relaxed);
      open_leaves_.emplace_back(user, seen_leaves_);
      std::push_heap(open_leaves_.begin(), open_leaves_.end());
    }
    while (!open_leaves_.empty() && open_leaves_.front().first > next) {
      const std::shared_ptr<VariableNode>& leaf = leaves_[open_leaves_.front().second];
      auto body = leaf->body.lock();
      if (body && shows(*leaf) && watch.take(body, gradients_.at(leaf))) {
        if (body->parameter) autograd::note_gradient(body);
        gradients_.erase(leaf);
      }
      std::pop_heap(open_leaves_.begin(), open_leaves_.end());
      open_leaves_.pop_back();
    }
  }

  // The first gradient is taken as it is.
  void accumulate(const std::shared_ptr<VariableNode>& node, const Variable& gradient) {
    auto [entry, first] = gradients_.try_emplace(node, gradient);
    if (!first) {
      entry->second = entry->second + gradient;
      return;
    }
    if (!node->creator) {
      leaves_.push_back(node);
    } else if (!is_candidate(*node->creator, node)) {
      push(node->creator);
    }
  }

  // A function waits for its turn as soon as one of its outputs has a gradient.
  bool is_candidate(const FunctionNode& function,
                    const std::shared_ptr<VariableNode>& except) const {
    if (function.outputs().size() == 1) return false;
    for (const auto& output : function.outputs()) {
      auto node = output.lock();
      if (node && node != except && gradients_.contains(node)) return true;
    }
    return false;
  }

  void push(const std::shared_ptr<FunctionNode>& function) {
    functions_.push_back({function->rank(), pushed_++, function});
    std::push_heap(functions_.begin(), functions_.end());
  }

  static thread_local const BackwardPass* running;
  struct Running {
    explicit Running(const BackwardPass* pass) : previous(std::exchange(running, pass)) {}
    ~Running() { running = previous; }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;
    const BackwardPass* previous;
  };

  std::pmr::unordered_map<std::shared_ptr<VariableNode>, Variable> gradients_{&memory_};
  std::pmr::vector<Candidate> functions_{&memory_};
  // In the order they were reached.
  std::pmr::vector<std::shared_ptr<VariableNode>> leaves_{&memory_};
  // Where somebody watches: how many of them have been looked at, and which of these are not
  // complete, by their lowest users.
  std::size_t seen_leaves_ = 0;
  std::pmr::vector<std::pair<int, std::size_t>> open_leaves_{&memory_};
  int pushed_ = 0;
};

thread_local const BackwardPass* BackwardPass::running = nullptr;

/// Variable::backward: gradients go to the variables themselves.
class IntoLeaves : public BackwardPass {
 public:
  explicit IntoLeaves(bool retain_grad) : retain_grad_(retain_grad) {}
  /// Memory that a leaf's gradient must not share.
  void add_owner(const Array& gradient) {
    owned_.insert_or_assign(gradient.storage().get(), gradient.storage());
  }

 protected:
  bool fills_leaves() const override { return true; }

  // A leaf that nobody holds has nowhere to put a gradient, and none is computed.
  bool wanted(const VariableNode& node) override {
    return node.requires_grad && (node.creator || !node.body.expired());
  }

  void finish(VariableNode* node, const Variable& gradient) override {
    bool is_leaf = !node->creator;
    if (!is_leaf && !retain_grad_) return;
    auto body = node->body.lock();
    if (!body) return;
    Variable total = gradient;
    if (is_leaf && body->grad) {
      total = autograd::added_to_grad(body, gradient);
    } else if (is_leaf && !has_graph(gradient)) {
      total = owned(beside(gradient, body->array));
    }
    add_owner(total.array());
    if (body->parameter) autograd::note_gradient(body);
    autograd::store_grad(body, std::move(total));
  }

  /// Whether it is to be differentiated: one that was given may be a leaf.
  static bool has_graph(const Variable& gradient) {
    return gradient.creator() || (config().enable_backprop && gradient.requires_grad());
  }

  // A user, or an optimizer's hook, may change a leaf's gradient in place: its elements lie
  // together, and it shares memory with no other gradient of this pass. Most are so already.
  Variable owned(const Variable& gradient) {
    const Array& g = gradient.array();
    if (rensa::detail::is_dense(g) && !owned_.contains(g.storage().get())) return gradient;
    return constant(g.copy('K'));
  }

  // And it lies as the leaf does, so that an update reads both as one line of elements.
  static Variable beside(const Variable& gradient, const Array& leaf) {
    const Array& g = gradient.array();
    return rensa::detail::lies_as(g, leaf) ? gradient : constant(rensa::detail::dense_as(g, leaf));
  }

 private:
  // With handles: other memory at the address of one that is gone would be taken for it, and what a
  // pass does must not depend on addresses.
  std::pmr::unordered_map<const Storage*, StoragePtr> owned_{&memory_};
  bool retain_grad_;
};

/// The part of such a pass that a function runs within, up to its inputs.
class Within final : public IntoLeaves {
 public:
  explicit Within(const Variables& inputs) : IntoLeaves(false) {
    for (const Variable& input : inputs) {
      results_.try_emplace(input.node().get());
      if (input.creator()) entrances_.insert(input.creator().get());
    }
  }
  const Variable& result(const Variable& input) const { return results_.at(input.node().get()); }

 private:
  bool shows(const VariableNode& node) const override { return !results_.contains(&node); }
  bool stops_at(const FunctionNode& function) const override {
    return entrances_.contains(&function);
  }
  void finish(VariableNode* node, const Variable& gradient) override {
    auto found = results_.find(node);
    if (found == results_.end()) return IntoLeaves::finish(node, gradient);
    found->second = has_graph(gradient) ? gradient : owned(gradient);
    add_owner(found->second.array());
  }

  std::unordered_map<const VariableNode*, Variable> results_;
  std::unordered_set<const FunctionNode*> entrances_;
};

/// grad(): only what lies on a path between `inputs` and the outputs, and the results are
/// collected.
class OnPaths final : public BackwardPass {
 public:
  OnPaths(const Variables& outputs, const Variables& inputs) {
    std::unordered_map<const VariableNode*, std::vector<FunctionNode*>> users;
    find_users(outputs, users);
    std::vector<const VariableNode*> pending;
    for (const Variable& input : inputs) {
      results_.try_emplace(input.node().get());
      pending.push_back(input.node().get());
    }
    while (!pending.empty()) {
      const VariableNode* node = pending.back();
      pending.pop_back();
      if (!on_path_.insert(node).second) continue;
      auto found = users.find(node);
      if (found == users.end()) continue;
      for (FunctionNode* function : found->second) {
        for (const auto& output : function->outputs()) {
          if (auto y = output.lock()) pending.push_back(y.get());
        }
      }
    }
  }

  const Variable& result(const Variable& input) const { return results_.at(input.node().get()); }

 private:
  // users[x]: the functions below `outputs` that take x.
  static void find_users(
      const Variables& outputs,
      std::unordered_map<const VariableNode*, std::vector<FunctionNode*>>& users) {
    std::unordered_set<FunctionNode*> seen;
    std::vector<FunctionNode*> pending;
    auto visit = [&](FunctionNode* function) {
      if (function && seen.insert(function).second) pending.push_back(function);
    };
    for (const Variable& output : outputs) visit(output.node()->creator.get());
    while (!pending.empty()) {
      FunctionNode* function = pending.back();
      pending.pop_back();
      for (const auto& input : function->inputs()) {
        if (!input->requires_grad) continue;
        users[input.get()].push_back(function);
        visit(input->creator.get());
      }
    }
  }

  bool wanted(const VariableNode& node) override {
    return node.requires_grad && on_path_.contains(&node);
  }
  void finish(VariableNode* node, const Variable& gradient) override {
    auto found = results_.find(node);
    if (found != results_.end()) found->second = gradient;
  }

  std::unordered_set<const VariableNode*> on_path_;
  std::unordered_map<const VariableNode*, Variable> results_;
};

Variable ones_like(const Variable& y, double scale) {
  return constant(xp::full(y.shape(), scale, y.dtype(), y.device()));
}

// What backward starts from at `output`.
Variable seed_of(const Variable& output, double loss_scale) {
  Variable seed = output.grad_var();
  if (seed.defined()) return seed;
  if (output.size() > 1) {
    throw ValueError(fmt::format(
        "backward: the variable {} has more than one element and no gradient to start from; sum it "
        "to a loss, or call set_grad first",
        output.array().view().describe()));
  }
  return ones_like(output, loss_scale);
}

[[noreturn]] void throw_no_graph(const Variables& outputs) {
  if (outputs.empty()) throw ValueError("backward: no variable to start from");
  const Variable& y = outputs[0];
  const char* why =
      !autograd::is_differentiable(y.dtype())
          ? "a dtype without gradients; cast what it is made of to a floating one"
      : !y.requires_grad()
          ? "made of variables that require no gradient, such as constants and integers"
          : "a variable that no function gave, or one made under no_backprop_mode";
  throw ValueError(fmt::format("backward: nothing leads back from {}: it is {}",
                               y.array().view().describe(), why));
}

}  // namespace

namespace autograd {

Variables gradients_within(const Variables& outputs, const Variables& grad_outputs,
                           const Variables& inputs) {
  if (!BackwardPass::fills_leaves_now()) {
    return grad(outputs, inputs, grad_outputs, config().enable_backprop);
  }
  Within pass(inputs);
  for (const Variable& seed : grad_outputs) pass.add_owner(seed.array());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    pass.seed(outputs[i], grad_outputs[i]);
  }
  pass.run();
  Variables results;
  for (const Variable& input : inputs) results.push_back(pass.result(input));
  return results;
}

}  // namespace autograd

void backward(Variables outputs, const BackwardOptions& options) {
  UsingConfig<bool> graph(&Config::enable_backprop, options.enable_double_backprop);
  Autocast off(none);  // forward has decided
  IntoLeaves pass(options.retain_grad);
  bool any = false;
  for (const Variable& output : outputs) any = any || output.creator();
  if (!any) throw_no_graph(outputs);
  for (const Variable& output : outputs) {
    if (!output.creator()) continue;
    Variable seed = seed_of(output, options.loss_scale);
    pass.add_owner(seed.array());
    if (output.body()->grad) output.cleargrad();
    pass.seed(output, seed);
  }
  outputs.clear();
  pass.run();
}

Variables grad(const Variables& outputs, const Variables& inputs, const Variables& grad_outputs,
               bool enable_double_backprop) {
  if (!grad_outputs.empty() && grad_outputs.size() != outputs.size()) {
    throw ValueError(
        fmt::format("grad: {} outputs and {} grad_outputs", outputs.size(), grad_outputs.size()));
  }
  UsingConfig<bool> graph(&Config::enable_backprop, enable_double_backprop);
  Autocast off(none);  // forward has decided
  OnPaths pass(outputs, inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Variable& y = outputs[i];
    Variable seed = i < grad_outputs.size() ? grad_outputs[i] : Variable();
    if (!seed.defined()) {
      seed = ones_like(y, 1);
    } else {
      autograd::check_gradient("grad", y.shape(), y.dtype(), y.device(), seed.array());
    }
    pass.seed(y, seed);
  }
  pass.run();
  Variables results;
  for (const Variable& input : inputs) results.push_back(pass.result(input));
  return results;
}

}  // namespace rensa
