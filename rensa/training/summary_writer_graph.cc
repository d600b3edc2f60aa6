// Graphs of event files: TensorFlow's GraphDef. The numbers of fields are those of its graph.proto
// and attr_value.proto.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "rensa/core/utf8.h"
#include "rensa/serializers/protobuf.h"
#include "rensa/training/summary_writer_internal.h"

namespace rensa::training {

using computational_graph::ComputationalGraph;
using computational_graph::GraphNode;
using serializers::ProtobufWriter;

namespace {

/// TensorFlow's number of a dtype, DT_FLOAT and so on; 0, which is none, where it has none.
int number_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::float32: return 1;
    case Dtype::float64: return 2;
    case Dtype::int32: return 3;
    case Dtype::uint8: return 4;
    case Dtype::int16: return 5;
    case Dtype::int8: return 6;
    case Dtype::complex64: return 8;
    case Dtype::int64: return 9;
    case Dtype::bool_: return 10;
    case Dtype::bfloat16: return 14;
    case Dtype::uint16: return 17;
    case Dtype::complex128: return 18;
    case Dtype::float16: return 19;
    case Dtype::uint32: return 22;
    case Dtype::uint64: return 23;
  }
  return 0;
}

/// A name as nodes have them: letters, digits, ". _ - /", no '/' at the beginning.
std::string node_name(std::string name, const char* otherwise) {
  name.erase(0, name.find_first_not_of('/'));
  for (char& c : name) {
    bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                c == '.' || c == '_' || c == '-' || c == '/';
    if (!fine) c = '_';
  }
  return name.empty() ? otherwise : name;
}

class GraphMessage {
 public:
  explicit GraphMessage(const ComputationalGraph& graph) : graph_(graph) {
    std::unordered_map<std::size_t, std::vector<std::size_t>> inputs, outputs;  // of functions
    for (auto [from, to] : graph.edges) {
      if (graph.nodes[from].is_function) outputs[from].push_back(to);
      else inputs[to].push_back(from);
    }
    // The outputs stand first in `nodes`: backwards, names count in the order of forward.
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {
      if (graph.nodes[i].is_function) name_function(i, outputs[i]);
    }
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {
      if (!graph.nodes[i].is_function && !tensors_.count(i)) add_leaf(i);
    }
    for (std::size_t i = graph.nodes.size(); i-- > 0;) {
      if (graph.nodes[i].is_function) add_function(i, inputs[i], outputs[i]);
    }
    ProtobufWriter versions;
    versions.integer(1, 22);  // the producer, as PyTorch says
    message_.message(4, versions);
  }
  const std::string& text() const { return message_.text(); }

 private:
  std::string unique(const std::string& name) {
    std::string tried = name;
    while (!taken_.insert(tried).second) tried = fmt::format("{}_{}", name, ++used_[name]);
    return tried;
  }

  void name_function(std::size_t place, const std::vector<std::size_t>& outputs) {
    std::string name = unique(node_name(graph_.nodes[place].name, "function"));
    names_[place] = name;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      tensors_[outputs[i]] = i == 0 ? name : fmt::format("{}:{}", name, i);
    }
  }

  static void add_attribute(ProtobufWriter& node, const char* key, const ProtobufWriter& value) {
    ProtobufWriter entry;
    entry.bytes(1, key);
    entry.message(2, value);
    node.message(5, entry);
  }

  /// What is said of a node, by the variables that it gives.
  void describe(ProtobufWriter& node, const std::vector<std::size_t>& outputs) const {
    if (outputs.empty()) return;
    const GraphNode& first = graph_.nodes[outputs[0]];
    node.bytes(4, first.device.is_cpu() ? "/device:CPU:0"
                                        : fmt::format("/device:GPU:{}", first.device.index));
    ProtobufWriter type, shapes, list;
    type.integer(6, number_of(first.dtype));
    add_attribute(node, "dtype", type);
    for (std::size_t place : outputs) {
      ProtobufWriter shape;
      for (std::int64_t size : graph_.nodes[place].shape) {
        ProtobufWriter extent;
        extent.integer(1, size);
        shape.message(2, extent);
      }
      list.message(7, shape);
    }
    shapes.message(1, list);
    add_attribute(node, "_output_shapes", shapes);
  }

  void add_leaf(std::size_t place) {
    std::string name = unique(node_name(graph_.nodes[place].name, "variable"));
    tensors_[place] = name;
    ProtobufWriter node;
    node.bytes(1, name);
    node.bytes(2, "Variable");
    describe(node, {place});
    message_.message(1, node);
  }

  void add_function(std::size_t place, const std::vector<std::size_t>& inputs,
                    const std::vector<std::size_t>& outputs) {
    ProtobufWriter node;
    node.bytes(1, names_[place]);
    node.bytes(2, valid_utf8(graph_.nodes[place].name));
    for (std::size_t input : inputs) node.bytes(3, tensors_[input]);
    describe(node, outputs);
    message_.message(1, node);
  }

  const ComputationalGraph& graph_;
  ProtobufWriter message_;
  std::set<std::string> taken_;
  std::map<std::string, int> used_;
  std::unordered_map<std::size_t, std::string> names_, tensors_;
};

}  // namespace

std::string graph_message(const ComputationalGraph& graph) { return GraphMessage(graph).text(); }

}  // namespace rensa::training
