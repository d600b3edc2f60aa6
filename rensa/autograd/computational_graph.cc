// Walking over graphs, and writing them in Graphviz's language.
#include "rensa/autograd/computational_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <set>
#include <unordered_map>

#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"

namespace rensa::computational_graph {

namespace {

/// A walk from the outputs to the leaves, highest rank first.
class Walk {
 public:
  explicit Walk(ComputationalGraph& graph) : graph_(graph) {
    for (const auto& [name, variable] : graph.options.names) {
      if (variable.defined()) names_.emplace(variable.node().get(), name);
    }
  }

  void run(const Variables& outputs) {
    for (const Variable& output : outputs) {
      if (!output.defined()) {
        throw ValueError("build_computational_graph: an output is undefined");
      }
      add(output.node());
    }
    while (!pending_.empty()) {
      std::shared_ptr<FunctionNode> function = pending_.top().function;
      std::size_t place = pending_.top().place;
      pending_.pop();
      for (const auto& input : function->inputs()) graph_.edges.emplace_back(add(input), place);
    }
  }

 private:
  struct Candidate {
    int rank;
    std::size_t place;
    std::shared_ptr<FunctionNode> function;
    bool operator<(const Candidate& other) const {
      return rank != other.rank ? rank < other.rank : place > other.place;
    }
  };

  std::size_t add(const std::shared_ptr<VariableNode>& node) {
    auto [known, fresh] = places_.try_emplace(node.get(), graph_.nodes.size());
    if (!fresh) return known->second;
    std::size_t place = known->second;
    graph_.nodes.push_back({false, name_of(*node), node->shape, node->dtype, node->device});
    if (node->creator) graph_.edges.emplace_back(add(node->creator), place);
    return place;
  }
  std::size_t add(const std::shared_ptr<FunctionNode>& function) {
    auto [known, fresh] = places_.try_emplace(function.get(), graph_.nodes.size());
    if (!fresh) return known->second;
    std::size_t place = known->second;
    graph_.nodes.push_back({true, function->name()});
    pending_.push({function->rank(), place, function});
    return place;
  }
  std::string name_of(const VariableNode& node) const {
    if (auto given = names_.find(&node); given != names_.end()) return given->second;
    auto body = node.body.lock();
    return body ? body->name : "";
  }

  ComputationalGraph& graph_;
  std::unordered_map<const VariableNode*, std::string> names_;
  std::unordered_map<const void*, std::size_t> places_;
  std::priority_queue<Candidate> pending_;
};

/// Between quotes of dot. Labels of records give some characters a meaning.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (std::string_view("\\\"{}|<>").find(c) != std::string_view::npos) out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + '"';
}

std::string id_of(const GraphNode& node, std::size_t place) {
  return (node.is_function ? "f" : "v") + std::to_string(place);
}

}  // namespace

std::string GraphNode::label(bool show_name) const {
  if (is_function) return name;
  std::string looks = fmt::format("{}, {}", dtype_name(dtype), device.str());
  if (shape.ndim() > 0) looks = shape.str() + ", " + looks;
  return show_name && !name.empty() ? name + ": " + looks : looks;
}

std::string ComputationalGraph::dump() const {
  std::string text = fmt::format("digraph graphname {{\nrankdir={};\n", options.rankdir);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const GraphNode& node = nodes[i];
    if (!node.is_function && options.remove_variable) continue;
    text += fmt::format("{} [label={}", id_of(node, i), in_quotes(node.label(options.show_name)));
    for (const auto& [key, value] :
         node.is_function ? options.function_style : options.variable_style) {
      text += fmt::format(", {}={}", key, in_quotes(value));
    }
    text += "];\n";
  }
  std::set<std::pair<std::size_t, std::size_t>> drawn;
  auto arrow = [&](std::size_t from, std::size_t to) {
    if (!drawn.emplace(from, to).second) return;
    text += fmt::format("{} -> {};\n", id_of(nodes[from], from), id_of(nodes[to], to));
  };
  if (!options.remove_variable) {
    for (auto [from, to] : edges) arrow(from, to);
    return text + "}\n";
  }
  std::unordered_map<std::size_t, std::size_t> creators;  // of variables
  for (auto [from, to] : edges) {
    if (nodes[from].is_function) creators[to] = from;
  }
  for (auto [from, to] : edges) {
    auto creator = creators.find(from);
    if (nodes[to].is_function && creator != creators.end()) arrow(creator->second, to);
  }
  return text + "}\n";
}

ComputationalGraph build_computational_graph(const Variables& outputs, GraphOptions options) {
  const std::string& way = options.rankdir;
  if (way != "TB" && way != "BT" && way != "LR" && way != "RL") {
    throw ValueError(
        fmt::format("build_computational_graph: the rankdir \"{}\"; give TB, BT, LR or RL", way));
  }
  ComputationalGraph graph;
  graph.options = std::move(options);
  Walk(graph).run(outputs);
  graph.options.names.clear();  // they would keep variables alive
  return graph;
}

}  // namespace rensa::computational_graph
