// How a model that was called becomes a graph of ONNX: what onnx_export.cc, which calls it, and
// onnx_operators.cc, which knows the functions, share.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rensa/array/creation.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/function_node.h"
#include "rensa/links/visitor.h"
#include "rensa/serializers/onnx.h"
#include "rensa/serializers/onnx_graph.h"

namespace rensa::serializers {

/// One function that was applied.
struct OnnxStep {
  std::shared_ptr<const FunctionNode> function;
  Variables inputs;
  Arrays outputs;

  const Array& x(std::size_t i = 0) const { return inputs[i].array(); }
  const Array& y(std::size_t i = 0) const { return outputs[i]; }
};

/// A call of the model: holding the outputs holds its graph.
struct OnnxTrace {
  Variables inputs, outputs;
  std::vector<OnnxStep> steps;  // those that lead to an output
};

/// The names and arrays that a model's members() shows, "conv1.W".
using OnnxArrays = std::vector<std::pair<std::string, Array>>;

/// The graph of a trace.
class OnnxExporter {
 public:
  OnnxExporter(const OnnxTrace& trace, const OnnxArrays& named, const ExportOnnxOptions& options)
      : trace_(trace), named_(named), options_(options) {}

  OnnxGraph graph();

  /// The name of input i.
  std::string in(const OnnxStep& step, std::size_t i = 0) {
    return name_of(*step.inputs[i].node(), step.x(i));
  }
  /// A node of one output: its name.
  std::string node(const std::string& op, std::vector<std::string> inputs,
                   std::map<std::string, OnnxAttribute> attributes = {});
  void result(const OnnxStep& step, const std::string& name, std::size_t i = 0) {
    if (auto y = step.function->outputs()[i].lock()) names_[y.get()] = name;
  }
  void nodes(const OnnxNode& made) { graph_.nodes.push_back(made); }
  std::string constant(const Array& array) {
    return node("Constant", {}, {{"value", array.to(cpu()).ascontiguous()}});
  }
  std::string constant(const std::vector<std::int64_t>& list) {
    return constant(xp::array(list).astype(int64));
  }
  std::string number(double value, Dtype dtype) {
    return constant(xp::full({}, value, dtype, cpu()));
  }
  /// An array that is no input of its function: perhaps one of the model's.
  std::string array(const Array& array) { return leaf(array); }

  [[noreturn]] void refuse(const OnnxStep& step, const std::string& why) const;

 private:
  void emit(const OnnxStep& step);

  OnnxValue value(const std::string& name, const Array& array) const;

  std::string name_of(const VariableNode& node, const Array& array);

  /// What no function has made: one of the model's arrays, an input, else a constant.
  std::string leaf(const Array& array);

  void check_inputs_used() const;

  const OnnxTrace& trace_;
  const OnnxArrays& named_;
  const ExportOnnxOptions& options_;
  OnnxGraph graph_;
  std::unordered_map<const VariableNode*, std::string> names_;
  std::set<std::string> used_;
  std::string place_ = "value", last_;
  int step_ = 0, part_ = 0;
};

/// A function that is to be written.
struct OnnxEmission {
  OnnxExporter& exporter;
  const OnnxStep& step;
  const FunctionAttributes& attributes;
  const char* op;  // of the row
};
/// How one is written, and the operator, where there is one, that it becomes.
struct OnnxEmitter {
  void (*emit)(const OnnxEmission& given);
  const char* op = "";
};
/// By the names of functions.
const std::map<std::string, OnnxEmitter>& onnx_emitters();

}  // namespace rensa::serializers
