// Export to ONNX. A hook notes the functions that the model applies; those that lead to an output
// are written (onnx_exporter.h). A second call shows what depends on the examples.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "rensa/array/creation.h"
#include "rensa/array/npy.h"
#include "rensa/array/routines.h"
#include "rensa/autograd/function_hook.h"
#include "rensa/autograd/function_node.h"
#include "rensa/core/error.h"
#include "rensa/core/files.h"
#include "rensa/core/thread_state.h"
#include "rensa/serializers/onnx.h"
#include "rensa/serializers/onnx_exporter.h"
#include "rensa/serializers/onnx_graph.h"

namespace rensa::serializers {

namespace {

using Ints = std::vector<std::int64_t>;

// --- What the model applies ---

class StepHook final : public FunctionHook {
 public:
  void forward_result(const FunctionNode& function, const Variables& inputs,
                      const std::vector<Array>& outputs) override {
    steps.push_back({function.shared_from_this(), inputs, outputs});
  }
  std::vector<OnnxStep> steps;
};

OnnxTrace traced(const OnnxFunction& function, const Arrays& inputs) {
  UsingConfig infer(&Config::train, false), record(&Config::enable_backprop, true);
  OnnxTrace trace;
  for (const Array& x : inputs) {
    char kind = dtype_kind(x.dtype());
    trace.inputs.emplace_back(x, kind == 'f');
  }
  StepHook hook;
  {
    FunctionHookScope scope(hook);
    trace.outputs = function(trace.inputs);
  }
  std::set<const FunctionNode*> wanted;
  for (const Variable& y : trace.outputs) wanted.insert(y.creator().get());
  for (auto step = hook.steps.rbegin(); step != hook.steps.rend(); ++step) {
    if (!wanted.contains(step->function.get())) continue;
    for (const auto& node : step->function->inputs()) wanted.insert(node->creator.get());
    trace.steps.push_back(*step);
  }
  std::ranges::reverse(trace.steps);
  return trace;
}

/// Arrays of the model that have names.
class NamedArrays final : public PathVisitor {
 public:
  void parameter(std::string_view name, Parameter& parameter) override {
    if (parameter.is_initialized()) add(name, parameter.array());
  }
  void persistent(std::string_view name, Persistent& array) override {
    if (array.defined()) add(name, array);
  }
  std::vector<std::pair<std::string, Array>> arrays;

 private:
  void add(std::string_view name, const Array& array) {
    std::string dotted = path(name);
    std::ranges::replace(dotted, '/', '.');
    arrays.emplace_back(dotted, array);
  }
};

// --- Two calls ---

/// An example of other values, with one more row where the batch may have any extent. Labels and
/// tokens stay among those that there were, numbers of [0, 1] there.
Array other_example(const Array& x, bool dynamic_batch) {
  Array reversed = x.reshape({-1})[Slice(none, none, -1)].reshape(x.shape());
  if (dtype_kind(x.dtype()) == 'f') reversed = reversed * 0.75 + 0.125;
  if (!dynamic_batch) return reversed.ascontiguous();
  return xp::concatenate({reversed, reversed[{Slice(0, 1)}]}, 0);
}

/// Holds the graphs of two calls against each other.
class Comparison {
 public:
  Comparison(OnnxGraph& first, const OnnxGraph& second, bool dynamic_batch)
      : first_(first), second_(second), dynamic_batch_(dynamic_batch) {}

  void merge() {
    if (first_.nodes.size() != second_.nodes.size()) {
      refuse("the model applies other functions to other examples");
    }
    for (const OnnxNode& node : first_.nodes) {
      if (node.op == "Reshape") shapes_.insert(node.inputs[1]);
    }
    for (std::size_t i = 0; i < first_.nodes.size(); ++i) {
      merge(first_.nodes[i], second_.nodes[i]);
    }
    for (std::size_t i = 0; i < first_.inputs.size(); ++i) {
      merge(first_.inputs[i], second_.inputs[i]);
    }
    for (std::size_t i = 0; i < first_.outputs.size(); ++i) {
      merge(first_.outputs[i], second_.outputs[i]);
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& what) const {
    throw NotImplementedError(fmt::format(
        "export_onnx: {}: this depends on the examples' values{}, and would be the examples' for "
        "ever",
        what, dynamic_batch_ ? " or on their number" : ""));
  }

  void merge(OnnxNode& a, const OnnxNode& b) const {
    bool alike = a.op == b.op && a.inputs == b.inputs && a.attributes.size() == b.attributes.size();
    for (auto& [name, value] : a.attributes) {
      auto other = b.attributes.find(name);
      if (!alike || other == b.attributes.end() || other->second.index() != value.index()) {
        refuse(fmt::format("\"{}\"", a.name));
      }
      if (auto* array = std::get_if<Array>(&value)) {
        merge(a.name, *array, std::get<Array>(other->second));
      } else if (value.index() != other->second.index() || !equal(value, other->second)) {
        refuse(fmt::format("{} of \"{}\"", name, a.name));
      }
    }
    if (!alike) refuse(fmt::format("\"{}\"", a.name));
  }

  static bool equal(const OnnxAttribute& a, const OnnxAttribute& b) {
    return std::visit(
        [&](const auto& value) {
          using T = std::remove_cvref_t<decltype(value)>;
          if constexpr (std::is_same_v<T, Array>) return false;
          else return value == std::get<T>(b);
        },
        a);
  }

  /// Of a new shape the one extent that is another stands for what is left: -1.
  void merge(const std::string& name, Array& a, const Array& b) const {
    if (a.shape() == b.shape() && a.dtype() == b.dtype() && bytes_of(a) == bytes_of(b)) return;
    bool shape = dynamic_batch_ && shapes_.contains(name) && a.shape() == b.shape();
    if (!shape) refuse(fmt::format("the constant \"{}\"", name));
    Ints extents = a.to_vector<std::int64_t>(), others = b.to_vector<std::int64_t>();
    int changed = 0;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      if (extents[i] != others[i]) extents[i] = -1, ++changed;
    }
    if (changed != 1) refuse(fmt::format("the shape \"{}\"", name));
    a = xp::array(extents).astype(int64);
  }

  void merge(OnnxValue& a, const OnnxValue& b) const {
    if (a.shape.size() != b.shape.size() || a.dtype != b.dtype) refuse("\"" + a.name + "\"");
    for (std::size_t i = 0; i < a.shape.size(); ++i) {
      if (a.shape[i] == b.shape[i]) continue;
      if (!dynamic_batch_) refuse("the shape of \"" + a.name + "\"");
      a.shape[i] = i == 0 ? "batch" : fmt::format("{}_{}", a.name, i);
    }
  }

  OnnxGraph& first_;
  const OnnxGraph& second_;
  bool dynamic_batch_;
  std::set<std::string> shapes_;
};

// --- Options ---

void fill_names(std::vector<std::string>& names, const char* what, std::size_t count) {
  if (names.empty()) {
    for (std::size_t i = 0; i < count; ++i) names.push_back(what + std::to_string(i));
  }
  std::set<std::string> all(names.begin(), names.end());
  if (names.size() == count && all.size() == count && !all.contains("")) return;
  throw ValueError(fmt::format("export_onnx: {} {}_names for {} {}s; each has one of its own",
                               names.size(), what, count, what));
}

void check(const Variables& inputs, const ExportOnnxOptions& options) {
  if (options.opset < kFirstOpset || options.opset > kLastOpset) {
    throw ValueError(fmt::format("export_onnx: opset {}; those from {} to {} are written",
                                 options.opset, kFirstOpset, kLastOpset));
  }
  for (const Variable& x : inputs) {
    if (!x.defined() || x.size() == 0 || (options.dynamic_batch && x.ndim() == 0)) {
      throw ValueError("export_onnx: an example has no elements, or no first axis");
    }
  }
}

/// No two values of one name.
void check_names(const OnnxGraph& graph) {
  std::set<std::string> names;
  auto add = [&](const std::string& name) {
    if (names.insert(name).second) return;
    throw ValueError(fmt::format(
        "export_onnx: two values have the name \"{}\"; give others as input_names or output_names",
        name));
  };
  for (const OnnxValue& value : graph.inputs) add(value.name);
  for (const auto& [name, array] : graph.initializers) add(name);
  for (const OnnxNode& node : graph.nodes) std::ranges::for_each(node.outputs, add);
}

}  // namespace

void export_onnx(const std::string& path, const OnnxFunction& function, const Members& members,
                 const Variables& inputs, const ExportOnnxOptions& given) {
  check(inputs, given);
  Arrays examples, others;
  for (const Variable& x : inputs) {
    examples.push_back(x.array().ascontiguous());
    others.push_back(other_example(examples.back(), given.dynamic_batch));
  }
  OnnxTrace trace = traced(function, examples), other = traced(function, others);
  ExportOnnxOptions options = given;
  fill_names(options.input_names, "input", inputs.size());
  fill_names(options.output_names, "output", trace.outputs.size());
  if (other.outputs.size() != trace.outputs.size()) {
    throw ValueError("export_onnx: the model gives other numbers of outputs to other examples");
  }
  NamedArrays named;  // behind the calls: parameters may have waited for their shapes
  members.show(named);
  OnnxGraph graph = OnnxExporter(trace, named.arrays, options).graph();
  Comparison(graph, OnnxExporter(other, named.arrays, options).graph(), options.dynamic_batch)
      .merge();
  check_names(graph);
  detail::write_whole_file(path, encode_onnx(graph));
}

void export_onnx(const std::string& path, const Link& model, const Variables& inputs,
                 const ExportOnnxOptions& options) {
  auto function = [&](const Variables& x) { return Variables{model.invoke(x)}; };
  export_onnx(path, function, Members(model), inputs, options);
}

}  // namespace rensa::serializers
