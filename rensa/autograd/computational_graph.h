// What a variable was computed by, as a picture: chainer.computational_graph.
//
//   auto graph = computational_graph::build_computational_graph({loss});
//   std::ofstream("graph.dot") << graph.dump();  // dot -Tsvg graph.dot -o graph.svg
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "rensa/autograd/variable.h"

namespace rensa::computational_graph {

/// Attributes of Graphviz: {{"shape", "box"}, {"fillcolor", "#E0E0E0"}}.
using Style = std::vector<std::pair<std::string, std::string>>;

struct GraphOptions {
  rensa::detail::NamedOptions named = {};
  /// Of variables.
  Style variable_style = {{"shape", "octagon"}, {"fillcolor", "#E0E0E0"}, {"style", "filled"}};
  /// Of functions.
  Style function_style = {{"shape", "record"}, {"fillcolor", "#6495ED"}, {"style", "filled"}};
  /// Which way forward goes: "TB" down, "BT" up, "LR" to the right, "RL" to the left.
  std::string rankdir = "TB";
  bool remove_variable = false;  // functions alone, with arrows from one to the next
  bool show_name = true;         // of variables that have one
  /// What variables are called, in place of their own names; of a model, namedparams().
  std::vector<std::pair<std::string, Variable>> names = {};
};

/// A variable or a function.
struct GraphNode {
  bool is_function = false;  // or a variable
  std::string name;          // of a function its label, of a variable its name or nothing
  /// Of a variable.
  Shape shape = {};
  Dtype dtype = Dtype::float32;  // of a variable
  Device device = {};            // of a variable

  /// "W: (10, 3), float32, cpu", or the function's name.
  std::string label(bool show_name = true) const;
};

/// The nodes of a graph and its arrows. It has what they looked like when it was built, and keeps
/// none of them alive.
class ComputationalGraph {
 public:
  /// The outputs first, then what leads to them, later functions before earlier ones.
  std::vector<GraphNode> nodes;
  /// Places in `nodes`, in the direction of forward.
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  GraphOptions options;  // what it was made with

  /// The graph in Graphviz's language, dot. The same graph always gives the same text.
  std::string dump() const;
};

/// All that `outputs` depend on: what backward() would walk over. What was computed under
/// no_backprop_mode, or of variables that require no gradient, has left no graph. Throws ValueError
/// for an undefined output and a `rankdir` that there is not. Does not wait.
ComputationalGraph build_computational_graph(const Variables& outputs, GraphOptions options = {});

}  // namespace rensa::computational_graph
