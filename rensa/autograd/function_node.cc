// FunctionNode: applying a function, linking it into the graph, and taking graphs down.
#include "rensa/autograd/function_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "rensa/autograd/autocast.h"
#include "rensa/autograd/function_hook.h"
#include "rensa/autograd/graph.h"
#include "rensa/core/error.h"

namespace rensa {

namespace autograd {

namespace {

/// The functions that led to `inputs`, from a leaf on: "leaf -> linear -> exp". Of several inputs
/// it goes back by the first that a function gave, and eight functions far.
std::string way_to(const std::vector<std::shared_ptr<VariableNode>>& inputs) {
  std::string way;
  const auto* nodes = &inputs;
  for (int functions = 0; !nodes->empty(); ++functions) {
    auto given =
        std::find_if(nodes->begin(), nodes->end(), [](const auto& n) { return n->creator; });
    if (given == nodes->end()) {
      auto body = nodes->front()->body.lock();
      return (body && !body->name.empty() ? body->name : "leaf") + " -> " + way;
    }
    if (functions == 8) return "... -> " + way;
    const FunctionNode& function = *(*given)->creator;
    way.insert(0, std::string(function.name()) + " -> ");
    nodes = &function.inputs();
  }
  return way;
}

}  // namespace

void check_nan(const char* when, const char* function,
               const std::vector<std::shared_ptr<VariableNode>>& inputs,
               const std::vector<Array>& arrays) {
  for (const Array& a : arrays) {
    if (!a.defined() || dtype_kind(a.dtype()) != 'f') continue;
    if (xp::isnan(a).any().item<bool>()) {
      throw ValueError(fmt::format("{}: NaN in the {} of this function: {}; on the way {}{}",
                                   function, when, a.view().describe(), way_to(inputs), function));
    }
  }
}

}  // namespace autograd

namespace {

const Storage* array_storage(const VariableBody& body) { return body.array.storage().get(); }

/// Threads may give one leaf to functions at the same time.
void note_user(VariableNode& leaf, int rank) {
  int lowest = leaf.lowest_user.load(std::memory_order_relaxed);
  while (rank < lowest &&
         !leaf.lowest_user.compare_exchange_weak(lowest, rank, std::memory_order_relaxed)) {}
}

// The variable at `node`, or a new one of `array` when nobody holds it any longer.
Variable variable_at(const std::shared_ptr<VariableNode>& node, const Array& array) {
  if (auto body = node->body.lock()) return Variable(std::move(body));
  return Variable(autograd::make_body(array, node));
}

}  // namespace

// A node is let go only after what it holds has been moved into a list: the depth of the graph
// never becomes depth of the stack.
FunctionNode::~FunctionNode() {
  std::vector<std::shared_ptr<VariableNode>> pending = std::move(inputs_);
  while (!pending.empty()) {
    std::shared_ptr<VariableNode> node = std::move(pending.back());
    pending.pop_back();
    if (node.use_count() != 1) continue;
    std::shared_ptr<FunctionNode> creator = std::move(node->creator);
    if (!creator || creator.use_count() != 1) continue;
    for (auto& input : creator->inputs_) pending.push_back(std::move(input));
    creator->inputs_.clear();
  }
}

Variables FunctionNode::apply(const Variables& inputs) {
  if (applied_) {
    throw ValueError(fmt::format("{}: a function node is applied once; make another", name_));
  }
  applied_ = true;
  return config().autocast ? run(autograd::autocast(name_, inputs)) : run(inputs);
}

Variables FunctionNode::run(const Variables& inputs) {
  ThreadState& thread = ThreadState::current();
  Arrays arrays;
  arrays.reserve(inputs.size());
  bool requires_grad = false;
  for (const Variable& input : inputs) {
    if (!input.defined()) {
      throw ValueError(fmt::format("{}: input {} is undefined", name_, arrays.size()));
    }
    arrays.push_back(input.array());
    const VariableNode& node = *input.node();
    requires_grad |= node.requires_grad;
    if (thread.recorder && input.body()->parameter) {
      autograd::bind_recording(input.body(), array_storage);
    }
  }
  Arrays outputs;
  {
    autograd::CurrentDevice on(arrays.empty() ? thread.device : arrays[0].device());
    autograd::CalledHooks hooked(&FunctionHook::forward_preprocess,
                                 &FunctionHook::forward_postprocess, *this, inputs);
    outputs = forward(arrays);
    hooked.result(outputs);
    hooked.end();
  }
  if (thread.config.debug) {
    std::vector<std::shared_ptr<VariableNode>> nodes;
    for (const Variable& input : inputs) nodes.push_back(input.node());
    autograd::check_nan("forward result", name_, nodes, outputs);
  }

  Variables results;
  results.reserve(outputs.size());
  for (const Array& output : outputs) results.emplace_back(output, requires_grad);
  if (requires_grad && thread.config.enable_backprop) link(inputs, arrays, results);
  return results;
}

const Array& KeptArray::get(const char* function, const char* what) const {
  if (!array_.defined() || array_.storage()->version() == version_) return array_;
  throw ValueError(fmt::format(
      "backward of {}: its {} {} was changed in place after the forward pass, which needs the old "
      "values; change a copy instead (x.copy()), or change it after backward",
      function, what, array_.view().describe()));
}

void FunctionNode::link(const Variables& inputs, Arrays& arrays, const Variables& results) {
  inputs_.reserve(inputs.size());
  for (const Variable& input : inputs) {
    rank_ = std::max(rank_, input.node()->rank);
    inputs_.push_back(input.node());
  }
  for (const auto& input : inputs_) {
    if (!input->creator) note_user(*input, rank_);
  }
  outputs_.reserve(results.size());
  std::shared_ptr<FunctionNode> self = shared_from_this();
  for (const Variable& result : results) {
    VariableNode& node = *result.node();
    node.creator = self;
    node.rank = rank_ + 1;
    outputs_.push_back(result.node());
  }
  retained_.reserve(retained_inputs_.size() + retained_outputs_.size());
  for (int i : retained_inputs_) retained_.emplace_back(arrays.at(static_cast<std::size_t>(i)));
  for (int i : retained_outputs_) {
    retained_.emplace_back(results.at(static_cast<std::size_t>(i)).array());
  }
}

Variables FunctionNode::get_retained_inputs() {
  Variables result;
  result.reserve(retained_inputs_.size());
  for (int i : retained_inputs_) {
    const Array& array = retained_[result.size()].get(name_, "input");
    result.push_back(variable_at(inputs_[static_cast<std::size_t>(i)], array));
  }
  return result;
}

Variables FunctionNode::get_retained_outputs() {
  Variables result;
  result.reserve(retained_outputs_.size());
  for (int i : retained_outputs_) {
    const Array& array = retained_[retained_inputs_.size() + result.size()].get(name_, "output");
    std::weak_ptr<VariableNode>& output = outputs_[static_cast<std::size_t>(i)];
    auto node = output.lock();
    if (!node) {  // nobody held the output: it comes back, at the same place of the graph
      node = std::make_shared<VariableNode>();
      autograd::describe(*node, array);
      node->creator = shared_from_this();
      node->rank = rank_ + 1;
      output = node;
    }
    result.push_back(variable_at(node, array));
  }
  return result;
}

void FunctionNode::unchain() {
  auto self = shared_from_this();  // the outputs may hold the last handle
  for (const auto& output : outputs_) {
    if (auto node = output.lock()) {
      node->creator.reset();
      node->rank = 0;
    }
  }
  inputs_.clear();
  retained_.clear();
}

KeptArray::KeptArray(Array array)
    : array_(std::move(array)), version_(array_.defined() ? array_.storage()->version() : 0) {}

FunctionNode::FunctionNode(const char* name) : name_(name) {}

std::optional<FunctionAttributes> FunctionNode::attributes() const { return std::nullopt; }

}  // namespace rensa
