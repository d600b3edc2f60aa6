// Export to ONNX. A hook notes the functions that the model applies; each that leads to an output
// is written as nodes of ONNX by the row of its name in emitters().
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <unordered_map>
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
#include "rensa/serializers/onnx_graph.h"

namespace rensa::serializers {

namespace {

using Ints = std::vector<std::int64_t>;
using NodeAttributes = std::map<std::string, OnnxAttribute>;

Ints ints(const Shape& shape) { return {shape.begin(), shape.end()}; }

// --- What the model applies ---

/// One function that was applied.
struct Step {
  std::shared_ptr<const FunctionNode> function;
  Variables inputs;
  Arrays outputs;

  const Array& x(std::size_t i = 0) const { return inputs[i].array(); }
  const Array& y(std::size_t i = 0) const { return outputs[i]; }
};

class StepHook final : public FunctionHook {
 public:
  void forward_result(const FunctionNode& function, const Variables& inputs,
                      const std::vector<Array>& outputs) override {
    steps.push_back({function.shared_from_this(), inputs, outputs});
  }
  std::vector<Step> steps;
};

/// A call of the model: holding the outputs holds its graph.
struct Trace {
  Variables inputs, outputs;
  std::vector<Step> steps;  // those that lead to an output
};

Trace traced(const OnnxFunction& function, const Arrays& inputs) {
  UsingConfig infer(&Config::train, false), record(&Config::enable_backprop, true);
  Trace trace;
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

// --- The graph ---

class Exporter;
using Emit = void (*)(Exporter&, const Step&, const FunctionAttributes&);
const std::map<std::string, Emit>& emitters();

class Exporter {
 public:
  Exporter(const Trace& trace, const NamedArrays& named, const ExportOnnxOptions& options)
      : trace_(trace), named_(named), options_(options) {}

  OnnxGraph graph() {
    graph_.opset = options_.opset;
    for (std::size_t i = 0; i < trace_.inputs.size(); ++i) {
      graph_.inputs.push_back(value(options_.input_names[i], trace_.inputs[i].array()));
      names_[trace_.inputs[i].node().get()] = options_.input_names[i];
    }
    for (const Step& step : trace_.steps) emit(step);
    for (std::size_t i = 0; i < trace_.outputs.size(); ++i) {
      const Variable& y = trace_.outputs[i];
      graph_.outputs.push_back(value(options_.output_names[i], y.array()));
      graph_.nodes.push_back({"Identity",
                              "output" + std::to_string(i),
                              {name_of(*y.node(), y.array())},
                              {options_.output_names[i]}});
    }
    check_inputs_used();
    return std::move(graph_);
  }

  /// The name of input i.
  std::string in(const Step& step, std::size_t i = 0) {
    return name_of(*step.inputs[i].node(), step.x(i));
  }
  /// A node of one output: its name.
  std::string node(const std::string& op, std::vector<std::string> inputs,
                   NodeAttributes attributes = {}) {
    std::string name = fmt::format("{}_{}", place_, part_++);
    graph_.nodes.push_back({op, name, std::move(inputs), {name}, std::move(attributes)});
    return name;
  }
  void result(const Step& step, const std::string& name, std::size_t i = 0) {
    if (auto y = step.function->outputs()[i].lock()) names_[y.get()] = name;
  }
  void nodes(const OnnxNode& made) { graph_.nodes.push_back(made); }
  std::string constant(const Array& array) {
    return node("Constant", {}, {{"value", array.to(cpu()).ascontiguous()}});
  }
  std::string constant(const Ints& list) { return constant(xp::array(list).astype(int64)); }
  std::string number(double value, Dtype dtype) {
    return constant(xp::full({}, value, dtype, cpu()));
  }
  /// An array that is no input of its function: perhaps one of the model's.
  std::string array(const Array& array) { return leaf(array); }

  [[noreturn]] void refuse(const Step& step, const std::string& why) const {
    throw NotImplementedError(fmt::format(
        "export_onnx: function {} of the model, \"{}\", {}: {}", step_, step.function->name(),
        last_.empty() ? "in front of all parameters" : "behind \"" + last_ + "\"", why));
  }

 private:
  void emit(const Step& step) {
    ++step_, part_ = 0;
    place_ = fmt::format("{}_{}", step.function->name(), step_);
    auto emitter = emitters().find(step.function->name());
    std::optional<FunctionAttributes> attributes = step.function->attributes();
    if (emitter == emitters().end() || !attributes) {
      refuse(step, "it is not exported; compute the same by others");
    }
    emitter->second(*this, step, *attributes);
  }

  OnnxValue value(const std::string& name, const Array& array) const {
    OnnxValue made{name, array.dtype()};
    for (std::int64_t extent : array.shape()) made.shape.emplace_back(extent);
    return made;
  }

  std::string name_of(const VariableNode& node, const Array& array) {
    auto known = names_.find(&node);
    if (known != names_.end()) {
      used_.insert(known->second);
      return known->second;
    }
    return leaf(array);
  }

  /// What no function has made: one of the model's arrays, an input, else a constant.
  std::string leaf(const Array& array) {
    auto same = [&](const Array& other) {
      return other.size() > 0 && other.data() == array.data() && other.shape() == array.shape() &&
             other.dtype() == array.dtype() && other.strides() == array.strides();
    };
    for (std::size_t i = 0; i < trace_.inputs.size(); ++i) {
      if (!same(trace_.inputs[i].array())) continue;
      used_.insert(options_.input_names[i]);
      return options_.input_names[i];
    }
    for (const auto& [name, given] : named_.arrays) {
      if (!same(given)) continue;
      if (used_.insert(name).second) {
        graph_.initializers.emplace_back(name, given.to(cpu()).ascontiguous());
      }
      return last_ = name;
    }
    return constant(array);
  }

  void check_inputs_used() const {
    for (const std::string& name : options_.input_names) {
      if (used_.contains(name)) continue;
      throw NotImplementedError(fmt::format(
          "export_onnx: no exported function takes input \"{}\": the model leaves it out, or takes "
          "its values without a function that has a gradient",
          name));
    }
  }

  const Trace& trace_;
  const NamedArrays& named_;
  const ExportOnnxOptions& options_;
  OnnxGraph graph_;
  std::unordered_map<const VariableNode*, std::string> names_;
  std::set<std::string> used_;
  std::string place_ = "value", last_;
  int step_ = 0, part_ = 0;
};

// --- Operators ---

/// A function that is one operator without settings.
template <const char* const& op> void same(Exporter& e, const Step& s, const FunctionAttributes&) {
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < s.inputs.size(); ++i) inputs.push_back(e.in(s, i));
  e.result(s, e.node(op, std::move(inputs)));
}

/// Arithmetic of two operands, or of one and a number.
template <const char* const& op>
void arithmetic(Exporter& e, const Step& s, const FunctionAttributes& a) {
  std::string x = e.in(s), y;
  bool number_first = false;
  if (auto number = a.numbers.find("number"); number != a.numbers.end()) {
    y = e.number(number->second, s.x().dtype());
    number_first = a.integers.at("number_first") != 0;
  } else {
    y = e.in(s, 1);
    if (s.x(0).dtype() != s.x(1).dtype()) e.refuse(s, "its operands have two dtypes");
  }
  e.result(s, e.node(op, number_first ? std::vector{y, x} : std::vector{x, y}));
}

/// A function of an axis.
template <const char* const& op>
void along(Exporter& e, const Step& s, const FunctionAttributes& a) {
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < s.inputs.size(); ++i) inputs.push_back(e.in(s, i));
  e.result(s, e.node(op, std::move(inputs), {{"axis", a.integers.at("axis")}}));
}

void linear(Exporter& e, const Step& s, const FunctionAttributes&) {
  std::vector<std::string> inputs{e.in(s, 0), e.in(s, 1)};
  if (s.inputs.size() == 3) inputs.push_back(e.in(s, 2));
  e.result(s, e.node("Gemm", inputs, {{"transB", std::int64_t{1}}}));
}

std::string transposed(Exporter& e, const std::string& x, int ndim) {
  Ints axes;
  for (int i = 0; i < ndim; ++i) axes.push_back(i);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return e.node("Transpose", {x}, {{"perm", axes}});
}

void matmul(Exporter& e, const Step& s, const FunctionAttributes& a) {
  std::string x = e.in(s, 0), y = e.in(s, 1);
  if (a.integers.at("transa")) x = transposed(e, x, s.x(0).ndim());
  if (a.integers.at("transb")) y = transposed(e, y, s.x(1).ndim());
  e.result(s, e.node("MatMul", {x, y}));
}

void convolution(Exporter& e, const Step& s, const FunctionAttributes& a) {
  Ints kernel, pads = ints(a.lists.at("pad"));
  for (int i = 2; i < s.x(1).ndim(); ++i) kernel.push_back(s.x(1).shape(i));
  pads.insert(pads.end(), a.lists.at("pad").begin(), a.lists.at("pad").end());
  std::vector<std::string> inputs{e.in(s, 0), e.in(s, 1)};
  if (s.inputs.size() == 3) inputs.push_back(e.in(s, 2));
  e.result(s, e.node("Conv", inputs,
                     {{"kernel_shape", kernel},
                      {"strides", ints(a.lists.at("stride"))},
                      {"pads", pads},
                      {"dilations", ints(a.lists.at("dilate"))},
                      {"group", a.integers.at("groups")}}));
}

/// Windows that reach beyond the padding, as cover_all has them, get as much more of it behind.
Ints pads_of(const Step& s, const FunctionAttributes& a) {
  const Shape &ksize = a.lists.at("ksize"), &stride = a.lists.at("stride"),
              &pad = a.lists.at("pad");
  Ints pads = ints(pad);
  for (int i = 0; i < ksize.ndim(); ++i) {
    std::int64_t reach = (s.y().shape(2 + i) - 1) * stride[i] + ksize[i];
    pads.push_back(std::max(pad[i], reach - s.x().shape(2 + i) - pad[i]));
  }
  return pads;
}

void max_pooling(Exporter& e, const Step& s, const FunctionAttributes& a) {
  e.result(s, e.node("MaxPool", {e.in(s)},
                     {{"kernel_shape", ints(a.lists.at("ksize"))},
                      {"strides", ints(a.lists.at("stride"))},
                      {"pads", pads_of(s, a)}}));
}

void average_pooling(Exporter& e, const Step& s, const FunctionAttributes& a) {
  e.result(s, e.node("AveragePool", {e.in(s)},
                     {{"kernel_shape", ints(a.lists.at("ksize"))},
                      {"strides", ints(a.lists.at("stride"))},
                      {"pads", pads_of(s, a)},
                      {"count_include_pad", a.integers.at("count_include_pad")}}));
}

void batch_normalization(Exporter& e, const Step& s, const FunctionAttributes& a) {
  Shape channels;  // all axes but the one of channels
  for (int i = 0; i < s.x().ndim(); ++i) {
    if (i != 1) channels.push_back(i);
  }
  if (a.lists.at("reduced") != channels) e.refuse(s, "ONNX normalizes along axis 1 alone");
  std::vector<std::string> inputs;
  for (std::size_t i = 0; i < s.inputs.size(); ++i) inputs.push_back(e.in(s, i));
  auto eps = static_cast<float>(a.numbers.at("eps"));
  e.result(s, e.node("BatchNormalization", inputs, {{"epsilon", eps}}));
}

void layer_normalization(Exporter& e, const Step& s, const FunctionAttributes& a) {
  auto eps = static_cast<float>(a.numbers.at("eps"));
  std::int64_t axis = -s.x(1).ndim();
  e.result(s, e.node("LayerNormalization", {e.in(s, 0), e.in(s, 1), e.in(s, 2)},
                     {{"axis", axis}, {"epsilon", eps}}));
}

void reshape(Exporter& e, const Step& s, const FunctionAttributes&) {
  std::string x = e.in(s);
  e.result(s, e.node("Reshape", {x, e.constant(ints(s.y().shape()))}));
}

void expand(Exporter& e, const Step& s, const FunctionAttributes&) {
  std::string x = e.in(s);
  e.result(s, e.node("Expand", {x, e.constant(ints(s.y().shape()))}));
}

void transpose(Exporter& e, const Step& s, const FunctionAttributes& a) {
  Ints axes = ints(a.lists.at("axes"));
  for (std::int64_t& axis : axes) axis += axis < 0 ? s.x().ndim() : 0;
  e.result(s, e.node("Transpose", {e.in(s)}, {{"perm", axes}}));
}

void cast(Exporter& e, const Step& s, const FunctionAttributes&) {
  std::int64_t to = onnx_dtype("export_onnx: cast", s.y().dtype());
  e.result(s, e.node("Cast", {e.in(s)}, {{"to", to}}));
}

void split(Exporter& e, const Step& s, const FunctionAttributes& a) {
  std::int64_t axis = a.integers.at("axis");
  Ints sizes;
  for (const Array& y : s.outputs) sizes.push_back(y.shape(static_cast<int>(axis)));
  std::string x = e.in(s), list = e.constant(sizes);
  OnnxNode made{"Split", list + "_split", {x, list}, {}, {{"axis", axis}}};
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    made.outputs.push_back(fmt::format("{}_{}", made.name, i));
    e.result(s, made.outputs[i], i);
  }
  e.nodes(made);
}

void get_item(Exporter& e, const Step& s, const FunctionAttributes& a) {
  const Shape &starts = a.lists.at("starts"), &steps = a.lists.at("steps");
  Ints ends, axes;
  for (int i = 0; i < starts.ndim(); ++i) {
    std::int64_t end = starts[i] + s.y().shape(i) * steps[i];
    // Before the first element: a negative end would count from the back.
    ends.push_back(end < 0 ? std::numeric_limits<std::int64_t>::min() : end);
    axes.push_back(i);
  }
  std::string x = e.in(s);
  e.result(s, e.node("Slice", {x, e.constant(ints(starts)), e.constant(ends), e.constant(axes),
                               e.constant(ints(steps))}));
}

void embed_id(Exporter& e, const Step& s, const FunctionAttributes& a) {
  std::string W = e.in(s), indices = e.array(a.arrays.at("indices"));
  Dtype dtype = a.arrays.at("indices").dtype();
  if (dtype != int32 && dtype != int64) {
    indices = e.node("Cast", {indices}, {{"to", onnx_dtype("export_onnx: indices", int64)}});
  }
  e.result(s, e.node("Gather", {W, indices}, {{"axis", std::int64_t{0}}}));
}

/// Query (batch, heads, L, E), key (batch, heads, S, E), value (batch, heads, S, V).
void attention(Exporter& e, const Step& s, const FunctionAttributes& a) {
  if (!a.arrays.empty()) e.refuse(s, "only causal attention, and that to all keys, is exported");
  if (s.x(0).shape(1) != s.x(1).shape(1)) e.refuse(s, "several queries share a key's head");
  Dtype dtype = s.x().dtype();
  std::string q = e.node("Mul", {e.in(s, 0), e.number(a.numbers.at("scale"), dtype)});
  std::string scores = e.node("MatMul", {q, transposed(e, e.in(s, 1), 4)});
  if (a.integers.at("causal")) {
    Array later = xp::tri(s.x(0).shape(2), s.x(1).shape(2), 0, bool_, cpu());
    double none = -std::numeric_limits<double>::infinity();
    Array zero = xp::zeros({}, dtype, cpu()), least = xp::full({}, none, dtype, cpu());
    scores = e.node("Add", {scores, e.constant(xp::where(later, zero, least))});
  }
  std::string weights = e.node("Softmax", {scores}, {{"axis", std::int64_t{-1}}});
  e.result(s, e.node("MatMul", {weights, e.in(s, 2)}));
}

void square(Exporter& e, const Step& s, const FunctionAttributes&) {
  std::string x = e.in(s);
  e.result(s, e.node("Mul", {x, x}));
}

void silu(Exporter& e, const Step& s, const FunctionAttributes&) {
  std::string x = e.in(s);
  e.result(s, e.node("Mul", {x, e.node("Sigmoid", {x})}));
}

/// 0.5 x (1 + f), where f is given.
void half_gelu(Exporter& e, const Step& s, const std::string& x, const std::string& f) {
  Dtype dtype = s.x().dtype();
  std::string half = e.node("Mul", {x, e.number(0.5, dtype)});
  e.result(s, e.node("Mul", {half, e.node("Add", {f, e.number(1, dtype)})}));
}

void gelu(Exporter& e, const Step& s, const FunctionAttributes&) {
  std::string x = e.in(s), root = e.number(std::sqrt(0.5), s.x().dtype());
  half_gelu(e, s, x, e.node("Erf", {e.node("Mul", {x, root})}));
}

void gelu_tanh(Exporter& e, const Step& s, const FunctionAttributes&) {
  Dtype dtype = s.x().dtype();
  std::string x = e.in(s), squared = e.node("Mul", {x, x});
  std::string factor = e.node("Mul", {squared, e.number(0.044715, dtype)});
  factor = e.node("Add", {factor, e.number(1, dtype)});
  std::string inner = e.node(
      "Mul", {e.node("Mul", {x, factor}), e.number(std::sqrt(2 / 3.14159265358979323846), dtype)});
  half_gelu(e, s, x, e.node("Tanh", {inner}));
}

template <const char* const& op>
void with_alpha(Exporter& e, const Step& s, const FunctionAttributes& a) {
  auto alpha = static_cast<float>(a.numbers.at("number0"));
  e.result(s, e.node(op, {e.in(s)}, {{"alpha", alpha}}));
}

// Names as template arguments are objects of their own.
namespace op {
#define RENSA_OP(name) constexpr const char* name = #name;
RENSA_OP(Add)
RENSA_OP(Sub) RENSA_OP(Mul) RENSA_OP(Div) RENSA_OP(Pow) RENSA_OP(Max) RENSA_OP(Min) RENSA_OP(Neg)
    RENSA_OP(Exp) RENSA_OP(Log) RENSA_OP(Sqrt) RENSA_OP(Abs) RENSA_OP(Sin) RENSA_OP(Cos)
        RENSA_OP(Erf) RENSA_OP(Relu) RENSA_OP(Sigmoid) RENSA_OP(Tanh) RENSA_OP(LeakyRelu)
            RENSA_OP(Elu) RENSA_OP(Softmax) RENSA_OP(LogSoftmax) RENSA_OP(Concat) RENSA_OP(Identity)
#undef RENSA_OP
}  // namespace op

/// By the functions' names.
const std::map<std::string, Emit>& emitters() {
  static const std::map<std::string, Emit> all = {
      {"add", arithmetic<op::Add>},
      {"subtract", arithmetic<op::Sub>},
      {"multiply", arithmetic<op::Mul>},
      {"divide", arithmetic<op::Div>},
      {"pow", arithmetic<op::Pow>},
      {"maximum", arithmetic<op::Max>},
      {"minimum", arithmetic<op::Min>},
      {"negative", same<op::Neg>},
      {"exp", same<op::Exp>},
      {"log", same<op::Log>},
      {"sqrt", same<op::Sqrt>},
      {"absolute", same<op::Abs>},
      {"sin", same<op::Sin>},
      {"cos", same<op::Cos>},
      {"erf", same<op::Erf>},
      {"square", square},
      {"relu", same<op::Relu>},
      {"sigmoid", same<op::Sigmoid>},
      {"tanh", same<op::Tanh>},
      {"leaky_relu", with_alpha<op::LeakyRelu>},
      {"elu", with_alpha<op::Elu>},
      {"silu", silu},
      {"gelu", gelu},
      {"gelu_tanh", gelu_tanh},
      {"softmax", along<op::Softmax>},
      {"log_softmax", along<op::LogSoftmax>},
      {"concat", along<op::Concat>},
      {"split_axis", split},
      {"reshape", reshape},
      {"transpose", transpose},
      {"broadcast_to", expand},
      {"cast", cast},
      {"copy", same<op::Identity>},
      {"get_item", get_item},
      {"embed_id", embed_id},
      {"linear", linear},
      {"matmul", matmul},
      {"scaled_dot_product_attention", attention},
      {"convolution_1d", convolution},
      {"convolution_2d", convolution},
      {"convolution_3d", convolution},
      {"convolution_nd", convolution},
      {"max_pooling_1d", max_pooling},
      {"max_pooling_2d", max_pooling},
      {"max_pooling_3d", max_pooling},
      {"max_pooling_nd", max_pooling},
      {"average_pooling_1d", average_pooling},
      {"average_pooling_2d", average_pooling},
      {"average_pooling_3d", average_pooling},
      {"average_pooling_nd", average_pooling},
      {"fixed_batch_normalization", batch_normalization},
      {"layer_normalization", layer_normalization},
  };
  return all;
}

// --- Two calls ---

/// The examples in reverse order, with one more of each where the batch may have any extent.
Array other_example(const Array& x, bool dynamic_batch) {
  Array reversed = x.reshape({-1})[Slice(none, none, -1)].reshape(x.shape());
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
  Trace trace = traced(function, examples), other = traced(function, others);
  ExportOnnxOptions options = given;
  fill_names(options.input_names, "input", inputs.size());
  fill_names(options.output_names, "output", trace.outputs.size());
  if (other.outputs.size() != trace.outputs.size()) {
    throw ValueError("export_onnx: the model gives other numbers of outputs to other examples");
  }
  NamedArrays named;  // behind the calls: parameters may have waited for their shapes
  members.show(named);
  OnnxGraph graph = Exporter(trace, named, options).graph();
  Comparison(graph, Exporter(other, named, options).graph(), options.dynamic_batch).merge();
  check_names(graph);
  detail::write_whole_file(path, encode_onnx(graph));
}

void export_onnx(const std::string& path, const Link& model, const Variables& inputs,
                 const ExportOnnxOptions& options) {
  auto function = [&](const Variables& x) { return Variables{model.invoke(x)}; };
  export_onnx(path, function, Members(model), inputs, options);
}

}  // namespace rensa::serializers
